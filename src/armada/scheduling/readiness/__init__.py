"""What makes the room ready to decide before it is asked. PURE, as all of `scheduling`."""
