"""Runs that end without a round, because of what became of their executor or node. PURE, as all of `control`."""
