"""Builders: a log in memory, and the life of jobs as entries."""

from collections.abc import Sequence

from armada.eventlog.port import Batch, Checkpoint
from armada.model.events import (
    ContainerStatus,
    Entry,
    Event,
    Failure,
    JobCancelled,
    JobCancelRequested,
    JobFailed,
    JobPreempted,
    JobPreemptRequested,
    JobRejected,
    JobReprioritised,
    JobRequeued,
    JobsSubmitted,
    JobSucceeded,
    Position,
    RunAddressed,
    RunFailed,
    RunLeased,
    RunLeaseExpired,
    RunPending,
    RunPreempted,
    RunReturned,
    RunStarted,
    RunSucceeded,
)
from armada.model.jobs import JobShape, JobTemplate, NewJob


class ListedLog:
    """A log whose entries are a list: all that a projector asks of one."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)
        self.failures: list[Exception] = []
        self.reads = 0

    def add(self, *events: Event, queue: str = "alice", job_set: str = "set-1") -> Position:
        """Append one entry; returns its position."""
        position = len(self.entries) + 1
        self.entries.append(entry(position, *events, queue=queue, job_set=job_set))
        return position

    async def read(self, after: Position, limit: int) -> Sequence[Entry]:
        """As the port says."""
        self.reads += 1
        if self.failures:
            raise self.failures.pop(0)
        return [each for each in self.entries if each.position > after][:limit]

    async def last_position(self) -> Position:
        """As the port says."""
        return self.entries[-1].position if self.entries else 0

    async def append(self, batch: Batch, *, epoch: int = 0) -> Position:
        """Not for tests of the views."""
        raise NotImplementedError

    async def read_job_set(self, queue: str, job_set: str, after: Position, limit: int) -> Sequence[Entry]:
        """Not for tests of the views."""
        raise NotImplementedError

    async def wait(self, after: Position) -> Position:
        """Not for tests of the views."""
        raise NotImplementedError

    async def position_before(self, time_ms: int) -> Position:
        """Not for tests of the views."""
        raise NotImplementedError

    async def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Not for tests of the views."""
        raise NotImplementedError

    async def latest_checkpoint(self) -> Checkpoint | None:
        """Not for tests of the views."""
        raise NotImplementedError

    async def trim(self, below: Position) -> None:
        """Not for tests of the views."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to close."""


def entry(position: Position, *events: Event, queue: str = "alice", job_set: str = "set-1") -> Entry:
    """One entry of the log."""
    return Entry(
        position=position,
        batch_id=f"batch-{position}",
        time_ms=position,
        epoch=0,
        queue=queue,
        job_set=job_set,
        events=events,
    )


def template(**changes: object) -> JobTemplate:
    """A small job template; `changes` replace fields."""
    fields: dict[str, object] = {
        "shape": JobShape(requests=(("cpu", "1"),), priority_class="armada-default"),
        "pod_spec": b'{"containers":[]}',
        "namespace": "default",
    }
    return JobTemplate(**(fields | changes))  # type: ignore[arg-type]  # tests name fields as text


def submitted(*job_ids: str, at_ms: int = 1, spec: JobTemplate | None = None) -> JobsSubmitted:
    """Jobs of one template, priority 10."""
    return JobsSubmitted(
        at_ms=at_ms,
        template=spec or template(),
        jobs=tuple(NewJob(job_id, 10) for job_id in job_ids),
        owner="anna",
        groups=("staff", "all"),
    )


def leased(job_id: str, run_id: str, at_ms: int = 2, attempt: int = 0) -> RunLeased:
    """A lease to node-1 of executor east."""
    return RunLeased(
        at_ms=at_ms,
        job_id=job_id,
        run_id=run_id,
        executor_id="east",
        node_id="east-node-1",
        node_name="node-1",
        pool="default",
        priority=1000,
        attempt=attempt,
    )


def success(job_id: str, run_id: str, at_ms: int = 2) -> list[Event]:
    """Leased, pending, running, done: five facts, a millisecond apart."""
    return [
        leased(job_id, run_id, at_ms),
        RunPending(at_ms=at_ms + 1, job_id=job_id, run_id=run_id),
        RunStarted(at_ms=at_ms + 2, job_id=job_id, run_id=run_id),
        RunSucceeded(at_ms=at_ms + 3, job_id=job_id, run_id=run_id),
        JobSucceeded(at_ms=at_ms + 3, job_id=job_id),
    ]


def mixed_story() -> ListedLog:
    """Success, retry, failure, rejection, cancellation, preemption, repricing: every fact that makes rows."""
    log = ListedLog()
    log.add(submitted("j1", "j2", "j3", "j4"), submitted("j5", "j6", spec=template(external_job_uri="uri:1")))
    log.add(submitted("k1", "k2"), queue="bob", job_set="other")
    for event in success("j1", "r1"):
        log.add(event)
    # j2: returned, tried again, fails.
    log.add(leased("j2", "r2", 3), RunPending(at_ms=4, job_id="j2", run_id="r2"))
    back = Failure(reason="image", kind="lease_returned")
    log.add(RunReturned(at_ms=5, job_id="j2", run_id="r2", failure=back), JobRequeued(at_ms=5, job_id="j2"))
    log.add(leased("j2", "r3", 6, attempt=1), RunStarted(at_ms=7, job_id="j2", run_id="r3"))
    died = Failure(reason="exit", containers=(ContainerStatus(name="a"), ContainerStatus(name="b", exit_code=3)))
    log.add(RunFailed(at_ms=8, job_id="j2", run_id="r3", failure=died), JobFailed(at_ms=8, job_id="j2", failure=died))
    # j3: cancelled while it runs; j4: cancelled while it waits.
    log.add(leased("j3", "r4", 4), RunStarted(at_ms=5, job_id="j3", run_id="r4"))
    log.add(RunAddressed(at_ms=6, job_id="j3", run_id="r4", addresses={8080: "10.0.0.1:8080"}))
    log.add(
        JobCancelRequested(at_ms=9, job_id="j3", requestor="anna", reason="no longer needed"),
        JobCancelled(at_ms=9, job_id="j3", requestor="anna"),
    )
    log.add(JobCancelled(at_ms=9, job_id="j4", requestor="otto", reason="clean up"))
    # j5: preempted by its user; j6: by a fairer share.
    log.add(leased("j5", "r5", 4), leased("j6", "r6", 4), RunStarted(at_ms=5, job_id="j5", run_id="r5"))
    asked = Failure(reason="Preempted by anna - node repair 42", kind="preempted")
    log.add(
        JobPreemptRequested(at_ms=10, job_id="j5", requestor="anna", reason="node repair 42"),
        RunPreempted(at_ms=10, job_id="j5", run_id="r5", kind="api", reason=asked.reason, requestor="anna"),
        JobPreempted(at_ms=10, job_id="j5", failure=asked),
    )
    made_room = Failure(reason="made room for k2", kind="preempted")
    log.add(
        RunPreempted(
            at_ms=11, job_id="j6", run_id="r6", kind="fairshare", reason=made_room.reason, preempting_job_id="k2"
        ),
        JobPreempted(at_ms=11, job_id="j6", failure=made_room),
    )
    log.add(JobRejected(at_ms=12, job_id="k1", reason="no node has 900 cpu"), queue="bob", job_set="other")
    log.add(JobReprioritised(at_ms=12, job_id="k2", priority=3), queue="bob", job_set="other")
    log.add(leased("k2", "r7", 12), RunLeaseExpired(at_ms=13, job_id="k2", run_id="r7"), queue="bob", job_set="other")
    log.add(JobRequeued(at_ms=13, job_id="k2"), queue="bob", job_set="other")
    return log
