"""To be described by the room's owner."""
