"""Services of others that rounds listen to: asked now and then, their last good answer kept."""
