"""The two command lines: `armada` runs the system, `armadactl` uses it.

Nothing imports this room. Modules here import late whatever is heavy (gRPC, protobuf, rich, numba), so that help,
completion and usage errors answer at once.
"""
