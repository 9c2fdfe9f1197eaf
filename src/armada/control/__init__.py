"""What to do about it. PURE: takes ledger, policy, request and time; returns the facts to log, or refuses.

Nothing here reads a clock, draws chance or waits: the shells pass `now_ms` and drawn ids in and append what comes out.
"""
