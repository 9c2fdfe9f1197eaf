"""What jobs that ended too soon still count in their queue's cost: by pool and queue, for a while after their start.

A queue whose jobs end within seconds holds little at any moment and would get more than its share of a pool. Where a
pool has a cut-off, such a job counts on until that long after its start, as if it had stayed. All of it follows from
facts in the log, so a restart or another leader changes nothing.
"""

from bisect import bisect_left, bisect_right
from typing import Final

import msgspec

from armada.model.growth import grown
from armada.model.lifecycle import RunState
from armada.model.policy import PODS, SchedulingPolicy
from armada.model.resources import ResourceKinds, Vector, saturated
from armada.state.holdings.jobs import PREEMPT_REQUESTED, Jobs
from armada.state.holdings.runs import Runs
from armada.state.table import NONE

Requests = tuple[tuple[str, str], ...]
"""What a job asks for: names and quantities."""

STARTS_PER_QUEUE: Final = 1_024
"""Different start times kept for a queue in a pool; beyond, starts are rounded down to a part of the cut-off."""

_VECTORS_KEPT: Final = 4_096
_OWN_END: Final = 1 << RunState.SUCCEEDED | 1 << RunState.FAILED | 1 << RunState.CANCELLED


class ShortJobsContent(msgspec.Struct, frozen=True, array_like=True):
    """All that a checkpoint says: columns by name and unit, and for each (pool, queue) start times with amounts."""

    names: tuple[str, ...] = ()
    exponents: tuple[int, ...] = ()
    lines: tuple[tuple[str, str, tuple[tuple[int, Vector], ...]], ...] = ()


class _Line:
    """One queue's short jobs in one pool, by start time (ascending), and their sum."""

    __slots__ = ("amounts", "starts", "total")

    def __init__(self, width: int) -> None:
        self.starts: list[int] = []
        self.amounts: list[list[int]] = []
        self.total = [0] * width

    def add(self, started_ms: int, vector: Vector) -> None:
        """Count a vector on from a start."""
        place = bisect_left(self.starts, started_ms)
        if place < len(self.starts) and self.starts[place] == started_ms:
            self.amounts[place] = [held + more for held, more in zip(self.amounts[place], vector, strict=True)]
        else:
            self.starts.insert(place, started_ms)
            self.amounts.insert(place, list(vector))
        self.total = [held + more for held, more in zip(self.total, vector, strict=True)]

    def forget(self, until_ms: int) -> None:
        """Drop what started at or before this time."""
        count = bisect_right(self.starts, until_ms)
        if count:
            self.total = self.since(until_ms)
            del self.starts[:count]
            del self.amounts[:count]

    def since(self, after_ms: int) -> list[int]:
        """Return the sum of what started later than this."""
        total = self.total
        for amounts in self.amounts[: bisect_right(self.starts, after_ms)]:
            total = [held - less for held, less in zip(total, amounts, strict=True)]
        return total

    def gather(self, step_ms: int) -> None:
        """Round starts down to multiples of `step_ms`, so that there are fewer."""
        starts, amounts = self.starts, self.amounts
        self.starts, self.amounts, self.total = [], [], [0] * len(self.total)
        for started_ms, vector in zip(starts, amounts, strict=True):
            self.add(started_ms - started_ms % step_ms, tuple(vector))


class ShortJobs:
    """The short jobs of all pools that have a cut-off. What expired by the log's time is never part of the content."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._kinds: ResourceKinds = policy.kinds()
        self._pods = self._kinds.index(PODS) if policy.respects_node_pod_limits else None
        self._cutoffs_ms = {pool.name: pool.short_job_penalty_ms for pool in policy.pools if pool.short_job_penalty_ms}
        self._lines: dict[str, dict[str, _Line]] = {}
        self._vectors: dict[Requests, Vector] = {}

    def ended(self, jobs: Jobs, runs: Runs, job: int, time_ms: int) -> None:
        """Look at a job that is about to end: let it count on if it ran, ended too soon, and by its own doing.

        A preempted job, one whose executor gave it back or was lost, and one that never ran count nothing.
        `time_ms` is the log's; a start that an executor's clock puts later counts as now.
        """
        run = jobs.run[job]
        if (
            not self._cutoffs_ms
            or run == NONE
            or not _OWN_END >> runs.state[run] & 1
            or jobs.flags[job] & PREEMPT_REQUESTED
        ):
            return
        pool, started_ms = runs.pools[runs.pool[run]], runs.started_ms[run]
        if not started_ms and runs.state[run] == RunState.SUCCEEDED:
            # Its end was the first that was seen of it: it began some time after it was handed out.
            started_ms = max(runs.leased_ms[run], runs.pending_ms[run])
        if not started_ms or runs.ended_ms[run] - started_ms >= self._cutoffs_ms.get(pool, 0):
            return
        shape = grown(jobs.shapes[jobs.kinds[jobs.kind[job]].shape], jobs.growth.get(job))
        self._count(pool, jobs.queues[jobs.queue[job]], shape.requests, min(started_ms, time_ms), time_ms)

    def _count(self, pool: str, queue: str, requests: Requests, started_ms: int, time_ms: int) -> None:
        cutoff_ms = self._cutoffs_ms[pool]
        oldest_ms = time_ms - cutoff_ms
        if started_ms <= oldest_ms:
            return
        line = self._lines.setdefault(pool, {}).setdefault(queue, _Line(len(self._kinds)))
        line.forget(oldest_ms)
        line.add(started_ms, self._vector(requests))
        if len(line.starts) > STARTS_PER_QUEUE:
            line.gather(-(-cutoff_ms * 2 // STARTS_PER_QUEUE))

    def _vector(self, requests: Requests) -> Vector:
        vector = self._vectors.get(requests)
        if vector is None:
            amounts = list(self._kinds.vector_up(requests))
            if self._pods is not None:
                amounts[self._pods] = 1
            if len(self._vectors) >= _VECTORS_KEPT:
                self._vectors.clear()
            vector = self._vectors[requests] = tuple(amounts)
        return vector

    def penalties(self, pool: str, now_ms: int, time_ms: int) -> dict[str, Vector]:
        """Return what each queue's short jobs count now, in column units, and drop what expired by the log's time."""
        cutoff_ms = self._cutoffs_ms.get(pool, 0)
        lines = self._lines.get(pool, {})
        found: dict[str, Vector] = {}
        for queue, line in list(lines.items()):
            line.forget(time_ms - cutoff_ms)
            if not line.starts:
                del lines[queue]
            elif any(total := line.since(now_ms - cutoff_ms)):
                found[queue] = tuple(map(saturated, total))
        return found

    def forget_queue(self, queue: str) -> None:
        """Forget a queue that was deleted."""
        for lines in self._lines.values():
            lines.pop(queue, None)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def content(self, time_ms: int) -> ShortJobsContent:
        """Return what has not expired by the log's time, in name order."""
        found = []
        for pool, lines in sorted(self._lines.items()):
            for queue, line in sorted(lines.items()):
                line.forget(time_ms - self._cutoffs_ms[pool])
                if line.starts:
                    pairs = zip(line.starts, line.amounts, strict=True)
                    found.append((pool, queue, tuple((start, tuple(map(saturated, each))) for start, each in pairs)))
        return ShortJobsContent(self._kinds.names, self._kinds.exponents, tuple(found)) if found else ShortJobsContent()

    def restore(self, content: ShortJobsContent) -> None:
        """Take over what a checkpoint holds, as far as pools still have a cut-off and columns the same units."""
        known = {pair: column for column, pair in enumerate(zip(content.names, content.exponents, strict=True))}
        columns = [known.get(pair) for pair in zip(self._kinds.names, self._kinds.exponents, strict=True)]
        for pool, queue, pairs in content.lines:
            if pool in self._cutoffs_ms:
                line = self._lines.setdefault(pool, {}).setdefault(queue, _Line(len(columns)))
                for started_ms, amounts in pairs:
                    line.add(started_ms, tuple(0 if column is None else amounts[column] for column in columns))
