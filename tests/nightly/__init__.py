"""Property tests at length: many thousands of drawn problems, over all cores, within a bounded time."""
