"""Figures of what the ledger holds: columns copied at one moment, then summed up by array work in any thread."""
