"""Small fleets and workloads for simulations, and what a finished one says about its jobs."""

from typing import Any

import yaml

from armada.model.fleet import PriorityClass
from armada.model.policy import SchedulingPolicy
from armada.simulation.whatif.reading import read_fleet_spec, read_workload_spec
from armada.simulation.whatif.results import Table
from armada.simulation.whatif.simulation import Pace, Simulation, Tick
from armada.simulation.whatif.specs import WorkloadSpec

MIXED = SchedulingPolicy(
    priority_classes=(
        PriorityClass(name="low", priority=100, preemptible=True),
        PriorityClass(name="high", priority=200, preemptible=True),
        PriorityClass(name="solid", priority=300),
    ),
    default_priority_class="low",
)


def node(number: int = 1, cpu: str = "4", **others: Any) -> dict[str, Any]:
    return {"number": number, "totalResources": {"resources": {"cpu": cpu, "memory": "64Gi"}}, **others}


def fleet(*nodes: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"clusters": [{"name": "c", "pool": "default", "nodeTemplates": list(nodes or (node(),))}], **others}


def template(number: int = 1, cpu: str = "1", minutes: float = 1, **others: Any) -> dict[str, Any]:
    return {
        "number": number,
        "requirements": {"resourceRequirements": {"requests": {"cpu": cpu, "memory": "1Gi"}}},
        "runtimeDistribution": {"minimum": f"{minutes}m"},
        **others,
    }


def queue(name: str, *templates: dict[str, Any], weight: float = 1) -> dict[str, Any]:
    return {"name": name, "weight": weight, "jobTemplates": list(templates)}


def workload(*queues: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"queues": list(queues), **others}


def read(values: dict[str, Any]) -> WorkloadSpec:
    remarks: list[str] = []
    spec = read_workload_spec(yaml.safe_dump(values), "workload", remarks)
    assert remarks == []
    return spec


def prepared(
    clusters: dict[str, Any],
    jobs: dict[str, Any] | WorkloadSpec,
    policy: SchedulingPolicy = MIXED,
    *,
    seed: int = 1,
    **pace: Any,
) -> Simulation:
    remarks: list[str] = []
    spec = read_fleet_spec(yaml.safe_dump(clusters), "clusters", remarks)
    assert remarks == []
    work = jobs if isinstance(jobs, WorkloadSpec) else read(jobs)
    return Simulation(spec, work, policy, Pace(**pace), seed)


def finished(*parts: Any, **named: Any) -> tuple[Simulation, list[Tick]]:
    simulation = prepared(*parts, **named)
    return simulation, list(simulation.ticks())


def rows(simulation: Simulation, **wanted: Any) -> list[dict[str, Any]]:
    """The jobs whose columns have the wanted values."""
    found = table_rows(simulation.results.jobs)
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def rounds(simulation: Simulation, **wanted: Any) -> list[dict[str, Any]]:
    """The rows of queues at rounds whose columns have the wanted values."""
    found = table_rows(simulation.results.queues)
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def table_rows(table: Table) -> list[dict[str, Any]]:
    """A table row by row, with None for what is not known."""
    columns = table.columns
    return [
        {name: None if value != value else value for name, value in zip(columns, values, strict=True)}  # noqa: PLR0124 - NaN
        for values in zip(*columns.values(), strict=True)
    ]
