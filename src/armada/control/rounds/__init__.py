"""Rounds: when each pool's is due, what it is given, and what becomes of what it decides. PURE, as all of `control`."""
