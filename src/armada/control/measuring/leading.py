"""What a leader has done since it began: rounds and their ends, jobs that they scheduled, times of its steps."""

from collections.abc import Mapping
from typing import Final

from armada.control.measuring.series import COUNTER, GAUGE, HISTOGRAM, Family, Series, growing_edges
from armada.control.measuring.tallies import Counts, Distributions

PREFIX: Final = "armada_scheduler_"

_CYCLE_MS: Final = growing_edges(10.0, 1.1, 110)
_CHECK_MS: Final = growing_edges(0.5, 1.5, 25)

SCHEDULED: Final = Series(
    f"{PREFIX}scheduled_jobs",
    COUNTER,
    ("pool", "queue", "priority_class", "type"),
    "Jobs that rounds leased, by how their place was found",
)
POOL_OUTCOME: Final = Series(
    f"{PREFIX}pool_scheduling_outcome",
    COUNTER,
    ("pool", "outcome", "termination_reason"),
    "Rounds of a pool, by success or failure and by what ended them",
)
OUTCOME: Final = Series(f"{PREFIX}schedule_outcome", COUNTER, ("outcome",), "Rounds, by success or failure")
SCHEDULE_TIMES: Final = Series(
    f"{PREFIX}schedule_cycle_times",
    HISTOGRAM,
    (),
    "Milliseconds from the begin of a round until its facts are stored and folded",
    _CYCLE_MS,
)
RECONCILIATION_TIMES: Final = Series(
    f"{PREFIX}reconciliation_cycle_times",
    HISTOGRAM,
    (),
    "Milliseconds of leader's steps that stored facts without a round: runs that expired, jobs that can't run",
    _CYCLE_MS,
)
SCHEDULING_TIMES: Final = Series(
    f"{PREFIX}scheduling_cycle_times", HISTOGRAM, (), "Milliseconds that deciding a round took", _CYCLE_MS
)
POOL_TIMES: Final = Series(
    f"{PREFIX}pool_scheduling_cycle_times",
    HISTOGRAM,
    ("pool",),
    "Milliseconds that deciding a round of the pool took",
    _CYCLE_MS,
)
CHECK_TIMES: Final = Series(
    f"{PREFIX}submit_check_times",
    HISTOGRAM,
    ("queue",),
    "Milliseconds that looking at a queue's new kinds of jobs took",
    _CHECK_MS,
)

LEADER_STATUS: Final = Series(f"{PREFIX}leader_status", GAUGE, ("name",), "1 if this replica leads, else 0")

SERIES: Final = (
    LEADER_STATUS,
    SCHEDULED,
    POOL_OUTCOME,
    OUTCOME,
    SCHEDULE_TIMES,
    RECONCILIATION_TIMES,
    SCHEDULING_TIMES,
    POOL_TIMES,
    CHECK_TIMES,
)


def leader_status(name: str, *, leads: bool) -> Family:
    """Return the one series that a replica shows whether or not it leads."""
    return Family(series=LEADER_STATUS, samples=[((name,), float(leads))])


class LeaderTally:
    """Counters and histograms of one leadership. Times are milliseconds."""

    def __init__(self) -> None:
        self._scheduled = Counts(SCHEDULED)
        self._pool_outcomes = Counts(POOL_OUTCOME)
        self._outcomes = Counts(OUTCOME)
        self._schedule_times = Distributions(SCHEDULE_TIMES)
        self._reconciliation_times = Distributions(RECONCILIATION_TIMES)
        self._scheduling_times = Distributions(SCHEDULING_TIMES)
        self._pool_times = Distributions(POOL_TIMES)
        self._check_times = Distributions(CHECK_TIMES)

    def decided(self, pool: str, termination: str, ms: float, *, counts: bool = True) -> None:
        """Count a round by what ended it; one that `counts` for nothing, because its time ran out, is a failure."""
        outcome = "success" if counts else "failure"
        self._pool_outcomes.add((pool, outcome, termination))
        self._outcomes.add((outcome,))
        self._scheduling_times.observe((), ms)
        self._pool_times.observe((pool,), ms)

    def failed(self, pool: str, termination: str = "error") -> None:
        """Count a round that could not be decided."""
        self._pool_outcomes.add((pool, "failure", termination))
        self._outcomes.add(("failure",))

    def stored(self, pool: str, scheduled: Mapping[tuple[str, str, str], int], ms: float) -> None:
        """Count what a round leased, by (queue, priority class, method), once it is in the log."""
        for labels, count in scheduled.items():
            self._scheduled.add((pool, *labels), count)
        self._schedule_times.observe((), ms)

    def reconciled(self, ms: float) -> None:
        """Count a step that stored facts without a round."""
        self._reconciliation_times.observe((), ms)

    def checked(self, kinds: Mapping[str, int], ms: float) -> None:
        """Count a look at new kinds of jobs, so many of each queue: each gets its part of the time."""
        total = sum(kinds.values())
        for queue, count in kinds.items():
            self._check_times.observe((queue,), ms * count / total)

    def families(self) -> list[Family]:
        """Return all values as they are now."""
        return [
            tally.family()
            for tally in (
                self._scheduled,
                self._pool_outcomes,
                self._outcomes,
                self._schedule_times,
                self._reconciliation_times,
                self._scheduling_times,
                self._pool_times,
                self._check_times,
            )
        ]
