"""Pools with a market: bids order the jobs, one price is found a round, and what each queue pays and gains follows.

Without kernels: these are in `scheduling.kernels.market`.
"""
