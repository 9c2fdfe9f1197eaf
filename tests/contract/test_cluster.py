"""The contract of the cluster port (`armada.executor.cluster`): this machine's processes, and a simulated cluster.

Each test carries the number of the point it proves.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from armada.executor.clock import wall_clock_ms
from armada.executor.cluster import Cluster, LogLine, LogRequest, Outcome, PodDeletion
from armada.executor.machine.node import ProcessSettings
from armada.executor.paced import PacedCluster
from armada.executor.pods import Pod, PodOrder, order_for
from armada.executor.processes import ProcessCluster
from armada.model.errors import InvalidRequest, NotFound
from armada.simulation.cluster import SimulatedCluster
from armada.simulation.fleet import Behaviour, Distribution, uniform_fleet
from tests.unit.executor.builders import lease, template

PHASES = ("pending", "running", "succeeded", "failed")
_names = itertools.count()


class Watched:
    """A cluster with all that it said: every state of every pod, in order, and what is gone."""

    def __init__(self, cluster: Cluster, node_name: str) -> None:
        self.cluster = cluster
        self.node_name = node_name
        self.states: dict[str, list[Pod]] = {}
        self.gone: list[str] = []
        self._watching: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()

    async def open(self) -> None:
        for pod in (await self.cluster.list()).pods:
            self.states.setdefault(pod.run_id, []).append(pod)
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            changes = await self.cluster.changes()
            for pod in changes.pods:
                self.states.setdefault(pod.run_id, []).append(pod)
            self.gone.extend(gone.run_id for gone in changes.gone)
            self._stirred.set()

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self.cluster.close()

    async def until(self, run_id: str, *phases: str) -> Pod:
        """Wait until the pod is seen in one of these phases."""
        async with asyncio.timeout(20):
            while True:
                self._stirred.clear()
                states = self.states.get(run_id, ())
                if states and states[-1].phase in phases:
                    return states[-1]
                await self._stirred.wait()

    async def until_gone(self, run_id: str) -> None:
        """Wait until the pod is reported gone."""
        async with asyncio.timeout(20):
            while run_id not in self.gone:
                self._stirred.clear()
                await self._stirred.wait()

    def order(self, command: Sequence[str] = ("sleep", "0.05"), run_id: str = "", **spec: Any) -> PodOrder:
        name = run_id or f"run-{next(_names)}"
        made = template(command, labels={"team": "a"}, **spec)
        return order_for(lease(name, template=made, node_name=self.node_name))

    async def create(self, *orders: PodOrder) -> list[Outcome]:
        return [creation.outcome for creation in await self.cluster.create(orders)]

    async def log(self, run_id: str, **more: Any) -> list[LogLine]:
        return list(await self.cluster.read_log(LogRequest(run_id=run_id, **more)))


def processes(folder: Path) -> Watched:
    settings = ProcessSettings(node_name="here", totals={"cpu": "64"}, labels={"zone": "z1"})
    cluster = ProcessCluster(folder, executor_id="e", pool="p", clock_ms=wall_clock_ms, settings=settings)
    return Watched(cluster, "here")


def simulated(folder: Path) -> Watched:
    del folder
    spec = uniform_fleet(1, 2).clusters[0]
    quick = Behaviour(start_delay=Distribution("uniform", 1, 5), stop_delay=Distribution("constant", 5))
    spec = msgspec.structs.replace(spec, behaviour=quick)
    return Watched(PacedCluster(SimulatedCluster(spec), wall_clock_ms), spec.nodes[0].name)


@pytest.fixture(params=[processes, simulated], ids=["processes", "simulated"])
async def watched(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Watched]:
    watched: Watched = request.param(tmp_path / "pods")
    await watched.open()
    yield watched
    listing = await watched.cluster.list()
    await watched.cluster.delete([PodDeletion(pod.run_id, 0) for pod in listing.pods])
    for pod in listing.pods:
        await watched.until_gone(pod.run_id)
    await watched.close()


async def test_1_a_created_pod_shows_up_with_its_names(watched: Watched) -> None:
    order = watched.order()
    assert await watched.create(order) == [Outcome.CREATED]
    pod = await watched.until(order.run_id, *PHASES)
    assert (pod.run_id, pod.job_id, pod.queue, pod.job_set) == (order.run_id, f"job-{order.run_id}", "q", "s")
    assert (pod.name, pod.namespace, pod.node_name) == (f"armada-job-{order.run_id}-0", "default", watched.node_name)
    assert pod.uid
    assert abs(pod.created_ms - wall_clock_ms()) < 20_000


async def test_2_a_run_has_at_most_one_pod(watched: Watched) -> None:
    order = watched.order(["sleep", "5"])
    assert await watched.create(order) == [Outcome.CREATED]
    first = await watched.until(order.run_id, "running")
    assert await watched.create(order, order) == [Outcome.ALREADY_THERE, Outcome.ALREADY_THERE]
    (pod,) = [pod for pod in (await watched.cluster.list()).pods if pod.run_id == order.run_id]
    assert (pod.uid, pod.started_ms) == (first.uid, first.started_ms)


async def test_3_phases_only_move_forward(watched: Watched) -> None:
    orders = [watched.order(["sleep", "0.1"]) for _ in range(5)]
    await watched.create(*orders)
    for order in orders:
        await watched.until(order.run_id, "succeeded")
        ranks = [PHASES.index(pod.phase) for pod in watched.states[order.run_id]]
        assert ranks == sorted(ranks)
        assert len({(pod.name, pod.node_name, pod.uid, pod.created_ms) for pod in watched.states[order.run_id]}) == 1


async def test_4_nothing_is_lost_between_list_and_changes(watched: Watched) -> None:
    orders = [watched.order(["sleep", "0.05"]) for _ in range(10)]
    for order in orders:
        await watched.create(order)
        for pod in (await watched.cluster.list()).pods:
            watched.states.setdefault(pod.run_id, []).append(pod)
    for order in orders:
        await watched.until(order.run_id, "succeeded")


async def test_5_an_end_stays_as_it_was(watched: Watched) -> None:
    order = watched.order(["sh", "-c", "sleep 0.05; exit 3"])
    await watched.create(order)
    ended = await watched.until(order.run_id, "failed")
    (container,) = ended.containers
    assert (container.name, container.exit_code) == ("main", 3)
    assert ended.created_ms <= ended.started_ms <= ended.finished_ms == container.finished_ms
    await asyncio.sleep(0.2)
    (listed,) = [pod for pod in (await watched.cluster.list()).pods if pod.run_id == order.run_id]
    assert listed == ended


async def test_6_a_deletion_ends_what_runs_and_is_told_once(watched: Watched) -> None:
    order = watched.order(["sleep", "60"], terminationGracePeriodSeconds=10)
    await watched.create(order)
    await watched.until(order.run_id, "running")
    await watched.cluster.delete([PodDeletion(order.run_id), PodDeletion("nobody")])
    await watched.cluster.delete([PodDeletion(order.run_id)])
    await watched.until_gone(order.run_id)
    await watched.cluster.delete([PodDeletion(order.run_id)])
    await asyncio.sleep(0.1)
    assert watched.gone.count(order.run_id) == 1
    assert order.run_id not in [pod.run_id for pod in (await watched.cluster.list()).pods]


async def test_6_a_deletion_of_an_ended_pod_is_over_at_once(watched: Watched) -> None:
    order = watched.order(["sleep", "0.01"])
    await watched.create(order)
    await watched.until(order.run_id, "succeeded")
    await watched.cluster.delete([PodDeletion(order.run_id)])
    await watched.until_gone(order.run_id)


async def test_6_only_pending_leaves_a_started_pod_alone(watched: Watched) -> None:
    order = watched.order(["sleep", "0.3"])
    await watched.create(order)
    await watched.until(order.run_id, "running")
    await watched.cluster.delete([PodDeletion(order.run_id, 0, only_pending=True)])
    await watched.until(order.run_id, "succeeded")


async def test_7_what_is_gone_never_changes_again(watched: Watched) -> None:
    orders = [watched.order(["sleep", "0.05"]) for _ in range(5)]
    await watched.create(*orders)
    await watched.cluster.delete([PodDeletion(order.run_id, 0) for order in orders])
    for order in orders:
        await watched.until_gone(order.run_id)
    counts = {order.run_id: len(watched.states.get(order.run_id, ())) for order in orders}
    await asyncio.sleep(0.3)
    assert counts == {order.run_id: len(watched.states.get(order.run_id, ())) for order in orders}


async def test_8_a_bad_order_harms_no_other(watched: Watched) -> None:
    bad = order_for(
        lease(
            "bad",
            template=msgspec.structs.replace(template(), pod_spec=b'{"containers": []}'),
            node_name=watched.node_name,
        )
    )
    broken = order_for(
        lease("broken", template=msgspec.structs.replace(template(), pod_spec=b"{"), node_name=watched.node_name)
    )
    good = watched.order()
    creations = await watched.cluster.create([bad, broken, good])
    assert [creation.outcome for creation in creations] == [Outcome.REFUSED, Outcome.REFUSED, Outcome.CREATED]
    assert [creation.run_id for creation in creations] == ["bad", "broken", good.run_id]
    assert "container" in creations[0].message
    assert creations[1].message
    await watched.until(good.run_id, "succeeded")


async def test_9_logs_are_there_until_the_pod_is_deleted(watched: Watched) -> None:
    order = watched.order(["sh", "-c", "echo one; echo two; sleep 0.05"])
    await watched.create(order)
    await watched.until(order.run_id, "succeeded")
    lines = await watched.log(order.run_id)
    assert len(lines) >= 2
    times = [line.time_ns for line in lines]
    assert times == sorted(set(times))
    assert await watched.log(order.run_id, since_ns=times[-2]) == lines[-1:]
    assert await watched.log(order.run_id, since_ns=times[-1]) == []
    assert await watched.log(order.run_id, tail_lines=1) == lines[-1:]
    assert await watched.log("", job_id=f"job-{order.run_id}") == lines
    with pytest.raises(InvalidRequest, match="no container 'other'"):
        await watched.log(order.run_id, container="other")
    await watched.cluster.delete([PodDeletion(order.run_id)])
    await watched.until_gone(order.run_id)
    for request in (LogRequest(run_id=order.run_id), LogRequest(run_id="nobody"), LogRequest(job_id="nobody")):
        with pytest.raises(NotFound):
            await watched.cluster.read_log(request)


async def test_10_a_deadline_fails_the_pod(watched: Watched) -> None:
    order = watched.order(["sleep", "60"], activeDeadlineSeconds=1, terminationGracePeriodSeconds=5)
    await watched.create(order)
    pod = await watched.until(order.run_id, "failed", "succeeded")
    assert (pod.phase, pod.reason) == ("failed", "DeadlineExceeded")
    assert "deadline" in pod.message
    assert 900 <= pod.finished_ms - pod.created_ms < 8_000


async def test_11_nodes_are_listed_and_others_refused(watched: Watched) -> None:
    nodes = {node.name: node for node in (await watched.cluster.list()).nodes}
    node = nodes[watched.node_name]
    assert node.labels["kubernetes.io/hostname"] == node.name
    assert {"cpu", "memory", "ephemeral-storage", "pods"} <= set(node.total)
    elsewhere = order_for(lease("elsewhere", node_name="not-here"))
    (creation,) = await watched.cluster.create([elsewhere])
    assert creation.outcome == Outcome.NO_NODE
    assert "not-here" in creation.message


async def test_12_an_idle_cluster_waits(watched: Watched) -> None:
    await asyncio.sleep(0.1)
    assert watched.states == {}
    assert watched.gone == []


async def test_12_going_on_when_nothing_waits_changes_nothing(watched: Watched) -> None:
    order = watched.order()
    await watched.create(order)
    await watched.cluster.proceed()
    assert (await watched.until(order.run_id, "succeeded", "failed")).phase == "succeeded"
    states = len(watched.states[order.run_id])
    await watched.cluster.proceed()
    await asyncio.sleep(0.1)
    assert len(watched.states[order.run_id]) == states


async def test_13_all_main_containers_must_succeed(watched: Watched) -> None:
    containers = [
        {"name": "good", "image": "x", "command": ["sleep", "0.05"]},
        {"name": "bad", "image": "x", "command": ["sh", "-c", "sleep 0.05; exit 4"]},
    ]
    order = watched.order(containers=containers)
    await watched.create(order)
    pod = await watched.until(order.run_id, "failed", "succeeded")
    assert pod.phase == "failed"
    assert {container.name for container in pod.containers} == {"good", "bad"}
    assert {c.name: c.exit_code for c in pod.containers}["bad"] == 4


async def test_13_success_is_exit_code_0_everywhere(watched: Watched) -> None:
    containers = [{"name": f"c{number}", "image": "x", "command": ["sleep", "0.05"]} for number in range(3)]
    order = watched.order(containers=containers)
    await watched.create(order)
    pod = await watched.until(order.run_id, "failed", "succeeded")
    assert pod.phase == "succeeded"
    assert [container.exit_code for container in pod.containers] == [0, 0, 0]
