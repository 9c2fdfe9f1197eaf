"""Kernels of pools with a market: whose turn it is by bid, and what a place would cost."""
