"""A problem's parts as the product's own values and facts: nodes, queues, job templates, submissions, leases.

Job sets do not exist in problems: every job is in the one set `SET` of its queue.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from armada.cli.problems.reading import (
    BidSpec,
    ClassLimitSpec,
    ExecutorSpec,
    FinishedSpec,
    JobSpecText,
    NodeSpec,
    QueueSpec,
    quantities,
)
from armada.model.events import (
    Event,
    ExecutorReported,
    ExecutorSettingsChanged,
    JobCancelled,
    JobPreempted,
    JobsSubmitted,
    JobSucceeded,
    QueueCreated,
    RunLeased,
    RunPending,
    RunPreempted,
    RunsReleased,
    RunStarted,
    RunSucceeded,
)
from armada.model.events import Failure as RunFailure
from armada.model.fleet import Bid, BidTable, ClassLimit, ExecutorSettings, Node, PoolBids, Queue, Taint
from armada.model.jobs import GangSpec, JobShape, JobTemplate, NewJob, SelectorRequirement, Toleration
from armada.model.policy import SchedulingPolicy

SET: Final = "problem"
NOW_MS: Final = 1_700_000_000_000
"""The clock when a problem begins; only differences matter."""

GONE: Final = "gone"
"""The executor of a node that is in no executor's list."""

MAX_JOBS_PER_FACT: Final = 10_000

Terms = tuple[tuple[SelectorRequirement, ...], ...]


def node(spec: NodeSpec, executor_id: str) -> Node:
    """Return a node as its executor would report it."""
    return Node(
        node_id=spec.id,
        name=spec.name or spec.id,
        executor_id=executor_id,
        pool=spec.pool,
        labels=spec.labels,
        taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in spec.taints),
        total=quantities(spec.total),
        unallocatable={priority: quantities(amounts) for priority, amounts in spec.unallocatable.items()},
        unschedulable=spec.unschedulable,
        node_type=spec.type,
        reservation=spec.reservation,
    )


def queue(spec: QueueSpec) -> Queue:
    """Return a queue."""
    limits = spec.resource_limits_by_priority_class_name
    return Queue(
        name=spec.name,
        priority_factor=spec.priority_factor,
        limits_by_class={name: _limit(limit) for name, limit in limits.items()},
        cordoned=spec.cordoned,
    )


def _limit(spec: ClassLimitSpec) -> ClassLimit:
    return ClassLimit(spec.maximum_resource_fraction, spec.maximum_resource_fraction_by_pool)


def fleet(executors: tuple[ExecutorSpec, ...]) -> Iterator[Event]:
    """Give the facts that make all executors and their nodes known."""
    for executor in executors:
        nodes = tuple(node(spec, executor.id) for spec in executor.nodes)
        pool = nodes[0].pool if nodes else ""
        yield ExecutorReported(at_ms=NOW_MS, executor_id=executor.id, pool=pool, nodes=nodes)
        if executor.cordoned:
            settings = ExecutorSettings(executor_id=executor.id, cordoned=True)
            yield ExecutorSettingsChanged(at_ms=NOW_MS, settings=settings)


def queues(specs: tuple[QueueSpec, ...]) -> Iterator[Event]:
    """Give the facts that create all queues."""
    for spec in specs:
        yield QueueCreated(at_ms=NOW_MS, queue=queue(spec))


class Templates:
    """Templates of jobs, one for all jobs that share everything but id and priority."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._default_class = policy.default_priority_class
        self._known: dict[tuple[object, ...], JobTemplate] = {}

    def template(self, spec: JobSpecText) -> JobTemplate:
        """Return the template of a job; equal jobs get the same object."""
        key = (
            tuple(spec.request.items()),
            spec.priority_class,
            spec.gang,
            spec.pools,
            spec.price_band,
            tuple(spec.node_selector.items()),
            spec.tolerations,
            spec.node_affinity,
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(spec)
        return found

    def _make(self, spec: JobSpecText) -> JobTemplate:
        gang = spec.gang
        shape = JobShape(
            requests=tuple(sorted(quantities(spec.request).items())),
            priority_class=spec.priority_class or self._default_class,
            node_selector=tuple(sorted(spec.node_selector.items())),
            tolerations=tuple(
                Toleration(one.key, one.operator or "Equal", one.value, one.effect) for one in spec.tolerations
            ),
            affinity=_terms(spec),
        )
        return JobTemplate(
            shape=shape,
            pod_spec=b"{}",
            namespace="default",
            gang=GangSpec(gang.id, gang.cardinality, gang.uniformity) if gang and gang.cardinality > 1 else None,
            price_band=spec.price_band,
            pools=spec.pools,
        )


def _terms(spec: JobSpecText) -> Terms | None:
    if spec.node_affinity is None:
        return None
    return tuple(
        tuple(SelectorRequirement(one.key, one.operator, one.values) for one in term.match_expressions)
        + tuple(SelectorRequirement(one.key, one.operator, one.values, on_field=True) for one in term.match_fields)
        for term in spec.node_affinity.node_selector_terms
    )


def submissions(jobs: Iterable[JobSpecText], templates: Templates, at_ms: int) -> Iterator[Event]:
    """Give the facts that submit these jobs of one queue in this order."""
    batch: list[NewJob] = []
    template: JobTemplate | None = None
    for job in jobs:
        own = templates.template(job)
        if template is not None and (own is not template or len(batch) == MAX_JOBS_PER_FACT):
            yield JobsSubmitted(at_ms=at_ms, template=template, jobs=tuple(batch))
            batch = []
        template = own
        batch.append(NewJob(job.id, job.priority))
    if template is not None:
        yield JobsSubmitted(at_ms=at_ms, template=template, jobs=tuple(batch))


def lease(
    job_id: str,
    *,
    node_id: str,
    executor_id: str,
    pool: str,
    priority: int,
    at_ms: int,
    acknowledged: bool,
) -> Iterator[Event]:
    """Give the facts of a run that was leased, and that its executor has confirmed unless it is not acknowledged."""
    run_id = _run_id(job_id)
    yield RunLeased(
        at_ms=at_ms,
        job_id=job_id,
        run_id=run_id,
        executor_id=executor_id,
        node_id=node_id,
        node_name=node_id,
        pool=pool,
        priority=priority,
    )
    if acknowledged:
        yield RunPending(at_ms=at_ms, job_id=job_id, run_id=run_id)


def _run_id(job_id: str) -> str:
    """Return the id of a job's only run: a problem's jobs run once."""
    return f"{job_id}/run"


def bid_table(bids: Iterable[BidSpec], resource_units: dict[str, dict[str, str]]) -> BidTable:
    """Return all bids of a problem; band 0 is what is bid for jobs without a band."""
    bands: dict[str, dict[str, dict[int, Bid]]] = {}
    for one in bids:
        bands.setdefault(one.queue, {}).setdefault(one.pool, {})[one.band] = Bid(one.queued, one.running)
    queues = {
        queue: {
            pool: PoolBids({band: bid for band, bid in own.items() if band}, own.get(0, Bid()))
            for pool, own in pools.items()
        }
        for queue, pools in bands.items()
    }
    return BidTable(queues=queues, resource_units=resource_units)


def success(job_id: str, at_ms: int) -> Iterator[Event]:
    """Give the facts of a running job that ends well."""
    yield RunSucceeded(at_ms=at_ms, job_id=job_id, run_id=_run_id(job_id))
    yield JobSucceeded(at_ms=at_ms, job_id=job_id)


def history(job: JobSpecText, ended: FinishedSpec, priority: int) -> Iterator[Event]:
    """Give the facts of a submitted job that ran before the problem began, has just ended well and left its node."""
    at_ms = NOW_MS - round(ended.running_seconds_ago * 1000)
    yield from lease(
        job.id,
        node_id=GONE,
        executor_id=GONE,
        pool=ended.pool,
        priority=priority,
        at_ms=at_ms,
        acknowledged=True,
    )
    yield RunStarted(at_ms=at_ms, job_id=job.id, run_id=_run_id(job.id))
    yield from success(job.id, NOW_MS)


def withdrawal(job_id: str, at_ms: int) -> Iterator[Event]:
    """Give the fact of a queued job that goes away."""
    yield JobCancelled(at_ms=at_ms, job_id=job_id)


def preemption(job_id: str, kind: str, at_ms: int) -> Iterator[Event]:
    """Give the facts of a running job that lost its place."""
    yield RunPreempted(at_ms=at_ms, job_id=job_id, run_id=_run_id(job_id), kind=kind, reason=kind)
    yield JobPreempted(at_ms=at_ms, job_id=job_id, failure=RunFailure(reason=kind, kind="preempted"))


def release(job_ids: Iterable[str], at_ms: int) -> Event:
    """Return the fact that these jobs' ended runs hold nothing any more."""
    return RunsReleased(at_ms=at_ms, run_ids=tuple(_run_id(job_id) for job_id in job_ids))
