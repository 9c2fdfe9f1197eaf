"""Runs whose node changed under them (rows P1 to P3), and nodes that vanish (F054)."""

from typing import Any

import pytest

from armada.control.ending.reconciliation import Reconciliation, is_meant_for, reservation_of
from armada.model.events import (
    JobFailed,
    JobPreempted,
    RunFailed,
    RunPreempted,
    RunsReleased,
)
from armada.model.fleet import Taint
from armada.model.jobs import RESERVATION, JobShape, Toleration
from armada.model.policy import (
    PoolPolicy,
    ReconciliationPolicy,
    SchedulingPolicy,
)
from armada.scheduling.round import schedule
from armada.state.ledger import Ledger
from tests.unit.control.driving import PREEMPTIBLE, Driver
from tests.unit.control.reconciling import (
    CADENCE,
    NODE_TIMEOUT_MS,
    SOLID,
    STRICT,
    driver,
    moved,
    on,
    only,
    placed,
    vanished,
)
from tests.unit.control.world import fact, gang_item, item, node, pod

# -- pools -------------------------------------------------------------------------------------------------------------


def test_a_gang_is_preempted_when_the_node_of_one_moves_to_another_pool() -> None:
    """P1."""
    here = driver()
    here.nodes("n1", "n2", "n3")
    whole_node = pod(cpu="8", priorityClassName="armada-preemptible")
    first, second, alone = placed(here, gang_item("g", 2, whole_node), gang_item("g", 2, whole_node), item(whole_node))
    name = on(here, second)
    moved(here, name, pool="other")
    here.world.now_ms += 5
    assert here.run() == ["RunPreempted", "JobPreempted"] * 2
    lost = [event for event in here.events(RunPreempted) if isinstance(event, RunPreempted)]
    assert [event.job_id for event in lost] == [first, second]
    for event in lost:
        # 27.10: the time of the preemption is kept.
        assert (event.kind, event.at_ms) == ("reconciler", here.world.now_ms)
        assert f"with gang 'g': job {second}: its node {name} is in pool other now" in event.reason
        assert first not in event.reason
    assert here.world.state(alone) == "leased"


def test_a_job_that_can_not_be_preempted_fails() -> None:
    """P2."""
    here = driver()
    (job_id,) = placed(here, item(SOLID))
    moved(here, on(here, job_id), pool="other")
    assert here.run() == ["RunFailed", "JobFailed"]
    failure = only(here, JobFailed).failure
    assert (failure.kind, failure.category, failure.subcategory) == (
        "reconciliation",
        "internal",
        "reconciliation-error",
    )
    assert here.world.state(job_id) == "failed"


def test_siblings_of_a_job_that_fails_stay() -> None:
    here = driver()
    first, second = placed(here, gang_item("g", 2, pod(cpu="8")), gang_item("g", 2, pod(cpu="8")))
    moved(here, on(here, first), pool="other")
    here.run()
    assert (here.world.state(first), here.world.state(second)) == ("failed", "leased")


def test_a_node_may_move_to_an_away_pool() -> None:
    here = driver()
    (job_id,) = placed(here, item(SOLID))
    moved(here, on(here, job_id), pool="guest")
    assert here.run() == []


def test_pools_that_do_not_ask_lose_nothing() -> None:
    here = driver(None)
    (job_id,) = placed(here, item(SOLID))
    moved(here, on(here, job_id), pool="other")
    assert here.run() == []
    assert here.world.state(job_id) == "leased"


def test_a_preempted_job_waits_again_where_its_queue_says_so() -> None:
    here = driver()
    job = item(PREEMPTIBLE, annotations={"armadaproject.io/requeuePreempted": "true"})
    (job_id,) = placed(here, job)
    moved(here, on(here, job_id), pool="other")
    assert here.run() == ["RunPreempted", "JobRequeued", "RunLeased"]


# -- reservations ------------------------------------------------------------------------------------------------------


def test_the_reservation_of_a_node_is_its_taints_value() -> None:
    assert reservation_of(node("n", taints=())) == "none"
    assert reservation_of(node("n", taints=(Taint(RESERVATION, "", "NoSchedule"),))) == "unspecified"
    assert reservation_of(node("n", taints=(Taint(RESERVATION, "blue", "NoSchedule"),))) == "blue"


@pytest.mark.parametrize(
    ("toleration", "reservation", "meant"),
    [
        (Toleration(RESERVATION, "Equal", "blue"), "blue", (True, True)),
        (Toleration(RESERVATION, "Equal", "blue"), "red", (False, False)),
        (Toleration(RESERVATION, "Equal", "blue"), "none", (False, False)),
        (Toleration(RESERVATION, "Equal", ""), "unspecified", (True, True)),
        (Toleration(RESERVATION, "Exists"), "red", (True, False)),
        (Toleration(RESERVATION, "Exists"), "none", (False, False)),
        (Toleration("other", "Equal", "blue"), "blue", (False, False)),
        (Toleration("", "Exists"), "blue", (False, False)),
    ],
)
def test_a_job_is_meant_for_the_reservation_it_names(
    toleration: Toleration, reservation: str, meant: tuple[bool, bool]
) -> None:
    shape = JobShape(requests=(), priority_class="", tolerations=(toleration,))
    assert tuple(is_meant_for(shape, reservation, in_doubt=doubt) for doubt in (True, False)) == meant


def tolerating(value: str) -> Any:
    toleration = {"key": RESERVATION, "operator": "Equal", "value": value, "effect": "NoSchedule"}
    return item(pod(cpu="4", priorityClassName="armada-preemptible", tolerations=[toleration]))


def test_a_reservation_that_must_match_and_changes_ends_the_run() -> None:
    here = driver(ReconciliationPolicy(reservation_must_match=True))
    for name in ("n1", "n2"):
        moved(here, name, taints=(Taint(RESERVATION, "blue", "NoSchedule"),))
    (job_id,) = placed(here, tolerating("blue"))
    assert here.run() == []
    moved(here, on(here, job_id), taints=(Taint(RESERVATION, "red", "NoSchedule"),))
    assert here.run() == ["RunPreempted", "JobPreempted"]
    assert "'red'" in only(here, RunPreempted).reason


def test_a_job_leaves_a_node_that_gets_its_reservation_where_it_must_not_match() -> None:
    here = driver(ReconciliationPolicy(reservation_must_not_match=True))
    (stays, goes) = placed(here, item(PREEMPTIBLE), tolerating("blue"))
    for name in ("n1", "n2"):
        moved(here, name, taints=(Taint(RESERVATION, "blue", "NoSchedule"),))
    assert here.run() == ["RunPreempted", "JobPreempted"]
    assert only(here, RunPreempted).job_id == goes
    assert here.world.state(stays) == "leased"


def test_a_lease_onto_a_node_that_has_changed_meanwhile_is_seen() -> None:
    here = driver()
    (job_id,) = here.world.submit(item(SOLID))
    here.notice()
    step = here.step()
    assert step.round is not None
    decisions = schedule(step.round.snapshot, step.round.seed)
    for name in ("n1", "n2"):
        moved(here, name, pool="other")
    here.notice()
    outcome = here.leader.finish(here.world.ledger, step.round, decisions, here.world.now_ms)
    here.store(outcome.sequences, step.epoch)
    assert here.run() == ["RunFailed", "JobFailed"]
    assert here.world.state(job_id) == "failed"


# -- new leaders, errors, costs ----------------------------------------------------------------------------------------


def test_a_new_leader_looks_at_everything_once() -> None:
    here = driver()
    first, second = placed(here, item(SOLID), item(PREEMPTIBLE))
    moved(here, on(here, first), pool="other")
    fresh = Reconciliation(here.world.policy, NODE_TIMEOUT_MS, 1_000)
    decided = fresh.decide(here.world.ledger, lambda *_: True, here.world.now_ms)
    ended = {event.job_id for part in decided.sequences for event in part.events if isinstance(event, RunFailed)}
    assert ended == {first}
    assert second not in ended
    assert fresh.decide(here.world.ledger, lambda *_: True, here.world.now_ms).sequences == ()
    fresh.begin_again()
    assert fresh.decide(here.world.ledger, lambda *_: True, here.world.now_ms).sequences == decided.sequences


def test_a_replica_that_does_not_lead_gathers_nothing() -> None:
    here = driver()
    placed(here, item(SOLID), item(PREEMPTIBLE))
    vanished(here, "n1")
    follower = Reconciliation(here.world.policy, NODE_TIMEOUT_MS, 1_000)
    for entry in here.world.entries:
        follower.notice(entry)
    assert not any(value for value in vars(follower).values() if isinstance(value, dict))


def test_an_error_stays_with_its_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    both = (
        PoolPolicy(name="default", reconciliation=ReconciliationPolicy()),
        PoolPolicy(name="second", reconciliation=ReconciliationPolicy()),
    )
    here = Driver(SchedulingPolicy(pools=both), CADENCE)
    here.nodes("n1")
    here.world.report_nodes(node("m1", "west", pool="second"), executor_id="west", pool="second")
    here.heard("west")
    (of_default,) = placed(here, item(pod(cpu="8")))
    (of_second,) = placed(here, item(pod(cpu="8")))
    decided = Reconciliation(here.world.policy, NODE_TIMEOUT_MS, 1_000)
    assert decided.decide(here.world.ledger, lambda *_: True, 0).sequences == ()
    for name, executor_id in (("n1", "east"), ("m1", "west")):
        here.world.report_nodes(node(name, executor_id, pool="third"), executor_id=executor_id)
    for entry in here.world.entries[-2:]:
        decided.notice(entry)
    job = Ledger.job

    def broken(ledger: Ledger, job_id: str) -> Any:
        if job_id == of_default:
            raise RuntimeError("a row that makes no sense")
        return job(ledger, job_id)

    monkeypatch.setattr(Ledger, "job", broken)
    found = decided.decide(here.world.ledger, lambda *_: True, 0)
    assert [event.job_id for part in found.sequences for event in part.events] == [of_second] * 2  # type: ignore[union-attr]  # both are facts about jobs
    assert list(decided.errors) == ["default"]
    assert "a row that makes no sense" in decided.errors["default"]
    assert decided.due_ms() == 1_000
    assert decided.decide(here.world.ledger, lambda *_: True, 999).sequences == ()
    monkeypatch.undo()
    again = decided.decide(here.world.ledger, lambda *_: True, 1_000)
    assert [event.job_id for part in again.sequences for event in part.events] == [of_default] * 2  # type: ignore[union-attr]  # as above
    assert decided.errors == {}


def test_what_does_not_change_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    here = driver()
    placed(here, *[item(pod(cpu="1")) for _ in range(8)])
    here.run()
    looked_at: list[str] = []
    run = Ledger.run

    def counted(ledger: Ledger, run_id: str) -> Any:
        looked_at.append(run_id)
        return run(ledger, run_id)

    monkeypatch.setattr(Ledger, "run", counted)
    here.world.report_nodes(node("n1", unallocatable={0: {"cpu": "100m"}}))
    here.run()
    assert looked_at == []


def test_what_was_preempted_was_preempted_for_a_reason_that_users_see() -> None:
    here = driver()
    (job_id,) = placed(here, item(PREEMPTIBLE))
    moved(here, on(here, job_id), pool="other")
    here.run()
    assert only(here, JobPreempted).failure.reason == only(here, RunPreempted).reason


@pytest.mark.parametrize("round_fails", [False, True])
def test_a_node_that_moves_is_not_filled_twice(*, round_fails: bool) -> None:
    """F039: what may be preempted is, with its gang; what may not fails; the new pool waits for the room."""
    pools = (PoolPolicy(name="default", reconciliation=STRICT), PoolPolicy(name="second"))
    here = Driver(SchedulingPolicy(pools=pools), CADENCE)
    here.nodes("n1", cpu="4")
    small = pod(cpu="1", priorityClassName="armada-preemptible")
    low = placed(here, item(small), item(small))
    (firm,) = placed(here, item(pod(cpu="1")))
    here.nodes("n1", cpu="4")
    here.world.report_nodes(node("n1", cpu="4"), node("n2", cpu="1"))
    gang = placed(here, gang_item("g", 2, small), gang_item("g", 2, small))
    assert {on(here, job_id) for job_id in gang} == {"n1", "n2"}
    waiting = here.world.submit(*[item(pod(cpu="1")) for _ in range(10)])
    here.run()
    moved(here, "n1", pool="second", cpu="4")
    if round_fails:
        here.notice()
        facts = here.step()
        here.leader.interrupted(here.world.ledger, here.world.now_ms)
        assert facts.sequences
    here.run()
    assert {here.world.state(job_id) for job_id in (*low, *gang)} == {"preempted"}
    assert here.world.state(firm) == "failed"
    assert [event.job_id for event in here.events(JobFailed) if isinstance(event, JobFailed)] == [firm]
    ended = here.world.ledger.runs_to_end("east")
    assert len(ended) == 5
    on_n1 = [run_id for run_id in ended if run_on(here, run_id) == "n1"]
    assert all(here.world.state(job_id) == "queued" for job_id in waiting)
    here.world.store(fact(RunsReleased(at_ms=here.world.now_ms, run_ids=tuple(on_n1))))
    here.run()
    assert sum(here.world.state(job_id) == "leased" for job_id in waiting) == 4


def run_on(here: Driver, run_id: str) -> str:
    run = here.world.ledger.run(run_id)
    assert run is not None
    return run.node_name
