"""A system without new work comes to rest: after so many rounds none preempts anything (docs/decisions/0027)."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armada.control.rounds.cadence import Cadence
from armada.model.events import JobSetEvents, RunPending, RunsReleased, RunStarted
from armada.model.fleet import PriorityClass
from armada.model.lifecycle import RunState
from armada.model.policy import SchedulingPolicy
from tests.oracle.strategies import problems
from tests.property.settling import Course, course, unrest_where_jobs_fail, unrest_where_jobs_wait_again
from tests.unit.control.driving import Driver
from tests.unit.control.world import fact, gang_item, item, pod

SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large]
QUEUES = ("qb", "qc", "qd")
CLASSES = (
    PriorityClass(name="armada-resilient", priority=100, preemptible=True),
    PriorityClass(name="armada-preemptible", priority=200, preemptible=True),
    PriorityClass(name="armada-urgent", priority=300, preemptible=True),
    PriorityClass(name="armada-default", priority=200),
)
JOB = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "cpu": st.sampled_from(("1", "2", "3", "5")),
        "kind": st.sampled_from([kind.name for kind in CLASSES]),
        "gang": st.sampled_from((1, 1, 1, 2, 3)),
        "wave": st.integers(0, 2),
    }
)


@pytest.mark.timeout(900)
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(problems())
def test_a_pool_whose_preempted_jobs_fail_comes_to_rest(problem: dict[str, Any]) -> None:
    assert unrest_where_jobs_fail(problem) == []


@pytest.mark.timeout(900)
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(problems())
def test_a_pool_whose_preempted_jobs_wait_again_comes_to_rest(problem: dict[str, Any]) -> None:
    assert unrest_where_jobs_wait_again(problem) == []


def test_unrest_would_be_seen() -> None:
    """A pool that needs more rounds than it is given is not quiet."""
    waiting = [{"id": f"A{number}", "queue": "A", "submitted": number, "request": {"cpu": "1"}} for number in range(3)]
    problem = {
        "executors": [{"id": "e", "nodes": [{"id": "n", "total": {"cpu": "3"}}]}],
        "queues": [{"name": "A"}],
        "config": {"maximumResourceFractionToSchedule": {"cpu": 0.3}},
        "jobs": waiting,
    }
    assert course(problem, requeues=True, rounds=3) == Course(is_quiet=False, placing=3)
    assert course(problem, requeues=True, rounds=4) == Course(is_quiet=True, placing=3)


# -- the real leader and ledger ----------------------------------------------------------------------------------------


def confirm(driver: Driver) -> None:
    """Let the executor start what it was given and release what has ended."""
    world = driver.world
    ended = []
    for run in world.ledger.runs_of_executor("east"):
        if run.state.is_terminal:
            ended.append(run.run_id)
        elif run.state is RunState.LEASED:
            started = (
                RunPending(at_ms=world.now_ms, job_id=run.job_id, run_id=run.run_id),
                RunStarted(at_ms=world.now_ms, job_id=run.job_id, run_id=run.run_id),
            )
            world.store(JobSetEvents(run.queue, run.job_set, started))
    if ended:
        world.store(fact(RunsReleased(at_ms=world.now_ms, run_ids=tuple(ended))))


@pytest.mark.timeout(900)
@settings(max_examples=40, deadline=None, suppress_health_check=SLOW_DRAWS)
@given(
    jobs=st.lists(JOB, min_size=2, max_size=14),
    nodes=st.lists(st.sampled_from(("2", "4", "8", "5")), min_size=1, max_size=3),
    factors=st.tuples(*[st.sampled_from((1.0, 2.0, 4.0))] * len(QUEUES)),
    protected=st.sampled_from((0.0, 0.5, 1.0)),
)
def test_a_leader_whose_preempted_jobs_wait_again_comes_to_rest(
    jobs: list[dict[str, Any]], nodes: list[str], factors: tuple[float, ...], protected: float
) -> None:
    policy = SchedulingPolicy(
        priority_classes=CLASSES, default_priority_class="armada-default", protected_fraction=protected
    )
    driver = Driver(policy, Cadence(round_delay_ms=0, fleet_settle_ms=0))
    for name, factor in zip(QUEUES, factors, strict=True):
        driver.world.queue(name, priority_factor=factor, labels={"armadaproject.io/requeuePreempted": "true"})
    for number, cpu in enumerate(nodes):
        driver.nodes(f"n{number}", cpu=cpu)
    count, quiet, preempting = 0, 0, 0
    for turn in range(3 + 3 * sum(job["gang"] for job in jobs)):
        arriving = [job for job in jobs if job["wave"] == turn]
        for number, job in enumerate(arriving):
            spec, size = pod(cpu=job["cpu"], priorityClassName=job["kind"]), job["gang"]
            items = [gang_item(f"g{turn}-{number}", size, spec) for _ in range(size)] if size > 1 else [item(spec)]
            count += len(driver.world.submit(*items, queue=job["queue"]))
        driver.heard("east")
        facts = driver.run()
        confirm(driver)
        driver.world.ledger.validate()
        driver.world.now_ms += 10_000
        preempting += "RunPreempted" in facts
        if turn > 2 and not facts:
            quiet += 1
            if quiet == 2:
                break
    assert quiet == 2, "the leader never rests"
    assert preempting <= count + 1
