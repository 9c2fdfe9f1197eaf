"""Small integers that kernels and the rest of the room agree on. `armada.scheduling.decisions` gives them names."""

from typing import Final

# Why a job was not placed.
NOT_CONSIDERED: Final = 0
NO_FIT: Final = 1
GANG_NO_FIT: Final = 2
FLOATING_EXCEEDED: Final = 3
LABEL_UNKNOWN: Final = 4
LABEL_NO_FIT: Final = 5
QUEUE_LIMIT: Final = 6
QUEUE_CORDONED: Final = 7
QUEUE_RATE: Final = 8
QUEUE_BURST: Final = 9
QUEUE_RATE_GANG: Final = 10
GLOBAL_RATE: Final = 11
GLOBAL_BURST: Final = 12
GLOBAL_RATE_GANG: Final = 13
ROUND_LIMIT: Final = 14
GANG_INCOMPLETE: Final = 15
UNSCHEDULED_RESOURCE: Final = 16
LOST_AGAIN: Final = 17
GANG_LOST_AGAIN: Final = 18
GLOBAL_NEW_JOB_TIME: Final = 19
QUEUE_NEW_JOB_TIME: Final = 20

# How a job got its place.
NO_METHOD: Final = 0
FREE_ROOM: Final = 1
FAIR_SHARE: Final = 2
URGENCY: Final = 3
AWAY: Final = 4
RESCHEDULED: Final = 5
OPTIMISER: Final = 6
AWAY_BY_URGENCY: Final = 7
"""Only inside a round: an away place over lower priorities, remembered so that victims can name who came."""

# What became of a running job.
RUNS: Final = 0
EVICTED: Final = 1
LOST: Final = 2

# Where the ends of a pass lie.
COMPLETED: Final = 0
RATE_LIMIT: Final = 1
MAX_RESOURCES: Final = 2
SOFT_TIMEOUT: Final = 3
TIMEOUT: Final = 4
