"""What the agent keeps in mind: runs, nodes, facts under way, finished pods; and the values that reach and leave it.

Pure, as the agent itself: no clock, no chance, no event loop.
"""
