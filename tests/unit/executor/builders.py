"""Builders for tests of the executor: leases, pods, agents, and a small control plane that keeps a ledger of runs."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from armada.executor.cluster import Changes, Creation, Listing, Outcome, PodGone
from armada.executor.holding.retention import RetentionLimits
from armada.executor.holding.stimuli import AgentSettings
from armada.executor.pods import ContainerState, Pod
from armada.model.events import Event, JobSetEvents, RunFailed, RunReturned, RunSucceeded
from armada.model.fleet import Node
from armada.model.jobs import GangSpec, JobShape, JobTemplate
from armada.model.leases import LeaseReply, LeaseRequest, RunLease

NODE = Node(node_id="e-n1", name="n1", executor_id="e", pool="p", total={"cpu": "8"})


def settings(**changes: Any) -> AgentSettings:
    fields: dict[str, Any] = {"executor_id": "e", "pool": "p", "retention": RetentionLimits()}
    return AgentSettings(**{**fields, **changes})


def template(
    command: Sequence[str] | None = ("sleep", "1"),
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    gang: GangSpec | None = None,
    requests: tuple[tuple[str, str], ...] = (("cpu", "100m"),),
    **spec: Any,
) -> JobTemplate:
    container: dict[str, Any] = {"name": "main", "image": "busybox"}
    if command is not None:
        container["command"] = list(command)
    body = {"containers": [container], **spec}
    return JobTemplate(
        shape=JobShape(requests, "armada-default"),
        pod_spec=json.dumps(body).encode(),
        namespace="default",
        annotations=dict(annotations or {}),
        labels=dict(labels or {}),
        gang=gang,
    )


def lease(
    run_id: str = "r1",
    *,
    template: JobTemplate | None = None,
    node_name: str = "n1",
    job_id: str = "",
    queue: str = "q",
    **more: Any,
) -> RunLease:
    return RunLease(
        run_id=run_id,
        job_id=job_id or f"job-{run_id}",
        queue=queue,
        job_set="s",
        owner="ann",
        groups=("g",),
        template=template or PLAIN,
        node_name=node_name,
        pool="p",
        preemptible=True,
        **more,
    )


PLAIN = template()


def pod(run_id: str = "r1", phase: str = "pending", **changes: Any) -> Pod:
    fields: dict[str, Any] = {
        "run_id": run_id,
        "job_id": f"job-{run_id}",
        "queue": "q",
        "job_set": "s",
        "name": f"armada-job-{run_id}-0",
        "namespace": "default",
        "uid": f"uid-{run_id}",
        "phase": phase,
        "changed_ms": 1_000,
        "created_ms": 1_000,
        "node_name": "n1",
        "pool": "p",
    }
    if phase in ("running", "succeeded", "failed"):
        fields["started_ms"] = 1_100
    if phase in ("succeeded", "failed"):
        fields["finished_ms"] = 2_000
        code = 0 if phase == "succeeded" else 3
        fields["containers"] = (ContainerState(name="main", started_ms=1_100, finished_ms=2_000, exit_code=code),)
    return Pod(**{**fields, **changes})


def listing(*pods: Pod, nodes: tuple[Node, ...] = (NODE,)) -> Listing:
    return Listing(nodes=nodes, pods=pods)


def seen(*pods: Pod) -> Changes:
    return Changes(pods=pods)


def gone(*run_ids: str, reason: str = "") -> Changes:
    return Changes(gone=tuple(PodGone(run_id, reason) for run_id in run_ids))


def created(*run_ids: str, outcome: Outcome = Outcome.CREATED, message: str = "") -> tuple[Creation, ...]:
    return tuple(Creation(run_id, outcome, message) for run_id in run_ids)


def facts(sequences: Iterable[JobSetEvents]) -> list[Event]:
    return [event for sequence in sequences for event in sequence.events]


def kinds(sequences: Iterable[JobSetEvents]) -> list[str]:
    return [type(event).__name__ for event in facts(sequences)]


class ToyControlPlane:
    """Leases what it is given until that is reported, as the real one does; remembers the first end of each run."""

    def __init__(self) -> None:
        self.leases: dict[str, RunLease] = {}
        self.ends: dict[str, Event] = {}
        self.heard: list[Event] = []
        self.cancelled: dict[str, None] = {}
        self.released: dict[str, None] = {}
        self.held: frozenset[str] = frozenset()
        self.requests = 0
        self.news = asyncio.Event()
        self.fails = 0

    def offer(self, *leases: RunLease) -> None:
        for one in leases:
            self.leases[one.run_id] = one
        self.news.set()

    def cancel(self, *run_ids: str) -> None:
        self.cancelled.update(dict.fromkeys(run_ids))
        self.news.set()

    def is_over(self, run_id: str) -> bool:
        return run_id in self.ends or run_id in self.cancelled

    def answer(self, request: LeaseRequest) -> LeaseReply:
        self.held = frozenset((*request.unassigned_run_ids, *(r.run_id for n in request.nodes for r in n.runs)))
        for run_id in self.leases:
            if self.is_over(run_id) and run_id not in self.held:
                self.released[run_id] = None
        cancel = [run_id for run_id in sorted(self.held) if run_id not in self.leases or self.is_over(run_id)]
        start = [one for one in self.leases.values() if one.run_id not in self.held and not self.is_over(one.run_id)]
        return LeaseReply(cancel_run_ids=tuple(cancel), leases=tuple(start[: request.max_leases]))

    def take(self, sequences: Iterable[JobSetEvents]) -> None:
        for event in facts(sequences):
            self.heard.append(event)
            if isinstance(event, RunSucceeded | RunFailed | RunReturned) and not self.is_over(event.run_id):
                self.ends[event.run_id] = event
        self.news.set()

    def heard_of(self, run_id: str) -> list[str]:
        return [type(event).__name__ for event in self.heard if getattr(event, "run_id", "") == run_id]

    # -- as the service's ControlPlane

    async def lease(self, request: LeaseRequest, hold_ms: int = 0) -> LeaseReply:
        self.requests += 1
        if self.fails > 0:
            self.fails -= 1
            raise ConnectionError("no route")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + hold_ms / 1000
        while True:
            self.news.clear()
            reply = self.answer(request)
            if reply.leases or reply.cancel_run_ids:
                return reply
            try:
                async with asyncio.timeout_at(deadline):
                    await self.news.wait()
            except TimeoutError:
                return reply

    async def report(self, sequences: tuple[JobSetEvents, ...]) -> None:
        if self.fails > 0:
            self.fails -= 1
            raise ConnectionError("no route")
        await asyncio.sleep(0)
        self.take(sequences)

    async def until(self, done: Any, timeout_s: float = 15.0) -> None:
        """Wait until `done()` holds."""
        async with asyncio.timeout(timeout_s):
            while not done():  # noqa: ASYNC110 - what is waited for is spread over processes and has no event
                await asyncio.sleep(0.005)
