"""What if: a workload on a fleet in virtual time, decided by the production cycle and round.

`specs` holds what files describe, `reading` and `traces` read them, `simulation` lets time pass, `results` keeps what
happened.
"""
