"""Submission: rules for what may be submitted, defaults, and the facts that put jobs into a queue. PURE."""
