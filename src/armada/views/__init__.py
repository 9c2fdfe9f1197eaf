"""SHELL: read models, built from the log for whoever asks about the past.

The history keeps jobs and runs after the ledger has forgotten them. Nothing decides by it, and nothing is lost with it:
it is rebuilt from the log. Knows eventlog, runtime and model; never the ledger's rules, never protobuf.
"""
