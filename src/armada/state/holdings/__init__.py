"""PURE: what the ledger holds, one file a noun: jobs, gangs, runs, the fleet. Storage and invariants, no facts."""
