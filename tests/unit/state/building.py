"""Short ways to write entries and facts for tests of the ledger."""

from collections.abc import Sequence

from armada.model import events as facts
from armada.model.events import Entry, Event
from armada.model.fleet import Node, Queue
from armada.model.jobs import GangSpec, JobShape, JobTemplate, NewJob
from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger

POLICY = SchedulingPolicy()
SHAPE = JobShape(requests=(("cpu", "1"), ("memory", "1Gi")), priority_class="armada-default")


class Story:
    """A ledger and the log behind it, one entry a call."""

    def __init__(self, policy: SchedulingPolicy = POLICY) -> None:
        self.ledger = Ledger(policy)
        self.entries: list[Entry] = []

    def tell(
        self,
        *events: Event,
        queue: str = "qa",
        job_set: str = "s",
        epoch: int = 0,
        batch_id: str | None = None,
        ordinal: int = 0,
        time_ms: int | None = None,
    ) -> int:
        """Append and fold an entry; return its position."""
        position = len(self.entries) + 1
        entry = Entry(
            position=position,
            batch_id=f"b{position}" if batch_id is None else batch_id,
            time_ms=position if time_ms is None else time_ms,
            epoch=epoch,
            queue=queue,
            job_set=job_set,
            events=tuple(events),
            ordinal=ordinal,
        )
        self.entries.append(entry)
        self.ledger.apply(entry)
        return position

    def fact(self, *events: Event, epoch: int = 0) -> int:
        """Append and fold facts that belong to no job set."""
        return self.tell(*events, queue="", job_set="", epoch=epoch)

    def node(self, node_id: str = "n1", executor_id: str = "x1", pool: str = "default") -> None:
        """Report one node."""
        self.fact(
            facts.ExecutorReported(
                at_ms=1, executor_id=executor_id, pool=pool, nodes=(node(node_id, executor_id=executor_id, pool=pool),)
            )
        )


def template(
    *,
    shape: JobShape = SHAPE,
    gang: GangSpec | None = None,
    pools: tuple[str, ...] | None = None,
    external_job_uri: str = "",
    fail_fast: bool = False,
) -> JobTemplate:
    return JobTemplate(
        shape=shape,
        pod_spec=b"{}",
        namespace="default",
        gang=gang,
        pools=pools,
        external_job_uri=external_job_uri,
        fail_fast=fail_fast,
    )


def submitted(
    *jobs: str | NewJob, at_ms: int = 1, priority: int = 0, owner: str = "ann", of: JobTemplate | None = None
) -> facts.JobsSubmitted:
    rows = tuple(NewJob(job, priority) if isinstance(job, str) else job for job in jobs)
    return facts.JobsSubmitted(at_ms=at_ms, template=of or template(), jobs=rows, owner=owner)


def leased(
    job_id: str,
    run_id: str = "",
    *,
    node_id: str = "n1",
    executor_id: str = "x1",
    at_ms: int = 10,
    priority: int = 1000,
) -> facts.RunLeased:
    return facts.RunLeased(
        at_ms=at_ms,
        job_id=job_id,
        run_id=run_id or f"{job_id}-r",
        executor_id=executor_id,
        node_id=node_id,
        node_name=node_id,
        pool="default",
        priority=priority,
    )


def ran(job_id: str, run_id: str = "", *, at_ms: int = 20) -> Sequence[Event]:
    """All that a run reports that goes well, and the job's end."""
    run_id = run_id or f"{job_id}-r"
    return (
        facts.RunPending(at_ms=at_ms, job_id=job_id, run_id=run_id),
        facts.RunStarted(at_ms=at_ms + 1, job_id=job_id, run_id=run_id),
        facts.RunSucceeded(at_ms=at_ms + 2, job_id=job_id, run_id=run_id),
        facts.JobSucceeded(at_ms=at_ms + 2, job_id=job_id),
    )


def node(node_id: str = "n1", *, executor_id: str = "x1", pool: str = "default", cpu: str = "8") -> Node:
    return Node(node_id=node_id, name=node_id, executor_id=executor_id, pool=pool, total={"cpu": cpu, "memory": "64Gi"})


def queue(name: str = "qa") -> facts.QueueCreated:
    return facts.QueueCreated(at_ms=1, queue=Queue(name=name))
