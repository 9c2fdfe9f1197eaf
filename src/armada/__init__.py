"""Armada: one batch queue above a fleet of Kubernetes clusters."""
