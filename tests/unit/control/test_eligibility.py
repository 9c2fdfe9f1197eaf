"""Can a job ever run: on empty nodes, in words that people read (F007, F062, F111, F121)."""

import pytest

from armada.control.admitting.eligibility import Eligibility, readable
from armada.control.commands.submission.defaults import template_of
from armada.control.commands.submission.exposure import Owner
from armada.model.fleet import (
    AwayNodeType,
    AwayTypeRef,
    ClassLimit,
    PriorityClass,
    Queue,
    Taint,
    WellKnownNodeType,
)
from armada.model.jobs import GangSpec, JobShape, KubernetesObject
from armada.model.policy import FloatingResource, MarketPolicy, PoolPolicy, RateLimit, SchedulingPolicy
from armada.model.resources import parse_quantity
from armada.model.submission import SubmissionPolicy
from tests.unit.control.world import World, item, node, pod, resources

QUEUE = Queue(name="qa")
LIMITED = Queue(name="qb", limits_by_class={"armada-default": ClassLimit({"cpu": 0.25})})


def shape(spec: KubernetesObject | None = None) -> JobShape:
    return template_of(item(spec), None, Owner("qa", "s", "alice"), SubmissionPolicy()).shape


def judged_by(world: World) -> Eligibility:
    eligibility = Eligibility(world.policy)
    eligibility.refresh(world.ledger)
    return eligibility


def busy_world() -> World:
    """One node of 8 cpu of which 500m are not ours; all of it is in use."""
    world = World()
    world.report_nodes(node("n1", unallocatable={1_000: {"cpu": "500m"}}))
    (job_id,) = world.submit(item(pod(cpu="7500m")))
    world.start(job_id)
    return world


def test_fit_is_judged_on_an_empty_node() -> None:
    eligibility = judged_by(busy_world())
    assert eligibility.judge(QUEUE, shape(pod(cpu="7500m"))).pools == ("default",)


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (pod(cpu="7600m"), "7.6 cpu asked for, the largest node offers 7.5"),
        (pod(cpu="9"), "9 cpu asked for, the largest node offers 7.5"),
        (pod(memory="40Gi"), "40Gi memory asked for, the largest node offers 32Gi"),
        (pod(nodeSelector={"kind": "none"}), "the node lacks the label kind"),
        (
            {"containers": [{"name": "a", "resources": resources(**{"cpu": "1", "nvidia.com/gpu": "1"})}]},
            "1 nvidia.com/gpu asked for, the largest node offers 0",
        ),
    ],
)
def test_what_can_never_fit_is_told_in_readable_units(spec: KubernetesObject, named: str) -> None:
    verdict = judged_by(busy_world()).judge(QUEUE, shape(spec))
    assert verdict.is_final
    assert not verdict.is_possible
    assert verdict.reason.startswith("pool default: 1 of 1 nodes: ")
    assert named in verdict.reason


def test_taints_speak_for_themselves() -> None:
    world = World()
    world.report_nodes(node("n1", taints=(Taint("gpu", "true"),)), node("n2", cpu="1"))
    verdict = judged_by(world).judge(QUEUE, shape(pod(cpu="2")))
    assert "1 of 2 nodes: the taint gpu=true:NoSchedule is not tolerated" in verdict.reason
    assert "1 of 2 nodes: 2 cpu asked for, the largest node offers 1" in verdict.reason


def test_a_job_that_fits_no_node_by_all_resources_at_once() -> None:
    world = World()
    world.report_nodes(
        node("n1", total={"cpu": "8", "memory": "1Gi", "ephemeral-storage": "1Ti"}),
        node("n2", total={"cpu": "1", "memory": "64Gi", "ephemeral-storage": "1Ti"}),
    )
    verdict = judged_by(world).judge(QUEUE, shape(pod(cpu="4", memory="32Gi")))
    assert "none offers all that is asked for at once" in verdict.reason


def test_limits_of_queues_count_and_are_not_mixed_up() -> None:
    world = World()
    world.report_nodes(node("n1"))
    eligibility = judged_by(world)
    assert eligibility.judge(QUEUE, shape(pod(cpu="4"))).is_possible
    verdict = eligibility.judge(LIMITED, shape(pod(cpu="4")))
    assert "4 cpu asked for, the queue may hold 2 in this priority class" in verdict.reason
    assert eligibility.judge(QUEUE, shape(pod(cpu="4"))).is_possible


def test_cordoned_and_silent_capacity_counts() -> None:
    world = World()
    cordon = (Taint("node.kubernetes.io/unschedulable", ""),)
    labels = {"kubernetes.io/hostname": "n1", "kind": "big"}
    world.report_nodes(node("n1", labels=labels, taints=cordon, unschedulable=True))
    assert judged_by(world).judge(QUEUE, shape(pod(nodeSelector={"kind": "big"}))).is_possible


def test_nothing_is_final_before_there_is_a_node() -> None:
    world = World()
    for an_executor_reports_no_nodes in (False, True):
        if an_executor_reports_no_nodes:
            world.report_nodes()
        verdict = judged_by(world).judge(QUEUE, shape())
        assert not verdict.is_possible
        assert not verdict.is_final
        assert verdict.reason == "no capacity of pool default is known yet"


def test_a_pool_without_nodes_may_still_come() -> None:
    policy = SchedulingPolicy(pools=(PoolPolicy(name="default"), PoolPolicy(name="gpu")))
    world = World(policy)
    world.report_nodes(node("n1"))
    verdict = judged_by(world).judge(QUEUE, shape(pod(cpu="9")))
    assert not verdict.is_final
    assert "no capacity of pool gpu is known yet" in verdict.reason
    assert judged_by(world).judge(QUEUE, shape()).pools == ("default",)


def test_only_the_pools_of_the_job_are_asked() -> None:
    world = World(SchedulingPolicy(pools=(PoolPolicy(name="default"), PoolPolicy(name="gpu"))))
    world.report_nodes(node("n1"), node("g1", pool="gpu", cpu="64"))
    eligibility = judged_by(world)
    assert eligibility.judge(QUEUE, shape(pod(cpu="9"))).pools == ("gpu",)
    verdict = eligibility.judge(QUEUE, shape(pod(cpu="9")), ("default",))
    assert verdict.is_final
    assert "gpu" not in verdict.reason


def fleet_of(*pools: PoolPolicy) -> World:
    """A world with these pools and a node in each: of 8 cpu in `small`, 16 in `large`."""
    world = World(SchedulingPolicy(pools=pools))
    world.report_nodes(*[node(pool.name, pool=pool.name, cpu="16" if pool.name == "large" else "8") for pool in pools])
    return world


def test_a_yes_is_that_of_the_whole_submission_group() -> None:
    groups = (
        PoolPolicy(name="small", submission_group="g"),
        PoolPolicy(name="large", submission_group="g"),
        PoolPolicy(name="other"),
    )
    eligibility = judged_by(fleet_of(*groups))
    assert eligibility.judge(QUEUE, shape(pod(cpu="12"))).pools == ("large", "small")
    assert eligibility.judge(QUEUE, shape(pod(cpu="1"))).pools == ("small", "large", "other")
    assert eligibility.judge(QUEUE, shape(pod(cpu="12")), ("large", "other")).pools == ("large",)
    assert not eligibility.judge(QUEUE, shape(pod(cpu="99"))).is_possible


def test_a_pool_whose_guests_could_go_to_a_pool_that_said_yes_is_passed_over() -> None:
    eligibility = judged_by(fleet_of(PoolPolicy(name="large"), PoolPolicy(name="small", away_pools=("large",))))
    assert eligibility.judge(QUEUE, shape(pod(cpu="1"))).pools == ("large",)
    reverse = judged_by(fleet_of(PoolPolicy(name="small", away_pools=("large",)), PoolPolicy(name="large")))
    assert reverse.judge(QUEUE, shape(pod(cpu="1"))).pools == ("small", "large")
    assert reverse.judge(QUEUE, shape(pod(cpu="12"))).pools == ("small", "large")


@pytest.mark.parametrize(("away_pools", "members", "possible"), [((), 1, False), (("q",), 1, True), ((), 2, False)])
def test_a_place_as_a_guest_on_special_nodes_counts_where_pools_lend_each_other(
    away_pools: tuple[str, ...], members: int, *, possible: bool
) -> None:
    gpu = Taint("gpu", "true", "NoSchedule")
    flexible = PriorityClass(
        name="flex", priority=200, preemptible=True, away_node_types=(AwayNodeType(50, (AwayTypeRef("gpu"),)),)
    )
    world = World(
        SchedulingPolicy(
            pools=(PoolPolicy(name="default", away_pools=away_pools),),
            priority_classes=(flexible,),
            default_priority_class="flex",
            well_known_node_types=(WellKnownNodeType("gpu", (gpu,)),),
        )
    )
    world.report_nodes(node("plain", cpu="1"), node("special", cpu="8", taints=(gpu,)))
    asked = JobShape(requests=(("cpu", "4"),), priority_class="flex")
    verdict = judged_by(world).judge_gang(QUEUE, [asked] * members)
    assert verdict.is_possible is possible


def test_members_of_a_gang_have_to_agree() -> None:
    world = World()
    world.report_nodes(node("n1"))
    eligibility = judged_by(world)
    plain, urgent = shape(), JobShape(requests=(("cpu", "1"),), priority_class="armada-urgent")
    two, uniform = GangSpec("g", 2), GangSpec("g", 2, "rack")
    assert eligibility.judge_members(QUEUE, [(plain, two)] * 2).is_possible
    for members, words in (
        ([(plain, two), (urgent, two)], "different priority classes: armada-default, armada-urgent"),
        ([(plain, two), (plain, uniform)], "differ in its cardinality or its node uniformity label"),
        ([(plain, two)] * 3, "has 3 members, more than its cardinality 2"),
    ):
        verdict = eligibility.judge_members(QUEUE, members)
        assert verdict.is_final
        assert words in verdict.reason


def test_what_only_holds_a_job_back_for_a_while_is_no_objection() -> None:
    pool = PoolPolicy(name="default", market=MarketPolicy(pricing_timeout_ms=1))
    world = World(
        SchedulingPolicy(pools=(pool,), rate=RateLimit(1, 1), max_queue_lookback=1, max_round_fractions={"cpu": 0.01})
    )
    world.report_nodes(node("n1"))
    assert judged_by(world).judge_gang(QUEUE, [shape()] * 3).is_possible


def test_unknown_resources_need_no_node_to_be_refused() -> None:
    spec = {"containers": [{"name": "a", "resources": resources(**{"cpu": "1", "example.com/widget": "1"})}]}
    verdict = judged_by(World()).judge(QUEUE, shape(spec))
    assert verdict.is_final
    assert "example.com/widget" in verdict.reason


def test_floating_resources_are_counted_by_pool() -> None:
    floating = (FloatingResource("licences", "1", {"default": "3"}),)
    world = World(SchedulingPolicy(floating_resources=floating))
    world.report_nodes(node("n1"))
    eligibility = judged_by(world)

    def asking(count: int) -> JobShape:
        return shape({"containers": [{"name": "a", "resources": resources(cpu="1", licences=str(count))}]})

    assert eligibility.judge(QUEUE, asking(3)).is_possible
    assert "4 licences asked for, the pool has 3" in eligibility.judge(QUEUE, asking(4)).reason


def test_gangs_have_to_fit_at_the_same_time() -> None:
    world = World()
    world.report_nodes(node("n1"), node("n2"))
    eligibility = judged_by(world)
    member = shape(pod(cpu="6"))
    assert eligibility.judge_gang(QUEUE, [member, member]).is_possible
    verdict = eligibility.judge_gang(QUEUE, [member] * 3)
    assert verdict.is_final
    assert "3 members" in verdict.reason
    mixed = [member, shape(pod(cpu="2")), member, shape(pod(cpu="2"))]
    assert eligibility.judge_gang(QUEUE, mixed).is_possible


def test_huge_amounts_do_not_wrap_round() -> None:
    world = World()
    world.report_nodes(*[node(f"n{n}", total={"cpu": "8", "memory": "1Pi"}) for n in range(20)])
    eligibility = judged_by(world)
    asked = JobShape(requests=(("cpu", "1"), ("memory", "64Gi")), priority_class="")
    assert eligibility.judge(QUEUE, asked).is_possible
    unlimited = Queue(name="qc", limits_by_class={"armada-default": ClassLimit({"memory": 1e18})})
    assert eligibility.judge(unlimited, asked).is_possible
    huge = JobShape(requests=(("nvidia.com/gpu", "9223372036854775807"),), priority_class="")
    assert not eligibility.judge(QUEUE, huge).is_possible


def test_a_retry_needs_another_node() -> None:
    world = World()
    world.report_nodes(node("n1"), node("n2"))
    eligibility = judged_by(world)
    assert eligibility.can_run(QUEUE, shape(), None, ("n1",))
    assert not eligibility.can_run(QUEUE, shape(), None, ("n1", "n2"))
    assert judged_by(World()).can_run(QUEUE, shape(), None, ("n1",))


def test_a_change_of_the_fleet_changes_the_answer() -> None:
    world = World()
    world.report_nodes(node("n1"))
    eligibility = judged_by(world)
    assert not eligibility.judge(QUEUE, shape(pod(cpu="9"))).is_possible
    world.report_nodes(node("n2", cpu="16"))
    eligibility.refresh(world.ledger)
    assert eligibility.judge(QUEUE, shape(pod(cpu="9"))).is_possible


@pytest.mark.parametrize(
    ("resource", "quantity", "text"),
    [
        ("cpu", "7600m", "7.6"),
        ("cpu", "1000", "1000"),
        ("memory", "40Gi", "40Gi"),
        ("memory", "1536Mi", "1.5Gi"),
        ("memory", "100", "100"),
        ("nvidia.com/gpu", "0", "0"),
    ],
)
def test_amounts_are_readable(resource: str, quantity: str, text: str) -> None:
    assert readable(resource, parse_quantity(quantity)) == text
