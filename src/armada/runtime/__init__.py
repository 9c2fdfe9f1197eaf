"""PLUMBING. The process and its surroundings: settings, clock, tasks and signals, logs and metrics, drawn ids."""
