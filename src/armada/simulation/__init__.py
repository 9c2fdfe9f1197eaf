"""The system in one thread, with a false clock: so far its clusters, which also serve `armada up` and load tests.

Nothing here knows an event loop, a socket or the wall clock: time and seed come in as arguments.
"""
