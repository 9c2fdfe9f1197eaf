"""The nouns of the system. PURE: imports nothing else of ours, reaches no clock, no disk, no network.

Everything another room says or stores is built from these frozen values: resources, jobs, fleet, policy,
what executors and the control plane tell each other, and every fact that the log can hold.
"""
