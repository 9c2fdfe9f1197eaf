"""Facts about runs on their way to the control plane: in order, and kept until they are acknowledged. Pure."""

from collections import deque
from collections.abc import Sequence

from armada.executor.holding.runs import (
    LEVEL_OF_PHASE,
    TOLD_END,
    TOLD_NOTHING,
    TOLD_PENDING,
    TOLD_STARTED,
    RunEntry,
)
from armada.executor.holding.stimuli import AgentSettings
from armada.executor.pods import (
    Pod,
    Problem,
    container_statuses,
    ended_fact,
    identity,
    pending_fact,
    problem_failure,
    started_fact,
)
from armada.model.events import Event, JobSetEvents, RunFailed, RunReturned


class Facts:
    """The outbox of one executor. One batch is under way at a time; the next gathers meanwhile."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._waiting: deque[tuple[RunEntry, int, Event]] = deque()
        self._under_way: list[tuple[RunEntry, int, Event]] = []
        self._limit = settings.report_batch
        self._due_ms = 0
        self._tries = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._under_way)

    def wake_ms(self) -> int | None:
        """When the next batch may start; None when there is none or one is under way."""
        return self._due_ms if self._waiting and not self._under_way else None

    # -- what there is to say

    def tell(self, entry: RunEntry, pod: Pod) -> None:
        """Add what a pod's phase says and was not told yet; a phase that was skipped is told too."""
        level = LEVEL_OF_PHASE.get(pod.phase, TOLD_NOTHING)
        if level <= entry.told:
            return
        who = entry.who
        if who is None or who.uid != pod.uid or who.node_name != pod.node_name:
            who = entry.who = identity(pod, self._settings.executor_id)
        if entry.told < TOLD_PENDING:
            self._put(entry, TOLD_PENDING, pending_fact(pod, who))
        if entry.told < TOLD_STARTED and (level == TOLD_STARTED or pod.started_ms):
            self._put(entry, TOLD_STARTED, started_fact(pod, who))
        if level == TOLD_END:
            if entry.problem is not None and not pod.started_ms:
                self.tell_problem(entry, entry.problem, pod.finished_ms or pod.changed_ms)
            else:
                self._put(entry, TOLD_END, ended_fact(pod, who))

    def fail(self, entry: RunEntry, message: str, subcategory: str, now_ms: int) -> None:
        """The run failed for a reason that no pod can tell."""
        self.tell_problem(entry, Problem(message=message, retryable=False, subcategory=subcategory), now_ms)

    def tell_problem(self, entry: RunEntry, problem: Problem, at_ms: int) -> None:
        """The run is given up: its lease goes back, or it failed."""
        containers = container_statuses(entry.pod) if entry.pod is not None else ()
        failure = problem_failure(problem, entry.who, containers)
        event: Event
        if problem.retryable:
            event = RunReturned(
                at_ms=at_ms, job_id=entry.job_id, run_id=entry.run_id, failure=failure, attempted=problem.attempted
            )
        else:
            event = RunFailed(at_ms=at_ms, job_id=entry.job_id, run_id=entry.run_id, failure=failure)
        self._put(entry, TOLD_END, event)

    def repeat_end(self, entry: RunEntry) -> None:
        """The end was acknowledged long ago and the control plane still doesn't know: say it again."""
        if entry.end is not None:
            entry.end_acknowledged_ms = 0
            self._waiting.append((entry, TOLD_END, entry.end))

    def _put(self, entry: RunEntry, level: int, event: Event) -> None:
        entry.told = level
        if level == TOLD_END:
            entry.end = event
        self._waiting.append((entry, level, event))

    # -- batches

    def take(self, now_ms: int) -> tuple[JobSetEvents, ...]:
        """Start the next batch when one is due, grouped by job set. Facts about cancelled runs are dropped."""
        if self._under_way or not self._waiting or now_ms < self._due_ms:
            return ()
        sequences: dict[tuple[str, str], list[Event]] = {}
        waiting, batch, limit = self._waiting, self._under_way, self._limit
        while waiting and len(batch) < limit:
            item = waiting.popleft()
            entry = item[0]
            if entry.is_cancelled:
                continue
            batch.append(item)
            key = (entry.queue, entry.job_set)
            events = sequences.get(key)
            if events is None:
                sequences[key] = [item[2]]
            else:
                events.append(item[2])
        return tuple(JobSetEvents(key[0], key[1], tuple(events)) for key, events in sequences.items())

    def acknowledged(self, now_ms: int) -> Sequence[tuple[RunEntry, int]]:
        """The batch under way is durable: return what of which run, the highest level last."""
        batch, self._under_way = self._under_way, []
        self._tries = 0
        self._limit = min(self._limit * 2, self._settings.report_batch)
        told: list[tuple[RunEntry, int]] = []
        for entry, level, _event in batch:
            if level == TOLD_END:
                entry.end_acknowledged_ms = now_ms
            told.append((entry, level))
        return told

    def failed(self, now_ms: int, *, was_refused: bool) -> str | None:
        """The batch under way did not arrive; it waits again, in front. A refused batch is cut in half.

        A single fact that is refused is dropped, and the text that says so is returned: it would stop all others.
        """
        batch, self._under_way = self._under_way, []
        if was_refused and len(batch) == 1:
            entry, level, event = batch[0]
            self.dropped += 1
            if level == TOLD_END:
                entry.end_acknowledged_ms = now_ms
            return f"the control plane refused {type(event).__name__} of run {entry.run_id}; the fact was dropped"
        self._waiting.extendleft(reversed(batch))
        if was_refused:
            self._limit = max(len(batch) // 2, 1)
            return None
        self._tries += 1
        self._due_ms = now_ms + self._settings.delay_ms(self._tries)
        return None
