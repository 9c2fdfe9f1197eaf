"""Pools whose rounds fail: alone by default, with all others by configuration; and rounds that assertions refuse."""

import msgspec
import pytest

from armada.control.cycle import Step
from armada.control.explaining import Explaining
from armada.control.outcome import Outcome
from armada.control.rounds.deciding import RoundBroken, decide
from armada.model.policy import PoolPolicy, SchedulingPolicy
from armada.scheduling.decisions import Decisions
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from armada.state.pools import Circumstances
from tests.unit.control.driving import Driver
from tests.unit.control.world import item, kinds, node

POOLS = (PoolPolicy(name="p1"), PoolPolicy(name="p2"), PoolPolicy(name="p3"))


def fleet(*, together: bool, jobs: int = 6) -> Driver:
    """Three pools with a node for two jobs each."""
    driver = Driver(policy=SchedulingPolicy(pools=POOLS, pools_fail_together=together))
    nodes = [msgspec.structs.replace(node(f"n{number}", "east", "2"), pool=f"p{number}") for number in (1, 2, 3)]
    driver.world.report_nodes(*nodes)
    driver.heard("east")
    driver.world.submit(*[item() for _ in range(jobs)])
    return driver


def cycle(driver: Driver, failing: str = "") -> list[str]:
    """Run the rounds of one cycle, of which the one of pool `failing` fails; return the facts."""
    facts: list[str] = []

    def store(step: Step) -> None:
        order = step.round
        assert order is not None
        now_ms = driver.world.now_ms
        if order.pool == failing:
            driver.leader.failed_round(order.pool, "a wheel came off", now_ms)
            return
        outcome: Outcome | None = driver.leader.finish(
            driver.world.ledger, order, schedule(order.snapshot, order.seed), now_ms
        )
        while outcome is not None:
            facts.extend(f"{kind} {outcome.pool}" for kind in kinds(outcome.sequences))
            driver.store(outcome.sequences, step.epoch)
            outcome = driver.leader.next_held(driver.world.ledger, now_ms)

    for _ in POOLS:
        step = driver.step()
        if step.round is None:
            break
        store(step)
    return facts


def test_a_pool_that_fails_stops_no_other() -> None:
    driver = fleet(together=False)
    assert cycle(driver, failing="p2") == ["RunLeased p1"] * 2 + ["RunLeased p3"] * 2
    assert dict(driver.leader.failures)["p2"].reason == "its round failed: a wheel came off"
    told = Explaining(driver.leader).pools(driver.world.ledger)
    assert "Pool p2 can't be decided: its round failed: a wheel came off." in told
    driver.world.now_ms += 10_000
    assert cycle(driver) == ["RunLeased p2"] * 2
    assert dict(driver.leader.failures) == {}


def test_a_pool_whose_round_can_not_be_put_together_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = fleet(together=False)
    ledger = driver.world.ledger
    snapshot = ledger.pool_snapshot

    def broken(pool: str, circumstances: Circumstances) -> PoolSnapshot:
        if pool == "p2":
            raise RuntimeError("a column is missing")
        return snapshot(pool, circumstances)

    monkeypatch.setattr(ledger, "pool_snapshot", broken)
    assert cycle(driver) == ["RunLeased p1"] * 2 + ["RunLeased p3"] * 2
    reason = "its round could not be put together: RuntimeError('a column is missing')"
    assert driver.leader.failures["p2"].reason == reason
    monkeypatch.undo()
    driver.world.now_ms += 10_000
    assert cycle(driver) == ["RunLeased p2"] * 2


@pytest.mark.parametrize("failing", ["p1", "p2", "p3"])
def test_where_pools_fail_together_nothing_comes_of_the_whole_cycle(failing: str) -> None:
    driver = fleet(together=True)
    assert cycle(driver, failing=failing) == []
    assert list(driver.leader.failures) == [failing]
    assert driver.step().round is None
    driver.world.now_ms += 10_000
    assert cycle(driver) == [f"RunLeased {pool}" for pool in ("p1", "p1", "p2", "p2", "p3", "p3")]


def test_a_job_that_two_pools_took_in_one_cycle_runs_once() -> None:
    driver = fleet(together=True, jobs=2)
    assert cycle(driver) == ["RunLeased p1"] * 2


def test_with_assertions_a_round_that_breaks_an_invariant_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = fleet(together=False)
    order = driver.step().round
    assert order is not None

    def twice(*_: object, **__: object) -> Decisions:
        """Decide, but lease the first job twice."""
        one = schedule(order.snapshot, order.seed)
        doubled = {name: getattr(one.leases, name)[[0, 0]] for name in one.leases.__struct_fields__}
        return msgspec.structs.replace(one, leases=msgspec.structs.replace(one.leases, **doubled))

    checking = msgspec.structs.replace(driver.leader.policy, assertions=True)
    assert len(decide(order, checking).leases.row) == 2
    monkeypatch.setattr("armada.control.rounds.deciding.schedule", twice)
    assert len(decide(order, driver.leader.policy).leases.row) == 2
    with pytest.raises(RoundBroken, match="a queued job is decided twice") as broken:
        decide(order, checking)
    assert len(broken.value.decisions.leases.row) == 2
