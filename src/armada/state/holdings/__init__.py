"""PURE: what the ledger holds, one file a noun: jobs, gangs, runs, the fleet. Storage with invariants, no facts."""
