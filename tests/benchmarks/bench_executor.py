"""What the executor costs: a job through agent, service and simulated cluster; a real process; a single job."""

import asyncio
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from armada.executor.clock import wall_clock_ms
from armada.executor.holding.retention import RetentionLimits
from armada.executor.holding.stimuli import AgentSettings
from armada.executor.machine.node import ProcessSettings
from armada.executor.paced import PacedCluster
from armada.executor.pods import order_for
from armada.executor.processes import ProcessCluster
from armada.executor.service import ExecutorService
from armada.simulation.cluster import SimulatedCluster
from armada.simulation.fleet import uniform_fleet
from tests.benchmarks.figures import Figure
from tests.unit.executor.builders import ToyControlPlane, lease, template

JOBS = 10_000
PROCESSES = 200


async def _through_simulation(jobs: int, annotation: str) -> tuple[float, float]:
    """Seconds and CPU seconds for jobs from lease to release."""
    spec = uniform_fleet(1, 100).clusters[0]
    control = ToyControlPlane()
    service = ExecutorService(
        cluster=PacedCluster(SimulatedCluster(spec), wall_clock_ms),
        control_plane=control,
        settings=AgentSettings(
            executor_id=spec.executor_id,
            pool=spec.pool,
            max_unstarted=jobs,
            keeps_journal=False,
            retention=RetentionLimits(pod_count=0),
        ),
    )
    made = template(["x"], annotations={"armadaproject.io/sim": annotation}, requests=(("cpu", "10m"),))
    leases = [lease(f"r{n}", template=made, node_name=spec.nodes[n % 100].name) for n in range(jobs)]
    await service.start()
    work = asyncio.create_task(service.run())
    await asyncio.sleep(0.05)
    seconds, cpu = time.perf_counter(), time.process_time()
    control.offer(*leases)
    await control.until(lambda: len(control.released) == jobs, timeout_s=120)
    seconds, cpu = time.perf_counter() - seconds, time.process_time() - cpu
    await service.stop()
    await work
    return seconds, cpu


async def _through_processes(pods: int) -> float:
    """Seconds for pods of one process that does nothing, one cluster's batch."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ProcessSettings(node_name="here")
        cluster = ProcessCluster(Path(folder), executor_id="e", pool="p", clock_ms=wall_clock_ms, settings=settings)
        await cluster.list()
        orders = [order_for(lease(f"r{n}", template=template(["true"]), node_name="here")) for n in range(pods)]
        seconds = time.perf_counter()
        await cluster.create(orders)
        ended: dict[str, None] = {}
        while len(ended) < pods:
            ended.update((pod.run_id, None) for pod in (await cluster.changes()).pods if pod.has_ended)
        seconds = time.perf_counter() - seconds
        await cluster.close()
        return seconds


def measure() -> Iterable[Figure]:
    """Figures of the executor alone, with a control plane that only keeps books."""
    _, cpu = asyncio.run(_through_simulation(JOBS, "start=10ms,runtime=200ms"))
    yield Figure(
        name="executor, simulated cluster and reports: CPU a job",
        value=cpu * 1_000 / JOBS,
        unit="ms",
        target=0.3,
        note=f"{JOBS:,} jobs at once, with the books of the test's control plane",
    )
    latencies = [asyncio.run(_through_simulation(1, "start=1ms,runtime=1ms"))[0] for _ in range(5)]
    yield Figure(
        name="one job of 1 ms through an idle executor, lease to release",
        value=sorted(latencies)[2] * 1_000,
        unit="ms",
        target=100,
    )
    yield Figure(
        name="pods of this machine, one process that does nothing",
        value=PROCESSES / asyncio.run(_through_processes(PROCESSES)),
        unit="pods/s",
        target=100,
        note="folder, leader, program, exit code on disk",
    )
