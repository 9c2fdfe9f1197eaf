"""What a simulation costs: ten thousand jobs of two queues on a hundred nodes, preemption and all."""

import time
from collections.abc import Iterable

from armada.model.policy import SchedulingPolicy
from armada.scheduling.readiness.warming import warm_up
from armada.simulation.whatif.simulation import Pace, Simulation
from armada.simulation.whatif.specs import (
    ClusterSpec,
    Delay,
    FleetSpec,
    NodeTemplate,
    QueueSpec,
    TemplateSpec,
    WorkloadSpec,
)
from tests.benchmarks.figures import Figure

JOBS = 5_000
"""Of each queue."""


def _jobs(name: str, cpu: str, earliest_ms: int) -> QueueSpec:
    template = TemplateSpec(
        id=name,
        place=name,
        number=JOBS,
        job_set=name,
        runtime=Delay(300_000, 600_000),
        requests=(("cpu", cpu), ("memory", "8Gi")),
        priority_class="armada-preemptible",
        earliest_ms=earliest_ms,
    )
    return QueueSpec(name=name, weight=1.0, templates=(template,))


def measure() -> Iterable[Figure]:
    """CPU seconds of the whole simulation."""
    nodes = NodeTemplate(number=100, total={"cpu": "32", "memory": "256Gi"})
    fleet = FleetSpec(name="f", clusters=(ClusterSpec(name="c", pool="default", node_templates=(nodes,)),))
    workload = WorkloadSpec(name="w", queues=(_jobs("a", "2", 0), _jobs("b", "4", 600_000)))
    warm_up()
    simulation = Simulation(fleet, workload, SchedulingPolicy(), Pace(fast_forward=True), seed=1)
    started = time.process_time()
    for _ in simulation.ticks():
        pass
    yield Figure(
        name="simulation of 10,000 jobs on 100 nodes",
        value=time.process_time() - started,
        unit="s",
        target=10,
        note=f"CPU; {simulation.results.rounds:,} rounds, {simulation.resubmitted:,} jobs preempted",
    )
