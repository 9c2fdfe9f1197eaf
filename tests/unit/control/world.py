"""A small world for tests of the control room: a ledger, a caller, and short ways to submit, lease and report."""

import itertools
from collections.abc import Sequence
from typing import Any

from armada.control.commands import changing
from armada.control.commands.permissions import ALL_PERMISSIONS
from armada.control.commands.situation import Situation
from armada.control.commands.submission.submitting import SubmitDecision, Submitting, settled_ids
from armada.model.events import (
    Entry,
    Event,
    ExecutorReported,
    JobSetEvents,
    QueueCreated,
    RunLeased,
    RunPending,
    RunStarted,
)
from armada.model.fleet import Node, Queue
from armada.model.jobs import KubernetesObject
from armada.model.policy import SchedulingPolicy
from armada.model.submission import (
    Caller,
    CancelRequest,
    Submission,
    SubmissionPolicy,
    SubmittedItem,
    SubmittedJob,
    SubmittedPod,
)
from armada.state.ledger import Ledger

START_MS = 1_700_000_000_000
ALICE = Caller(name="alice", permissions=ALL_PERMISSIONS)


def resources(**quantities: str) -> KubernetesObject:
    """Equal requests and limits; underscores in names stand for hyphens."""
    named = {name.replace("_", "-"): quantity for name, quantity in quantities.items()}
    return {"requests": dict(named), "limits": dict(named)}


def pod(cpu: str = "1", memory: str = "64Mi", **more: Any) -> KubernetesObject:
    """A plain pod spec with one container."""
    return {"containers": [{"name": "main", "image": "x", "resources": resources(cpu=cpu, memory=memory)}], **more}


def item(spec: KubernetesObject | None = None, **more: Any) -> SubmittedItem:
    """An item with that pod spec."""
    more.setdefault("namespace", "ns")
    return SubmittedItem(pods=(SubmittedPod(spec if spec is not None else pod(), 100),), **more)


def gang_item(gang_id: str, cardinality: int | str, spec: KubernetesObject | None = None, **more: str) -> SubmittedItem:
    """An item that is a member of a gang; `more` are further annotations without their prefix."""
    annotations = {"armadaproject.io/gangId": gang_id, "armadaproject.io/gangCardinality": str(cardinality)}
    annotations.update({f"armadaproject.io/{name}": value for name, value in more.items()})
    return item(spec, annotations=annotations)


def node(name: str, executor_id: str = "east", cpu: str = "8", **more: Any) -> Node:
    """A node of 32 GiB."""
    more.setdefault("total", {"cpu": cpu, "memory": "32Gi", "ephemeral-storage": "1Ti"})
    more.setdefault("labels", {"kubernetes.io/hostname": name})
    return Node(
        node_id=f"{executor_id}-{name}", name=name, executor_id=executor_id, pool=more.pop("pool", "default"), **more
    )


class World:
    """A ledger with queue `qa`, and a clock that the test moves."""

    def __init__(self, policy: SchedulingPolicy | None = None, submission: SubmissionPolicy | None = None) -> None:
        self.policy = policy or SchedulingPolicy()
        self.submission = submission or SubmissionPolicy()
        self.ledger = Ledger(self.policy)
        self.submitting = Submitting(self.submission)
        self.now_ms = START_MS
        self.entries: list[Entry] = []
        self._batches = itertools.count(1)
        self._jobs = itertools.count(1)
        self.store(fact(QueueCreated(at_ms=START_MS, queue=Queue(name="qa"))))

    def store(self, *sequences: JobSetEvents, epoch: int = 0) -> list[Entry]:
        """Append and fold, as a log would; return the entries without their void parts."""
        batch = f"batch-{next(self._batches)}"
        stored: list[Entry] = []
        for ordinal, sequence in enumerate(sequences):
            entry = Entry(
                position=self.ledger.position + 1,
                batch_id=batch,
                ordinal=ordinal,
                time_ms=self.now_ms,
                epoch=epoch,
                queue=sequence.queue,
                job_set=sequence.job_set,
                events=sequence.events,
            )
            self.ledger.apply(entry)
            stored.append(self.ledger.effective(entry))
        self.entries.extend(stored)
        return stored

    def at(self, caller: Caller = ALICE) -> Situation:
        """The situation as it is now."""
        return Situation(self.ledger, caller, self.submission, self.policy, self.now_ms)

    def draw(self, count: int) -> list[str]:
        """Job ids that count up."""
        return [f"{next(self._jobs):026d}" for _ in range(count)]

    def queue(self, name: str, **more: Any) -> None:
        """Create a queue."""
        self.store(fact(QueueCreated(at_ms=self.now_ms, queue=Queue(name=name, **more))))

    def decide(
        self, *jobs: SubmittedJob, queue: str = "qa", job_set: str = "s", caller: Caller = ALICE
    ) -> SubmitDecision:
        """Decide a submission without storing it."""
        return self.submitting.decide(self.at(caller), Submission(queue, job_set, jobs), self.draw)

    def submit(self, *jobs: SubmittedJob | SubmittedItem, queue: str = "qa", job_set: str = "s") -> tuple[str, ...]:
        """Submit and fold; return the ids that the caller would get."""
        rows = tuple(job if isinstance(job, SubmittedJob) else SubmittedJob(job) for job in jobs)
        request = Submission(queue, job_set, rows)
        decision = self.submitting.decide(self.at(), request, self.draw)
        if decision.sequences:
            self.store(*decision.sequences)
        return settled_ids(self.ledger, request, decision, self.ledger.position)

    def report_nodes(self, *nodes: Node, executor_id: str = "east", pool: str = "default") -> None:
        """An executor reports its nodes."""
        self.store(fact(ExecutorReported(at_ms=self.now_ms, executor_id=executor_id, pool=pool, nodes=nodes)))

    def lease(self, job_id: str, node_name: str = "n1", executor_id: str = "east") -> str:
        """Lease a queued job to a node; return the run's id."""
        job = self.ledger.job(job_id)
        assert job is not None
        run_id = f"run-{job_id}-{job.runs_leased}"
        leased = RunLeased(
            at_ms=self.now_ms,
            job_id=job_id,
            run_id=run_id,
            executor_id=executor_id,
            node_id=f"{executor_id}-{node_name}",
            node_name=node_name,
            pool="default",
            priority=1000,
            attempt=job.runs_leased,
        )
        self.store(JobSetEvents(job.queue, job.job_set, (leased,)))
        return run_id

    def start(self, job_id: str, node_name: str = "n1", executor_id: str = "east") -> str:
        """Lease a job and let it run; return the run's id."""
        run_id = self.lease(job_id, node_name, executor_id)
        job = self.ledger.job(job_id)
        assert job is not None
        facts = (
            RunPending(at_ms=self.now_ms, job_id=job_id, run_id=run_id),
            RunStarted(at_ms=self.now_ms, job_id=job_id, run_id=run_id),
        )
        self.store(JobSetEvents(job.queue, job.job_set, facts))
        return run_id

    def cancel(self, job_id: str) -> None:
        """Cancel a live job."""
        job = self.ledger.job(job_id)
        assert job is not None
        self.store(*changing.cancel(self.at(), CancelRequest(job.queue, job.job_set, (job_id,)))[1])

    def state(self, job_id: str) -> str:
        """The job's state in words; `gone` when it has left the ledger."""
        state = self.ledger.job_state(job_id)
        return state.name.lower() if state is not None else "gone"

    def kinds_of(self, job_id: str) -> list[str]:
        """Kinds of the facts about a job so far, in order."""
        return [
            type(event).__name__
            for entry in self.entries
            for event in entry.events
            if getattr(event, "job_id", "") == job_id or any(job.job_id == job_id for job in getattr(event, "jobs", ()))
        ]


def fact(event: Event) -> JobSetEvents:
    """A sequence of a fact that belongs to no job set."""
    return JobSetEvents("", "", (event,))


def kinds(sequences: Sequence[JobSetEvents]) -> list[str]:
    """Kinds of all facts in order."""
    return [type(event).__name__ for sequence in sequences for event in sequence.events]
