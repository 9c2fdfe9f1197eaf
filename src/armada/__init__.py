"""Armada: one batch queue above a fleet of Kubernetes clusters."""

from armada.kernel_cache import choose_cache

choose_cache()
