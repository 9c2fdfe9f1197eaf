"""The loops of the round on plain arrays, compiled by numba; one file a noun.

Kernels know no domain class: they get arrays and named tuples of arrays, and return arrays. Everything is exact
integer arithmetic but for costs, whose operations keep one fixed order (`fastmath` off, no parallel reductions), so
that a round is bit-equal with and without the compiler. `python -m armada.scheduling` compiles all of them.
"""
