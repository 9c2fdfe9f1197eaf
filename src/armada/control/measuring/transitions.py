"""Jobs on their way from state to state: how often, how long they were in each, what they held meanwhile, and failures.

Fed by facts as they are folded, in constant time each. Times are by the facts, so that a replica that is behind counts
the same as one that is not. Counters begin again with each leadership and from time to time (`forget`): what has left
does not stay for ever.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from armada.control.measuring.series import COUNTER, HISTOGRAM, OTHERS, Family, Labels, Series, growing_edges
from armada.control.measuring.tallies import Counts, Distributions
from armada.control.retry_rules import Answer
from armada.model import events as facts
from armada.model.jobs import JobShape
from armada.model.lifecycle import JobState
from armada.model.policy import MetricsPolicy
from armada.model.resources import NANO_PER_UNIT, parse_quantity
from armada.state.holdings.jobs import Jobs
from armada.state.holdings.runs import Runs
from armada.state.table import NONE

PREFIX: Final = "armada_scheduler_"
MAX_CATEGORY_CHARS: Final = 100

_QUEUE: Final = ("queue", "pool")
_NODE: Final = ("node", "pool", "cluster")
_STATES: Final = ("state", "priorState")
_STATE_NAMES: Final = tuple("failed" if state is JobState.REJECTED else state.name.lower() for state in JobState)
"""A rejected job has failed, to those who count states; its error's category says why."""

_QUEUED: Final = int(JobState.QUEUED)
_LEASED: Final = int(JobState.LEASED)
_PENDING: Final = int(JobState.PENDING)
_RUNNING: Final = int(JobState.RUNNING)
_OF_RUNS: Final = frozenset(
    {facts.RunPending, facts.RunStarted, facts.RunSucceeded, facts.RunFailed, facts.RunPreempted}
)
_REJECTED: Final = ("internal", "job-rejected")

Held = tuple[tuple[int, float], ...]
"""What a job asks for: places among the tracked resources with amounts in units; zeros are left out."""
_RUN_SECONDS: Final = growing_edges(1.0, 2.0, 20)


def _counter(name: str, labels: Labels, meaning: str) -> Series:
    return Series(PREFIX + name, COUNTER, labels, meaning)


STATES: Final = {
    who: (
        _counter(f"job_state_counter_by_{who}", (*labels, *_STATES), "Times that jobs went to a state"),
        _counter(f"job_state_seconds_by_{who}", (*labels, *_STATES), "Seconds in the prior state of jobs that left it"),
        _counter(
            f"job_state_resource_seconds_by_{who}",
            (*labels, *_STATES, "resource"),
            "Seconds in the prior state times what the jobs ask for",
        ),
    )
    for who, labels in (("queue", _QUEUE), ("node", _NODE))
}
ERRORS: Final = {
    who: _counter(
        f"job_error_classification_by_{who}",
        (*labels, "category", "subcategory"),
        "Jobs that failed for good, by error",
    )
    for who, labels in (("queue", _QUEUE), ("node", _NODE))
}
PREEMPTED: Final = _counter(
    "preempted_jobs", ("pool", "queue", "priority_class", "type"), "Runs that the scheduler preempted, by the reason"
)
FAILED: Final = _counter(
    "failed_jobs", ("pool", "queue", "priority_class", "type"), "Jobs that the scheduler failed, by the reason"
)
LOST: Final = _counter(
    "job_resource_seconds_lost_to_preemption",
    (*_QUEUE, "checkpoint_interval", "resource"),
    "Run time of preempted runs since their last checkpoint, times what they asked for",
)
RETRIES: Final = _counter(
    "retry_policy_decisions_total", (*_QUEUE, "policy", "decision"), "Answers of retry policies to failures"
)
GANGS_SKIPPED: Final = _counter(
    "retry_policy_gang_skipped_total", ("policy",), "Failures of gang members that a retry policy was not asked about"
)
COMPLETED: Final = Series(
    f"{PREFIX}job_run_completed_duration_seconds",
    HISTOGRAM,
    _QUEUE,
    "Seconds that runs took which ended by themselves, well or badly",
    _RUN_SECONDS,
)

SERIES: Final = (
    PREEMPTED,
    FAILED,
    COMPLETED,
    *(series for group in STATES.values() for series in group),
    *ERRORS.values(),
    LOST,
    RETRIES,
    GANGS_SKIPPED,
)


class Noted(msgspec.Struct, frozen=True):
    """What a fact is about to change, as it was before."""

    fact: Any
    queue: str = ""
    shape: JobShape | None = None
    pool: str = ""
    node: str = ""
    cluster: str = ""
    state: int = _QUEUED
    since_ms: int = 0
    held: Held = ()
    submitted: int = 0

    @property
    def priority_class(self) -> str:
        """The class of the job."""
        return self.shape.priority_class if self.shape is not None else ""


class Transitions:
    """A witness of the fold that counts. `before` is told each fact, `after` only what was not void."""

    def __init__(self, policy: MetricsPolicy) -> None:
        limit = policy.max_labels
        self._policy = policy
        self._resources = policy.tracked_resources
        self._intervals = tuple((interval, _duration_text(interval)) for interval in policy.checkpoint_intervals_ms)
        self._by_queue = _StateSums(STATES["queue"], self._resources, limit)
        self._by_node = _StateSums(STATES["node"], self._resources, limit)
        self._errors = {who: Counts(series, limit) for who, series in ERRORS.items()}
        self._preempted, self._failed = Counts(PREEMPTED, limit), Counts(FAILED, limit)
        self._lost, self._retries = Counts(LOST, limit), Counts(RETRIES, limit)
        self._gangs_skipped = Counts(GANGS_SKIPPED, limit)
        self._completed = Distributions(COMPLETED, limit)
        self._held: dict[int, tuple[JobShape, Held]] = {}
        self._after: Mapping[type, Callable[[Noted], None]] = {
            facts.RunLeased: self._leased,
            facts.RunPending: self._moved(JobState.PENDING),
            facts.RunStarted: self._moved(JobState.RUNNING),
            facts.RunSucceeded: self._completed_run,
            facts.RunFailed: self._completed_run,
            facts.RunPreempted: self._preempted_run,
            facts.JobSucceeded: self._moved(JobState.SUCCEEDED),
            facts.JobCancelled: self._moved(JobState.CANCELLED),
            facts.JobPreempted: self._moved(JobState.PREEMPTED),
            facts.JobRequeued: self._requeued,
            facts.JobFailed: self._failed_job,
            facts.JobRejected: self._rejected,
            facts.LeadershipClaimed: self._claimed,
        }

    # -- what the fold tells ------------------------------------------------------------------------------------------

    def before(self, jobs: Jobs, runs: Runs, fact: Any) -> Noted | None:
        """Look at what a fact is about to change; None where nothing is counted."""
        kind = type(fact)
        if kind is facts.JobsSubmitted:
            return Noted(fact, submitted=jobs.next_sequence)
        if kind not in self._after:
            return None
        if kind is facts.LeadershipClaimed:
            return Noted(fact)
        # Where the fact names a run that is known, its job is found by it: ids of jobs take longer to look up.
        run = runs.rows.get(fact.run_id) if kind in _OF_RUNS else None
        row = jobs.ids.find(fact.job_id) if run is None else runs.job[run]
        if row == NONE:
            return None
        state, run = jobs.state[row], jobs.run[row]
        shape, held = self._shape(jobs, row)
        queue = jobs.queues[jobs.queue[row]]
        if state == _QUEUED or run == NONE:
            return Noted(fact, queue, shape, state=state, since_ms=jobs.queued_ms[row], held=held)
        since_ms = runs.started_ms[run] if state == _RUNNING else 0
        return Noted(
            fact,
            queue,
            shape,
            runs.pools[runs.pool[run]],
            runs.node_names[runs.node_name[run]],
            runs.executors[runs.executor[run]],
            state,
            since_ms or (runs.pending_ms[run] if state >= _PENDING else 0) or runs.leased_ms[run],
            held,
        )

    def after(self, jobs: Jobs, noted: Noted) -> None:
        """Count a fact that the fold has taken in."""
        if noted.queue or type(noted.fact) is facts.LeadershipClaimed:
            self._after[type(noted.fact)](noted)
        else:
            self._submitted(jobs, noted)

    def _shape(self, jobs: Jobs, row: int) -> tuple[JobShape, Held]:
        """Return a job's shape and what it asks for."""
        number = jobs.shape[row]
        shape = jobs.shapes[number]
        known = self._held.get(number)
        if known is None or known[0] is not shape:
            requests = dict(shape.requests)
            amounts = [parse_quantity(requests.get(name, "0")) / NANO_PER_UNIT for name in self._resources]
            known = (shape, tuple((place, amount) for place, amount in enumerate(amounts) if amount))
            self._held[number] = known
        return known

    # -- counting -----------------------------------------------------------------------------------------------------

    def _submitted(self, jobs: Jobs, noted: Noted) -> None:
        count = jobs.next_sequence - noted.submitted
        if count:
            accepted = next(row for job in noted.fact.jobs if (row := jobs.ids.find(job.job_id)) != NONE)
            queue = jobs.queues[jobs.queue[accepted]]
            self._by_queue.add((queue, "", "queued", ""), 0.0, (), count)

    def _leased(self, noted: Noted) -> None:
        fact = noted.fact
        labels = (fact.pool, fact.node_name, fact.executor_id)
        self._count(Noted(fact, noted.queue, noted.shape, *labels, noted.state, noted.since_ms, noted.held), _LEASED)

    def _moved(self, state: int) -> Callable[[Noted], None]:
        def count(noted: Noted) -> None:
            self._count(noted, state)

        return count

    def _requeued(self, noted: Noted) -> None:
        self._count(noted, JobState.QUEUED)
        if noted.fact.policy:
            self._retries.add((noted.queue, noted.pool, noted.fact.policy, "retry"))

    def _failed_job(self, noted: Noted) -> None:
        fact = noted.fact
        self._count(noted, JobState.FAILED)
        self._classify(noted, fact.failure.category, fact.failure.subcategory)
        if fact.failure.kind == "reconciliation":
            self._failed.add((noted.pool, noted.queue, noted.priority_class, fact.failure.kind))
        if fact.decision == Answer.GANG_SKIPPED:
            self._gangs_skipped.add((fact.policy,))
        elif fact.decision:
            self._retries.add((noted.queue, noted.pool, fact.policy, fact.decision))

    def _rejected(self, noted: Noted) -> None:
        self._count(noted, JobState.REJECTED)
        self._classify(noted, *_REJECTED)

    def _completed_run(self, noted: Noted) -> None:
        self._completed.observe((noted.queue, noted.pool), _seconds(noted))

    def _preempted_run(self, noted: Noted) -> None:
        if noted.fact.kind != "api":
            self._preempted.add((noted.pool, noted.queue, noted.priority_class, noted.fact.kind))
        if noted.state != _RUNNING:
            return
        for interval_ms, name in self._intervals:
            lost_s = _seconds(noted) % (interval_ms / 1_000) if interval_ms else _seconds(noted)
            for place, amount in noted.held:
                self._lost.add((noted.queue, noted.pool, name, self._resources[place]), lost_s * amount)

    def _claimed(self, noted: Noted) -> None:
        del noted
        self.forget()

    def _count(self, noted: Noted, state: int) -> None:
        """Count a job that went to a state, for its queue, and for its node where it has one."""
        seconds, name, prior = _seconds(noted), _STATE_NAMES[state], _STATE_NAMES[noted.state]
        self._by_queue.add((noted.queue, noted.pool, name, prior), seconds, noted.held)
        if noted.node and self._policy.shows_nodes:
            self._by_node.add((noted.node, noted.pool, noted.cluster, name, prior), seconds, noted.held)

    def _classify(self, noted: Noted, category: str, subcategory: str) -> None:
        error = (category[:MAX_CATEGORY_CHARS], subcategory[:MAX_CATEGORY_CHARS])
        self._errors["queue"].add((noted.queue, noted.pool, *error))
        if noted.node and self._policy.shows_nodes:
            self._errors["node"].add((noted.node, noted.pool, noted.cluster, *error))

    # -- reading ------------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Begin again with nothing counted."""
        for tally in (self._by_queue, self._by_node, *self._tallies()):
            tally.clear()
        self._held.clear()

    def families(self) -> list[Family]:
        """Return all values as they are now, in the order of `SERIES`."""
        preempted, failed, completed, *others = (tally.family() for tally in self._tallies())
        states = (*self._by_queue.families(), *self._by_node.families())
        return [preempted, failed, completed, *states, *others]

    def _tallies(self) -> tuple[Counts | Distributions, ...]:
        return (
            self._preempted,
            self._failed,
            self._completed,
            *self._errors.values(),
            self._lost,
            self._retries,
            self._gangs_skipped,
        )


class _StateSums:
    """For each label value: how often, seconds, and seconds times each resource, side by side."""

    def __init__(self, series: tuple[Series, ...], resources: Labels, limit: int) -> None:
        self._series = series
        self._resources = resources
        self._limit = limit
        self._sums: dict[Labels, list[float]] = {}

    def add(self, labels: Labels, seconds: float, held: Held, count: int = 1) -> None:
        """Count jobs that were in their state for so long, holding so much each."""
        sums = self._sums.get(labels)
        if sums is None:
            if len(self._sums) >= self._limit:
                labels = (OTHERS,) * len(labels)
            sums = self._sums.setdefault(labels, [0.0] * (2 + len(self._resources)))
        sums[0] += count
        sums[1] += seconds
        for place, amount in held:
            sums[2 + place] += seconds * amount

    def clear(self) -> None:
        """Begin again with nothing."""
        self._sums.clear()

    def families(self) -> list[Family]:
        """Return the counts, the seconds, and the resource seconds that are not zero."""
        counts, seconds, by_resource = self._series
        held = list(self._sums.items())
        spent = [
            ((*labels, resource), amount)
            for labels, sums in held
            for resource, amount in zip(self._resources, sums[2:], strict=True)
            if amount
        ]
        return [
            Family(series=counts, samples=[(labels, sums[0]) for labels, sums in held]),
            Family(series=seconds, samples=[(labels, sums[1]) for labels, sums in held]),
            Family(series=by_resource, samples=spent),
        ]


def _seconds(noted: Noted) -> float:
    """How long it was as it was before."""
    return float(max(0, noted.fact.at_ms - noted.since_ms)) / 1_000


def _duration_text(ms: int) -> str:
    """Write a duration as the reference does: 1h0m0s, 5m0s, 30s."""
    seconds, rest_ms = divmod(ms, 1_000)
    hours, minutes, seconds = seconds // 3_600, seconds // 60 % 60, seconds % 60
    shown = f"{seconds}.{rest_ms:03}".rstrip("0") if rest_ms else f"{seconds}"
    if hours:
        return f"{hours}h{minutes}m{shown}s"
    return f"{minutes}m{shown}s" if minutes else f"{shown}s"
