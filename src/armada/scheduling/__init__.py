"""The round: a pure function from one pool's snapshot to its decisions.

`tables` turns the model into columns, `snapshot` holds them, `round.schedule` decides, `decisions` says what and why.
Only `kernels/` imports numba, and kernels see arrays only. Nothing in this room reads a clock, draws chance, logs, or
changes what it was given.
"""
