"""The service with real parts around it: clusters, a control plane in process or over gRPC, faults and kills."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import grpc.aio
import msgspec
import pytest
from armada_client.armada.binoculars_pb2 import LogRequest as LogMessage

from armada.executor.clock import steady_clock_ms, wall_clock_ms
from armada.executor.cluster import LogRequest, PodDeletion
from armada.executor.holding.retention import RetentionLimits
from armada.executor.journal import Journal
from armada.executor.link import GrpcControlPlane
from armada.executor.machine.container import kill_strays
from armada.executor.machine.node import ProcessSettings
from armada.executor.output import ExecutorLogs, PodOutput
from armada.executor.paced import PacedCluster
from armada.executor.processes import ProcessCluster
from armada.executor.service import ExecutorService
from armada.model.errors import InvalidRequest, NotFound, StartupRefused, Unavailable
from armada.model.events import Failure, JobSetEvents, RunFailed
from armada.model.leases import LeaseReply, LeaseRequest
from armada.simulation.cluster import SimulatedCluster
from armada.simulation.fleet import Behaviour, ClusterSpec, Distribution, Fault, uniform_fleet
from armada.wire.agents import HOLD_METADATA, ReportedFleet, lease_reply_messages
from armada.wire.reports import EXECUTOR_METADATA, executor_report
from armada.wire.services import ErrorsAnswered, ExecutorApiServicer, LogStub, empty, register
from tests.unit.executor.builders import ToyControlPlane, lease, settings, template

# ruff: noqa: N802 - methods of a service carry the API's names

QUICK = Behaviour(
    start_delay=Distribution("uniform", 1, 10),
    runtime=Distribution("uniform", 20, 60),
    stop_delay=Distribution("constant", 5),
)


def spec(nodes: int = 3, **changes: Any) -> ClusterSpec:
    fleet = uniform_fleet(1, nodes)
    return msgspec.structs.replace(fleet.clusters[0], behaviour=QUICK, **changes)


@asynccontextmanager
async def running(service: ExecutorService) -> AsyncIterator[ExecutorService]:
    await service.start()
    work = asyncio.create_task(service.run())
    try:
        yield service
    finally:
        await service.stop()
        await work


def simulated(control: ToyControlPlane, made: ClusterSpec, **changes: Any) -> ExecutorService:
    return ExecutorService(
        cluster=PacedCluster(SimulatedCluster(made, 1), wall_clock_ms),
        control_plane=control,
        settings=settings(
            executor_id=made.executor_id,
            keeps_journal=False,
            retention=RetentionLimits(pod_count=0),
            retry_first_ms=20,
            retry_last_ms=100,
            **changes,
        ),
    )


async def test_runs_on_a_simulated_cluster_end_and_are_released() -> None:
    made = spec()
    control = ToyControlPlane()
    async with running(simulated(control, made)):
        names = [node.name for node in made.nodes]
        control.offer(*(lease(f"r{n}", template=template(["x"]), node_name=names[n % 3]) for n in range(200)))
        await control.until(lambda: len(control.released) == 200)
    assert {type(end).__name__ for end in control.ends.values()} == {"RunSucceeded"}
    for n in range(200):
        assert control.heard_of(f"r{n}") == ["RunPending", "RunStarted", "RunSucceeded"]


async def test_news_travel_at_once() -> None:
    """An idle service with a held exchange: from lease to end nothing waits for an interval."""
    made = spec()
    control = ToyControlPlane()
    async with running(simulated(control, made)):
        await control.until(lambda: control.requests >= 1)
        await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        start = loop.time()
        pinned = template(["x"], annotations={"armadaproject.io/sim": "start=1ms,runtime=1ms"})
        control.offer(lease("r", template=pinned, node_name=made.nodes[0].name))
        await control.until(lambda: "r" in control.released)
        assert loop.time() - start < 0.5
        requests = control.requests
        await asyncio.sleep(0.3)
        assert control.requests - requests <= 1


async def test_faults_of_cluster_and_control_plane_delay_and_lose_nothing() -> None:
    faults = (Fault(kind="apiErrors", at_ms=0, for_ms=400, rate=0.8),)
    made = spec(faults=faults)
    control = ToyControlPlane()
    control.fails = 5
    service = simulated(control, made, create_tries=20)
    async with running(service):
        names = [node.name for node in made.nodes]
        control.offer(*(lease(f"r{n}", template=template(["x"]), node_name=names[n % 3]) for n in range(50)))
        await asyncio.sleep(0.1)
        control.fails = 10
        await control.until(lambda: len(control.released) == 50)
    assert {type(end).__name__ for end in control.ends.values()} == {"RunSucceeded"}


async def test_runs_on_a_node_that_is_gone_end() -> None:
    """Field case F054."""
    made = spec()
    lost = made.nodes[0].name
    made = msgspec.structs.replace(made, faults=(Fault(kind="Gone", at_ms=300, for_ms=60_000, node=lost),))
    control = ToyControlPlane()
    async with running(simulated(control, made)):
        control.offer(*(lease(f"r{n}", template=template(["sleep", "600"]), node_name=lost) for n in range(3)))
        await control.until(lambda: len(control.released) == 3)
    for end in control.ends.values():
        assert isinstance(end, RunFailed)
        assert end.failure.reason == f"node {lost} is gone"


async def test_cancelled_runs_stop_and_their_room_is_free_soon() -> None:
    made = spec()
    control = ToyControlPlane()
    async with running(simulated(control, made)):
        long = template(["sleep", "600"])
        control.offer(*(lease(f"r{n}", template=long, node_name=made.nodes[0].name) for n in range(20)))
        await control.until(lambda: len([e for e in control.heard if type(e).__name__ == "RunStarted"]) == 20)
        control.cancel(*(f"r{n}" for n in range(20)))
        await control.until(lambda: len(control.released) == 20, timeout_s=2)
    assert control.ends == {}


async def test_a_service_that_stops_delivers_what_it_knows_first() -> None:
    made = spec()
    control = ToyControlPlane()
    service = simulated(control, made)
    async with running(service):
        control.offer(lease("r", template=template(["x"]), node_name=made.nodes[0].name))
        await control.until(lambda: "r" in control.released)
    assert service.figures().facts_waiting == 0


async def test_facts_are_dated_by_the_clock_as_it_is_set_now() -> None:
    """The executor's own clock goes on evenly; when the machine's is set meanwhile, facts still tell its time."""
    made = spec()
    control = ToyControlPlane()
    ahead_ms = 7_200_000
    service = ExecutorService(
        cluster=PacedCluster(SimulatedCluster(made, 1), steady_clock_ms),
        control_plane=control,
        settings=settings(executor_id=made.executor_id, keeps_journal=False),
        clock_ms=steady_clock_ms,
        wall_ms=lambda: steady_clock_ms() + ahead_ms,
    )
    async with running(service):
        control.offer(lease("r", template=template(["x"]), node_name=made.nodes[0].name))
        await control.until(lambda: "r" in control.ends)
    assert {abs(event.at_ms - steady_clock_ms() - ahead_ms) < 60_000 for event in control.heard} == {True}


class RefusingControlPlane(ToyControlPlane):
    """Refuses every report that has a fact about run `bad`."""

    async def report(self, sequences: tuple[JobSetEvents, ...]) -> None:
        if any(getattr(event, "run_id", "") == "bad" for one in sequences for event in one.events):
            raise InvalidRequest("no such thing")
        await super().report(sequences)


async def test_a_refused_fact_does_not_hold_up_the_others() -> None:
    made = spec()
    control = RefusingControlPlane()
    service = simulated(control, made)
    async with running(service):
        names = ("a", "bad", "b", "c")
        control.offer(*(lease(name, template=template(["x"]), node_name=made.nodes[0].name) for name in names))
        await control.until(lambda: len(control.ends) == 3)
        await control.until(lambda: service.figures().facts_dropped >= 3)
    assert sorted(control.ends) == ["a", "b", "c"]


# -- over gRPC


class ServedControlPlane(ExecutorApiServicer):
    """The toy control plane as `executorapi.ExecutorApi`."""

    def __init__(self, control: ToyControlPlane) -> None:
        self.control = control
        self.fleet = ReportedFleet()
        self.metadata: list[dict[str, Any]] = []

    async def LeaseJobRuns(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        known = dict(context.invocation_metadata())
        self.metadata.append(known)
        async for message in requests:
            reply = await self.control.lease(self.fleet.request(message), int(known.get(HOLD_METADATA, "0")))
            for answer in lease_reply_messages(reply):
                yield answer
            return

    async def ReportEvents(self, request: Any, context: Any) -> Any:
        self.metadata.append(dict(context.invocation_metadata()))
        await self.control.report(executor_report(request, 0).sequences)
        return empty()


@asynccontextmanager
async def served(*servicers: object) -> AsyncIterator[str]:
    def crashed(method: str, request_id: str, error: BaseException) -> None:
        raise AssertionError((method, request_id)) from error

    server = grpc.aio.server(interceptors=[ErrorsAnswered(crashed)])
    register(server, *servicers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def test_the_link_speaks_the_executor_protocol() -> None:
    made = spec()
    control = ToyControlPlane()
    servicer = ServedControlPlane(control)
    async with served(servicer) as address, GrpcControlPlane.channel(address) as channel:
        service = simulated(control, made)
        service._control_plane = GrpcControlPlane(channel, made.executor_id)
        async with running(service):
            control.offer(*(lease(f"r{n}", template=template(["x"]), node_name=made.nodes[0].name) for n in range(20)))
            await control.until(lambda: len(control.released) == 20)
            requests = control.requests
            await asyncio.sleep(0.3)
            assert control.requests - requests <= 1  # held open
    assert {type(end).__name__ for end in control.ends.values()} == {"RunSucceeded"}
    assert any(known.get(HOLD_METADATA) == "10000" for known in servicer.metadata)
    assert all(known[EXECUTOR_METADATA] == made.executor_id for known in servicer.metadata)


async def test_errors_of_the_link() -> None:
    class Refusing(ToyControlPlane):
        async def lease(self, request: LeaseRequest, hold_ms: int = 0) -> LeaseReply:
            raise NotFound(f"no executor {request.executor_id} {hold_ms}")

    request = LeaseRequest(executor_id="e", pool="p", nodes=())
    async with served(ServedControlPlane(Refusing())) as address, GrpcControlPlane.channel(address) as channel:
        link = GrpcControlPlane(channel, "e")
        with pytest.raises(NotFound, match="no executor e 0"):
            await link.lease(request)
    async with GrpcControlPlane.channel("127.0.0.1:1") as channel:
        with pytest.raises(Unavailable):
            await GrpcControlPlane(channel, "e").lease(request)
        fact = RunFailed(at_ms=1, job_id="j", run_id="r", failure=Failure(reason="x"))
        with pytest.raises(Unavailable):
            await GrpcControlPlane(channel, "e").report((JobSetEvents("q", "s", (fact,)),))


# -- processes, killed at random

DRIVER = """
import asyncio, sys
from pathlib import Path
from armada.executor.journal import Journal
from armada.executor.link import GrpcControlPlane
from armada.executor.machine.node import ProcessSettings
from armada.executor.processes import ProcessCluster
from armada.executor.clock import wall_clock_ms
from armada.executor.service import ExecutorService
from tests.unit.executor.builders import settings

async def main():
    folder, address = Path(sys.argv[1]), sys.argv[2]
    cluster = ProcessCluster(folder / "pods", executor_id="e", pool="p", clock_ms=wall_clock_ms,
                             settings=ProcessSettings(node_name="here"))
    async with GrpcControlPlane.channel(address) as channel:
        service = ExecutorService(cluster=cluster, control_plane=GrpcControlPlane(channel, "e"),
                                  settings=settings(), journal=Journal(folder / "e.journal"))
        await service.start()
        await service.run()

asyncio.run(main())
"""


@pytest.mark.timeout(180)
async def test_kill_9_at_random_moments_runs_everything_exactly_once(tmp_path: Path) -> None:
    control = ToyControlPlane()
    chance = Random(7)
    kills, per_kill = 8, 12
    count = kills * per_kill

    def offered(n: int) -> Any:
        trace = tmp_path / f"trace-{n}"
        pause = f"0.{chance.randrange(1, 9)}"
        script = f"echo start >> {trace}; sleep {pause}; echo end >> {trace}; exit {n % 3}"
        return lease(f"r{n}", template=template(["sh", "-c", script]), node_name="here")

    async with served(ServedControlPlane(control)) as address:

        async def driver() -> asyncio.subprocess.Process:
            return await asyncio.create_subprocess_exec(sys.executable, "-c", DRIVER, str(tmp_path), address)

        process = await driver()
        try:
            for kill in range(kills):
                requests = control.requests
                await control.until(lambda before=requests: control.requests > before, timeout_s=60)
                for n in range(kill * per_kill, (kill + 1) * per_kill):
                    control.offer(offered(n))
                    await asyncio.sleep(chance.uniform(0, 0.08))
                process.kill()
                await process.wait()
                process = await driver()
            await control.until(lambda: len(control.released) == count, timeout_s=60)
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()
            await asyncio.to_thread(kill_strays, frozenset(control.leases))
    for n in range(count):
        assert (tmp_path / f"trace-{n}").read_text().split() == ["start", "end"]
        end = control.ends[f"r{n}"]
        assert type(end).__name__ == ("RunSucceeded" if n % 3 == 0 else "RunFailed")
        if isinstance(end, RunFailed):
            assert end.failure.containers[0].exit_code == n % 3


async def test_a_pod_removed_while_the_executor_was_away_is_told_and_not_run_again(tmp_path: Path) -> None:
    control = ToyControlPlane()
    trace = tmp_path / "trace"

    def made() -> ExecutorService:
        cluster = ProcessCluster(
            tmp_path / "pods",
            executor_id="e",
            pool="p",
            clock_ms=wall_clock_ms,
            settings=ProcessSettings(node_name="here"),
        )
        return ExecutorService(
            cluster=cluster, control_plane=control, settings=settings(), journal=Journal(tmp_path / "journal")
        )

    script = f"echo start >> {trace}; sleep 300"
    async with running(made()):
        control.offer(lease("r", template=template(["sh", "-c", script]), node_name="here"))
        await control.until(lambda: "RunStarted" in control.heard_of("r") and trace.exists())
    await asyncio.to_thread(kill_strays, frozenset(("r",)))
    (tmp_path / "pods" / "r").rename(tmp_path / "elsewhere")
    async with running(made()):
        await control.until(lambda: "r" in control.released)
    assert trace.read_text() == "start\n"
    end = control.ends["r"]
    assert isinstance(end, RunFailed)
    assert end.failure.subcategory == "externally-deleted"


async def test_output_of_pods_by_job(tmp_path: Path) -> None:
    cluster = ProcessCluster(
        tmp_path, executor_id="e", pool="p", clock_ms=wall_clock_ms, settings=ProcessSettings(node_name="here")
    )
    control = ToyControlPlane()
    service = ExecutorService(cluster=cluster, control_plane=control, settings=settings(keeps_journal=False))
    other = simulated(ToyControlPlane(), spec())
    async with running(service), running(other):
        control.offer(lease("r", template=template(["sh", "-c", "echo one; echo two"]), node_name="here"))
        await control.until(lambda: "r" in control.ends)
        output = PodOutput(lambda job_id: [other, service] if job_id else [])
        lines = await output.read("job-r")
        assert [text for _, text in lines][1:] == ["one", "two"]
        assert await output.read("job-r", 0, "default", lines[1][0]) == lines[2:]
        assert await output.read("job-r", tail_lines=1) == lines[2:]
        for arguments, error in ((("nobody",), NotFound), (("job-r", 1), NotFound), (("",), InvalidRequest)):
            with pytest.raises(error):
                await output.read(*arguments)
        with pytest.raises(InvalidRequest, match="since_time"):
            await output.read("job-r", since="yesterday")

        async def admit(call: Any) -> None:
            assert call is not None

        async with served(ExecutorLogs(output, admit)) as address, GrpcControlPlane.channel(address) as channel:
            answer = await LogStub(channel).Logs(LogMessage(job_id="job-r", since_time=lines[0][0]))
            assert [(line.timestamp, line.line) for line in answer.log] == lines[1:]
        assert [line.text for line in await service.read_log(LogRequest(run_id="r"))][1:] == ["one", "two"]
        await cluster.delete([PodDeletion("r", 0)])


async def test_a_cluster_that_can_not_be_opened_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cluster = ProcessCluster(tmp_path / "file", executor_id="e", pool="p", clock_ms=wall_clock_ms)
    with pytest.raises(StartupRefused):
        await ExecutorService(cluster=cluster, control_plane=ToyControlPlane(), settings=settings()).start()
