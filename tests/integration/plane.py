"""A control plane in the test's own process, clients that speak gRPC to it, and an executor that does as it is told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import grpc.aio
from armada_client.armada import event_pb2, job_pb2, submit_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.apimachinery.pkg.api.resource.generated_pb2 import Quantity

from armada import assembly
from armada.model.events import (
    Event,
    Failure,
    JobSetEvents,
    PodIdentity,
    RunFailed,
    RunPending,
    RunReturned,
    RunStarted,
    RunSucceeded,
)
from armada.model.fleet import Node
from armada.model.leases import HeldRun, LeaseReply, LeaseRequest, NodeReport, RunLease
from armada.runtime.settings import Settings, load_settings
from armada.wire import services

GANG = "armadaproject.io/gangId"
CARDINALITY = "armadaproject.io/gangCardinality"


def settings_for(folder: Path, **more: Any) -> Settings:
    """Settings for a test: own folder, any free ports, no patience."""
    said: dict[str, Any] = {
        "data_dir": folder,
        "grpc_port": 0,
        "http_port": 0,
        "metrics_port": 0,
        "fleet_settle_ms": 0,
        "log_level": "error",
        **more,
    }
    return load_settings(overrides=said)


class Client:
    """One connection with all stubs."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.aio.insecure_channel(address)
        self.submit = services.SubmitStub(self.channel)
        self.queues = services.QueueStub(self.channel)
        self.events = services.EventStub(self.channel)
        self.jobs = services.JobsStub(self.channel)
        self.executors = services.ExecutorApiStub(self.channel)
        self.reports = services.ReportingStub(self.channel)

    async def create_queue(self, name: str, **more: Any) -> None:
        await self.queues.CreateQueue(submit_pb2.Queue(name=name, priority_factor=1.0, **more))

    async def send(self, *items: submit_pb2.JobSubmitRequestItem, queue: str = "qa", job_set: str = "s") -> list[str]:
        """Submit; return the ids."""
        request = submit_pb2.JobSubmitRequest(queue=queue, job_set_id=job_set, job_request_items=items)
        answer = await self.submit.SubmitJobs(request)
        return [row.job_id for row in answer.job_response_items]

    async def stream(
        self, job_set: str = "s", queue: str = "qa", after: str = ""
    ) -> list[event_pb2.EventStreamMessage]:
        """All messages of a job set up to now, after one of them."""
        request = event_pb2.JobSetRequest(id=job_set, queue=queue, from_message_id=after)
        return [message async for message in self.events.GetJobSetEvents(request)]

    async def kinds(self, job_id: str, job_set: str = "s", queue: str = "qa") -> list[str]:
        """Kinds of a job's messages, in order."""
        return [kind for kind, message in await self.told(job_set, queue) if message.job_id == job_id]

    async def told(self, job_set: str = "s", queue: str = "qa") -> list[tuple[str, Any]]:
        """(kind, message) of a job set."""
        return [opened(message) for message in await self.stream(job_set, queue)]

    async def state(self, job_id: str) -> str:
        """A job's state by name."""
        answer = await self.jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=[job_id]))
        return submit_pb2.JobState.Name(answer.job_states[job_id])

    async def until(self, job_id: str, *states: str, seconds: float = 10.0) -> str:
        """Wait until a job is in one of these states."""
        async with asyncio.timeout(seconds):
            while (state := await self.state(job_id)) not in states:  # noqa: ASYNC110 - asked over the wire
                await asyncio.sleep(0.01)
        return state


def opened(message: event_pb2.EventStreamMessage) -> tuple[str, Any]:
    """The kind of an event and what it holds."""
    kind = message.message.WhichOneof("events")
    assert kind is not None
    return kind, getattr(message.message, kind)


def item(cpu: str = "1", *, client_id: str = "", priority_class: str = "", **annotations: str) -> Any:
    """A job with one container."""
    quantities = {"cpu": Quantity(string=cpu), "memory": Quantity(string="64Mi")}
    container = core.Container(
        name="main",
        image="x",
        resources=core.ResourceRequirements(requests=dict(quantities), limits=dict(quantities)),
    )
    return submit_pb2.JobSubmitRequestItem(
        namespace="ns",
        client_id=client_id,
        annotations=annotations,
        pod_spec=core.PodSpec(containers=[container], priorityClassName=priority_class),
    )


def gang_item(gang: str, cardinality: int) -> Any:
    """A member of a gang."""
    return item(**{GANG: gang, CARDINALITY: str(cardinality)})


class Executor:
    """An executor with one big node that does what the test says. It speaks to the server in process."""

    def __init__(self, running: assembly.Running, executor_id: str = "east", cpu: str = "64") -> None:
        self.executor_id = executor_id
        self.link = running.control_plane.link(executor_id)
        totals = {"cpu": cpu, "memory": "256Gi", "ephemeral-storage": "100Ti"}
        self.node = Node(
            node_id=f"{executor_id}-n1",
            name="n1",
            executor_id=executor_id,
            pool="default",
            labels={"kubernetes.io/hostname": f"{executor_id}-n1"},
            total=totals,
        )
        self.held: dict[str, str] = {}
        self.leases: dict[str, RunLease] = {}
        self.ever_leased: list[str] = []

    def request(self, max_leases: int = 1_000) -> LeaseRequest:
        runs = tuple(HeldRun(run_id, phase) for run_id, phase in self.held.items())
        return LeaseRequest(
            executor_id=self.executor_id, pool="default", nodes=(NodeReport(self.node, runs),), max_leases=max_leases
        )

    async def exchange(self, hold_ms: int = 0) -> LeaseReply:
        """One exchange; leases are taken, and what is to end has ended at once."""
        reply = await self.link.lease(self.request(), hold_ms)
        for run_id in reply.cancel_run_ids:
            self.held.pop(run_id, None)
        for lease in reply.leases:
            self.leases[lease.run_id] = lease
            self.held[lease.run_id] = "pending"
            self.ever_leased.append(lease.job_id)
        return reply

    async def take(self, count: int = 1, seconds: float = 10.0) -> list[RunLease]:
        """Exchange until that many leases came."""
        taken: list[RunLease] = []
        async with asyncio.timeout(seconds):
            while len(taken) < count:
                taken.extend((await self.exchange(1_000)).leases)
        return taken

    async def report(self, lease: RunLease, *kinds: str) -> None:
        """Report facts about a run by kind: pending, running, succeeded, failed, returned."""
        events = tuple(self.fact(lease, kind) for kind in kinds)
        await self.link.report((JobSetEvents(lease.queue, lease.job_set, events),))

    def fact(self, lease: RunLease, kind: str) -> Event:
        job: dict[str, Any] = {"at_ms": 1, "job_id": lease.job_id, "run_id": lease.run_id}
        pod = PodIdentity(cluster=self.executor_id, namespace="ns", name=f"armada-{lease.job_id}-0", node_name="n1")
        match kind:
            case "pending":
                return RunPending(pod=pod, **job)
            case "running":
                return RunStarted(pod=pod, **job)
            case "succeeded":
                return RunSucceeded(pod=pod, **job)
            case "failed":
                return RunFailed(failure=Failure(reason="exit 137", pod=pod), **job)
            case _:
                return RunReturned(failure=Failure(reason="no room", kind="lease_returned", pod=pod), **job)

    async def finish(self, leases: Iterable[RunLease], how: str = "succeeded") -> None:
        """Let runs start and end."""
        for lease in leases:
            await self.report(lease, "pending", "running", how)
            self.held[lease.run_id] = how


class Plane:
    """A running control plane and a client of it."""

    def __init__(self, running: assembly.Running) -> None:
        self.running = running
        self.client = Client(running.grpc_address)

    def connection(self) -> Client:
        """Another connection."""
        return Client(self.running.grpc_address)


@contextlib.asynccontextmanager
async def plane(folder: Path, **more: Any) -> AsyncIterator[Plane]:
    """A control plane with queue `qa`, closed at the end."""
    async with assembly.serving(settings_for(folder, **more)) as running:
        opened_plane = Plane(running)
        await opened_plane.client.create_queue("qa")
        try:
            yield opened_plane
        finally:
            await opened_plane.client.channel.close()
