"""PURE: what the log adds up to. A deterministic fold of entries into columns in memory; decides nothing.

Knows the model and the shape of a scheduling snapshot. Never reaches clocks, chance, disk or network: equal logs give
equal ledgers, on every machine and after every restart.
"""
