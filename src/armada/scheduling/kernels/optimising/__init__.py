"""Kernels of the fairness optimiser: what room on a node costs (`offers`), and which gangs are worth it (`deals`)."""
