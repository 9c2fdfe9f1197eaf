"""Scheduling problems written down as JSON (docs/decide.md): read, decided by the product's own parts, answered.

Nothing here knows a rule of the scheduler. A problem becomes facts of a ledger, the ledger gives the snapshot, and
`schedule()` decides, as in production.
"""
