"""A fleet whose nodes change under their jobs."""

from typing import Any

from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    ExecutorReported,
)
from armada.model.policy import (
    PoolPolicy,
    ReconciliationPolicy,
    SchedulingPolicy,
)
from tests.unit.control.driving import Driver
from tests.unit.control.world import fact, node, pod

STRICT = ReconciliationPolicy()
SOLID = pod(cpu="4")
NODE_TIMEOUT_MS = 60_000
CADENCE = Cadence(round_delay_ms=0, fleet_settle_ms=0, node_timeout_ms=NODE_TIMEOUT_MS)


def policy(rules: ReconciliationPolicy | None = STRICT, **more: Any) -> SchedulingPolicy:
    return SchedulingPolicy(pools=(PoolPolicy(name="default", reconciliation=rules, away_pools=("guest",)),), **more)


def driver(rules: ReconciliationPolicy | None = STRICT, **more: Any) -> Driver:
    here = Driver(policy(rules, **more), CADENCE)
    here.nodes("n1", "n2")
    return here


def placed(here: Driver, *items: Any) -> tuple[str, ...]:
    """Submit jobs and let them be leased."""
    job_ids = here.world.submit(*items)
    here.run()
    assert all(here.world.state(job_id) == "leased" for job_id in job_ids)
    return job_ids


def on(here: Driver, job_id: str) -> str:
    """Name of the node that a job runs on."""
    job = here.world.ledger.job(job_id)
    run = here.world.ledger.run(job.run_id) if job is not None else None
    assert run is not None
    return run.node_name


def moved(here: Driver, name: str, **changes: Any) -> None:
    here.world.report_nodes(node(name, **changes))


def vanished(here: Driver, *names: str) -> None:
    here.world.store(
        fact(ExecutorReported(at_ms=here.world.now_ms, executor_id="east", pool="default", gone=tuple(names)))
    )


def only(here: Driver, kind: type) -> Any:
    (event,) = here.events(kind)
    return event
