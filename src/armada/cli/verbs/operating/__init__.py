"""Verbs of operators: retry policies, executors, nodes."""
