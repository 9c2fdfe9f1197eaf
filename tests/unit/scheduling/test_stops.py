"""Limits of a round's time: what they stop, what they leave, and that what the clock did can be repeated."""

from typing import Any

import numpy as np
import pytest

from armada.model.policy import OptimiserPolicy
from armada.scheduling.decisions import Decisions, Termination, check_invariants
from armada.scheduling.repeating.stops import EVERY_QUEUE, OPTIMISER, WHOLE_ROUND, OutOfTime, Stop, Watch
from armada.scheduling.round import schedule
from armada.scheduling.tables import OptimiserTurn
from tests.unit.scheduling.builders import Named, Setting, node, policy


class Ticking:
    """A clock on which a fixed time goes by from look to look."""

    def __init__(self, step_ms: float, starts_ms: float = 0.0) -> None:
        self.step_ms = step_ms
        self.now_ms = starts_ms - step_ms

    def __call__(self) -> float:
        self.now_ms += self.step_ms
        return self.now_ms


def crowd(jobs: int = 600, **limits: Any) -> Setting:
    """Queue A runs two jobs and wants more, as do B and C; everybody fits."""
    setting = Setting(policy=policy(**limits), nodes=[node("a", 4 * jobs, "9Ti")])
    setting.add("A", 2, node="a")
    for queue in ("A", "B", "C"):
        setting.add(queue, jobs)
    return setting


def facts(one: Decisions) -> tuple[object, ...]:
    columns = (one.leases, one.preemptions, one.refusals)
    arrays = [getattr(part, name).tobytes() for part in columns for name in part.__struct_fields__]
    return (*arrays, one.queues, one.termination, one.evicted.tobytes(), one.indicative_shares, one.stops)


def test_without_a_clock_no_limit_holds() -> None:
    decided = crowd(max_round_ms=2, max_new_jobs_ms=1).decide()
    assert len(decided.placed) == 1_800
    assert decided.decisions.stops == ()


def test_a_clock_that_stays_within_the_limits_changes_nothing() -> None:
    snapshot = crowd(max_round_ms=5_000, max_new_jobs_ms=4_000).snapshot()
    assert facts(schedule(snapshot, clock=Ticking(0.5))) == facts(schedule(snapshot))


def test_after_the_hard_limit_everything_stays_as_it_was() -> None:
    setting = crowd(max_round_ms=100)
    before = Setting(policy=setting.policy, nodes=setting.nodes, jobs=[job for job in setting.jobs if job.node])
    decisions = schedule(setting.snapshot(), clock=Ticking(30))
    assert decisions.termination is Termination.TIMEOUT
    assert (len(decisions.leases.row), len(decisions.preemptions.row), len(decisions.refusals.row)) == (0, 0, 0)
    assert len(decisions.evicted) == 0
    assert [stop.subject for stop in decisions.stops] == [WHOLE_ROUND]
    assert check_invariants(decisions) == ()
    assert decisions.queues[0].allocated == schedule(before.snapshot()).queues[0].allocated
    assert decisions.queues[1].actual_share == 0


def test_a_round_that_is_late_before_it_began_decides_nothing() -> None:
    decisions = schedule(crowd(max_round_ms=100).snapshot(), clock=Ticking(1, starts_ms=101))
    assert decisions.termination is Termination.TIMEOUT
    assert decisions.stops == (Stop(0, WHOLE_ROUND),)


def test_after_the_soft_limit_no_new_job_is_placed_and_evicted_ones_still_return() -> None:
    setting = Setting(policy=policy(max_round_ms=5_000, max_new_jobs_ms=100), nodes=[node("a", 4_000, "9Ti")])
    setting.add("A", 3, cls="low", node="a")
    setting.add("B", 3_000, cls="high")
    setting.add("C", 2)
    named = Named(schedule(setting.snapshot(), clock=Ticking(60)), [job.name for job in setting.jobs])
    assert named.decisions.termination is Termination.SOFT_TIMEOUT
    assert 0 < len(named.placed) < 3_000
    assert named.out == {}
    assert len(named.decisions.evicted) == 3
    assert "GLOBAL_NEW_JOB_TIME" in named.waiting.values()
    assert [stop.subject for stop in named.decisions.stops] == [EVERY_QUEUE]
    assert check_invariants(named.decisions) == ()


def test_a_queue_that_had_its_time_leaves_the_rest_to_the_others() -> None:
    setting = Setting(
        policy=policy(max_round_ms=50_000, max_new_jobs_per_queue_ms=100), nodes=[node("a", 9_000, "9Ti")]
    )
    setting.add("A", 3_000, cls="high")
    setting.add("B", 30)
    named = Named(schedule(setting.snapshot(), clock=Ticking(60)), [job.name for job in setting.jobs])
    assert named.decisions.termination is Termination.COMPLETED
    assert {name for name in named.placed if name[0] == "B"} == {f"B{number}" for number in range(30)}
    assert 0 < sum(name[0] == "A" for name in named.placed) < 3_000
    assert "QUEUE_NEW_JOB_TIME" in named.waiting.values()
    assert [stop.subject for stop in named.decisions.stops] == [0]


@pytest.mark.parametrize("step_ms", [11, 37, 90, 260])
@pytest.mark.parametrize(
    "limits",
    [
        {"max_round_ms": 400},
        {"max_round_ms": 5_000, "max_new_jobs_ms": 300},
        {"max_round_ms": 5_000, "max_new_jobs_per_queue_ms": 90},
        {"max_round_ms": 900, "max_new_jobs_ms": 500, "max_new_jobs_per_queue_ms": 120},
    ],
)
def test_the_stops_of_a_clock_repeat_its_round(limits: dict[str, int], step_ms: int) -> None:
    snapshot = crowd(2_000, **limits).snapshot()
    first = schedule(snapshot, 5, clock=Ticking(step_ms))
    assert facts(schedule(snapshot, 5, stops=first.stops)) == facts(first)


def test_slices_shrink_until_a_costly_queue_is_told_from_a_cheap_one() -> None:
    """However much one look costs, no slice is taken for free: the limit is overrun by one slice at most."""
    snapshot = crowd(5_000, max_round_ms=60_000, max_new_jobs_ms=1_000).snapshot()
    (stop,) = schedule(snapshot, clock=Ticking(100)).stops
    assert stop.subject == EVERY_QUEUE
    assert 256 <= stop.served < 1_500


def test_equal_queues_take_their_first_turn_by_the_seed() -> None:
    setting = Setting(policy=policy(rotates_ties=True), nodes=[node("a", 1)])
    for queue in ("A", "B", "C"):
        setting.add(queue)
    snapshot = setting.snapshot()
    first = [setting.jobs[int(schedule(snapshot, seed).leases.row[0])].queue for seed in range(300)]
    counts = {queue: first.count(queue) for queue in "ABC"}
    assert sum(counts.values()) == 300
    assert min(counts.values()) > 70
    assert [int(schedule(snapshot, 9).leases.row[0]) for _ in range(3)] == [
        int(schedule(snapshot, 9).leases.row[0])
    ] * 3


def test_without_the_option_the_first_queue_by_name_has_the_first_turn() -> None:
    setting = Setting(nodes=[node("a", 1)])
    for queue in ("B", "A"):
        setting.add(queue)
    snapshot = setting.snapshot()
    assert {int(schedule(snapshot, seed).leases.row[0]) for seed in range(20)} == {1}


def test_an_indicative_share_is_the_capped_share_of_one_more_queue() -> None:
    """200 cpu; A wants 20, B 60, C (of twice the weight) 400, and the queue that is imagined everything."""
    setting = Setting(policy=policy(indicative_share_priorities=(1, 2)), nodes=[node("a", 200)], factors={"C": 0.5})
    setting.add("A", 20)
    setting.add("B", 60)
    setting.add("C", 400)
    given = {one.priority: one.share for one in setting.decide().decisions.indicative_shares}
    setting.add("D", 1_000)
    shares = {queue.name: queue.demand_capped_share for queue in setting.decide().decisions.queues}
    assert given[1] == pytest.approx(shares["D"], abs=1e-12)
    setting.factors["D"] = 2.0
    shares = {queue.name: queue.demand_capped_share for queue in setting.decide().decisions.queues}
    assert given[2] == pytest.approx(shares["D"], abs=1e-12)


def test_the_fairness_error_is_what_queues_lack_of_their_capped_shares() -> None:
    setting = Setting(policy=policy(protected_fraction=1.0), nodes=[node("a", 10)])
    setting.add("A", 10, cls="solid", node="a")
    setting.add("B", 3)
    decisions = setting.decide().decisions
    assert decisions.fairness_error == pytest.approx(0.3)
    assert np.isclose(decisions.queues[0].actual_share, 1.0)


def test_the_optimiser_stops_at_its_own_limit_between_two_stretches_of_its_work() -> None:
    # It stops half a second before its time is over.
    optimiser = OptimiserPolicy(timeout_ms=600, max_jobs_per_round=10)
    setting = Setting(policy=policy(pool={"optimiser": optimiser}), nodes=[node("a", 10)])
    setting.add("A")
    setting.numbers["optimiser"] = OptimiserTurn(now_ms=0, submitted=np.arange(9, dtype=np.int64))
    watch = Watch(setting.snapshot(), Ticking(60))
    assert [watch.may_optimise() for _ in range(3)] == [True, True, False]
    assert watch.stops == [Stop(2, OPTIMISER)]
    again = Watch(setting.snapshot(), None, watch.stops)
    assert [again.may_optimise() for _ in range(3)] == [True, True, False]
    assert again.stops == watch.stops


def test_the_optimiser_leaves_time_before_the_hard_limit_of_the_round() -> None:
    optimiser = OptimiserPolicy(timeout_ms=60_000, max_jobs_per_round=10)
    setting = Setting(policy=policy(pool={"optimiser": optimiser}, max_round_ms=1_000), nodes=[node("a", 10)])
    setting.add("A")
    setting.numbers["optimiser"] = OptimiserTurn(now_ms=0, submitted=np.arange(9, dtype=np.int64))
    watch = Watch(setting.snapshot(), Ticking(310))
    assert [watch.may_optimise() for _ in range(4)] == [True, True, True, False]
    watch = Watch(setting.snapshot(), Ticking(1_100))
    assert watch.may_optimise()
    with pytest.raises(OutOfTime):
        watch.may_optimise()
