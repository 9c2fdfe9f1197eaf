"""When things are due: the leader's times, set once."""

import msgspec


class Cadence(msgspec.Struct, frozen=True, kw_only=True):
    """When things are due.

    A cycle of rounds starts `round_delay_ms` after a change that could place a job, so that changes that come together
    are decided together; while jobs wait, it starts at least every `schedule_period_ms`. After each round there is a
    rest of `rest_share` of its duration, so that rounds over long queues leave time for everything else. An executor
    that has been silent for `executor_timeout_ms` loses its runs, and so does a node that its executor has not reported
    for `node_timeout_ms` (0: it keeps them). No job is rejected within `fleet_settle_ms` of the first word of a new
    executor, nor before all known executors were heard or `fleet_patience_ms` went by since this leader began.
    """

    round_delay_ms: int = 5
    schedule_period_ms: int = 10_000
    executor_timeout_ms: int = 3_600_000
    node_timeout_ms: int = 600_000
    fleet_settle_ms: int = 2_000
    fleet_patience_ms: int = 60_000
    rate_retry_ms: int = 250
    rest_share: float = 0.5
    rounds_without_jobs: bool = False
