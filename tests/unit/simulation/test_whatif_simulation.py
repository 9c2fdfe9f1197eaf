"""Simulations small enough to be worked out by hand: times, shares, dependencies, gangs, preemption, limits."""

from typing import Any

import pytest

from armada.model.errors import InvalidRequest
from armada.model.policy import PoolPolicy, RateLimit, SchedulingPolicy
from armada.simulation.whatif.simulation import as_simulated
from tests.unit.simulation.whatif import (
    MIXED,
    finished,
    fleet,
    node,
    prepared,
    queue,
    read,
    rounds,
    rows,
    template,
    workload,
)

pytestmark = pytest.mark.timeout(400)  # whoever comes first may have to compile the kernels


def test_one_job_is_scheduled_at_the_epoch_and_takes_its_time() -> None:
    simulation, ticks = finished(fleet(), workload(queue("a", template(cpu="2", minutes=6, jobSet="s", id="t"))))
    [row] = rows(simulation)
    job_id, run_id = row.pop("job_id"), row.pop("run_id")
    assert len(job_id) == 26
    assert len(run_id) == 36
    assert row == {
        "queue": "a",
        "job_set": "s",
        "priority_class": "low",
        "cpu": 2.0,
        "memory": 2.0**30,
        "gpu": 0.0,
        "ephemeral_storage": 0.0,
        "exit_code": 0,
        "state": "SUCCEEDED",
        "submitted_time": 0.0,
        "scheduled_time": 0.0,
        "finished_time": 360.0,
    }
    assert (ticks[-1].done, ticks[-1].total, ticks[-1].running, ticks[-1].queued) == (1, 1, 0, 0)
    assert simulation.ended_ms == 360_000


def test_rounds_take_place_at_every_cycle_or_only_after_changes() -> None:
    jobs = workload(queue("a", template(minutes=10)))
    slow, _ = finished(fleet(), jobs, cycle_ms=10_000)
    fast, _ = finished(fleet(), jobs, cycle_ms=10_000, fast_forward=True)
    assert [row["ts"] for row in rounds(slow)] == [10.0 * cycle for cycle in range(60)]
    assert [row["ts"] for row in rounds(fast)] == [0.0, 10.0]
    assert rows(slow) == rows(fast)


def test_a_job_that_comes_between_rounds_waits_for_the_next() -> None:
    simulation, _ = finished(fleet(), workload(queue("a", template(earliestSubmitTime="13s"))), fast_forward=True)
    [row] = rows(simulation)
    assert (row["submitted_time"], row["scheduled_time"], row["finished_time"]) == (13.0, 20.0, 80.0)


def test_two_equal_queues_share_a_node_half_and_half() -> None:
    simulation, _ = finished(
        fleet(node(cpu="4")),
        workload(queue("a", template(8)), queue("b", template(8))),
        fast_forward=True,
    )
    first = {row["queue"]: row for row in rounds(simulation, ts=0.0)}
    for name in ("a", "b"):
        row = first[name]
        assert (row["fair_share"], row["adjusted_fair_share"], row["actual_share"]) == (0.5, 0.5, 0.5)
        assert (row["cpu_share"], row["allocated_cpu"], row["num_scheduled"]) == (0.5, 2.0, 2)
        assert row["allocated_memory"] == pytest.approx(2 * 2**30 / 1e6)
        assert row["memory_share"] == pytest.approx(2 / 64)
        assert (row["gpu_share"], row["allocated_gpu"], row["num_preempted"], row["num_evicted"]) == (0.0, 0.0, 0, 0)
    # Four jobs a minute: sixteen of them take four minutes.
    assert simulation.ended_ms == 240_000
    assert [row["finished_time"] for row in rows(simulation, queue="a")] == [60.0] * 2 + [120.0] * 2 + [180.0] * 2 + [
        240.0
    ] * 2


def test_weights_are_shares() -> None:
    simulation, _ = finished(
        fleet(node(cpu="4")), workload(queue("a", template(8), weight=3), queue("b", template(8))), fast_forward=True
    )
    first = {row["queue"]: (row["fair_share"], row["allocated_cpu"]) for row in rounds(simulation, ts=0.0)}
    assert first == {"a": (0.75, 3.0), "b": (0.25, 1.0)}


def test_dependents_wait_for_the_whole_template_and_for_the_workflow() -> None:
    simulation, _ = finished(
        fleet(node(cpu="2"), workflowManagerDelayDistribution={"minimum": "7s"}),
        workload(
            queue("a", template(3, id="first", jobSet="first", repeat={"numTimes": 2, "period": "30s"})),
            queue(
                "b",
                template(id="late", jobSet="late", dependencies=["first"], earliestSubmitTime="200s"),
                template(
                    id="second",
                    jobSet="second",
                    dependencies=["first"],
                    earliestSubmitTimeFromDependencyCompletion="20s",
                ),
            ),
        ),
        fast_forward=True,
    )
    ends = [row["finished_time"] for row in rows(simulation, job_set="first")]
    assert ends == [60.0, 60.0, 120.0, 120.0, 180.0, 180.0]
    [second], [late] = rows(simulation, job_set="second"), rows(simulation, job_set="late")
    assert (second["submitted_time"], second["scheduled_time"]) == (207.0, 210.0)
    assert (late["submitted_time"], late["scheduled_time"]) == (207.0, 210.0)


def test_repeats_come_a_period_apart() -> None:
    again = template(2, earliestSubmitTime="1m", repeat={"numTimes": 3, "period": "10m"})
    simulation, _ = finished(fleet(), workload(queue("a", again)), fast_forward=True)
    assert [row["submitted_time"] for row in rows(simulation)] == [60.0] * 2 + [660.0] * 2 + [1260.0] * 2
    assert simulation.total == 6


def test_preempted_jobs_come_again_after_the_workflow_delay_and_take_as_long() -> None:
    simulation, ticks = finished(
        fleet(node(cpu="4"), workflowManagerDelayDistribution={"minimum": "30s"}),
        workload(
            queue("a", template(4, minutes=10)),
            queue("b", template(2, minutes=5, earliestSubmitTime="1m")),
        ),
        fast_forward=True,
    )
    lost = rows(simulation, state="PREEMPTED")
    assert [(row["queue"], row["scheduled_time"], row["finished_time"], row["exit_code"]) for row in lost] == [
        ("a", 0.0, 60.0, 1),
        ("a", 0.0, 60.0, 1),
    ]
    again = rows(simulation, queue="a", submitted_time=90.0)
    assert [(row["state"], row["scheduled_time"], row["finished_time"]) for row in again] == [
        ("SUCCEEDED", 360.0, 960.0)
    ] * 2
    assert len({row["job_id"] for row in rows(simulation)}) == 8
    assert (simulation.resubmitted, simulation.done, ticks[-1].total) == (2, 6, 6)
    [round_] = rounds(simulation, ts=60.0, queue="a")
    assert (round_["num_preempted"], round_["num_evicted"], round_["allocated_cpu"]) == (2, 4, 2.0)


def test_preempted_jobs_that_are_to_wait_keep_their_id_and_have_a_row_for_each_run() -> None:
    patient = template(4, minutes=10)
    patient["requirements"]["annotations"] = {"armadaproject.io/requeuePreempted": "true"}
    simulation, ticks = finished(
        fleet(node(cpu="4")),
        workload(queue("a", patient), queue("b", template(2, minutes=5, earliestSubmitTime="1m"))),
        fast_forward=True,
    )
    lost, won = rows(simulation, queue="a", state="PREEMPTED"), rows(simulation, queue="a", state="SUCCEEDED")
    assert len(lost) == 2
    again = [row for row in won if row["scheduled_time"] > 0.0]
    assert [row["job_id"] for row in again] == sorted(row["job_id"] for row in lost)
    assert [(row["submitted_time"], row["scheduled_time"], row["finished_time"]) for row in again] == [
        (0.0, 360.0, 960.0)
    ] * 2
    assert len({row["run_id"] for row in lost + won}) == 6
    assert (simulation.resubmitted, ticks[-1].done) == (0, 6)


def test_the_pending_delay_is_part_of_the_time_on_a_node() -> None:
    simulation, _ = finished(
        fleet(pendingDelayDistribution={"minimum": "15s"}), workload(queue("a", template())), fast_forward=True
    )
    assert [row["finished_time"] for row in rows(simulation)] == [75.0]
    assert [row["ts"] for row in rounds(simulation)] == [0.0, 10.0]


def test_gangs_are_leased_whole_and_on_one_cluster() -> None:
    clusters = {
        "clusters": [
            {"name": name, "pool": "default", "nodeTemplates": [node(number=count, cpu="2")]}
            for name, count in (("small", 1), ("large", 3))
        ]
    }
    gangs = template(8, cpu="1", gangCardinality=4, jobSet="gangs")
    simulation, _ = finished(clusters, workload(queue("a", gangs)), fast_forward=True)
    # Only `large` has room for four members that share a cluster; a second gang does not fit beside the first.
    scheduled = [row["scheduled_time"] for row in rows(simulation)]
    assert scheduled == [0.0] * 4 + [60.0] * 4


def test_a_preempted_gang_comes_again_whole() -> None:
    simulation, _ = finished(
        fleet(node(cpu="4")),
        workload(
            queue("a", template(4, minutes=10, gangCardinality=4)),
            queue("b", template(1, minutes=1, cpu="2", earliestSubmitTime="30s", priorityClassName="solid")),
        ),
        fast_forward=True,
    )
    assert len(rows(simulation, state="PREEMPTED")) == 4
    again = rows(simulation, queue="a", state="SUCCEEDED")
    assert [row["scheduled_time"] for row in again] == [90.0] * 4


def test_pools_are_rounds_of_their_own() -> None:
    clusters = {
        "clusters": [
            {"name": name, "pool": name, "nodeTemplates": [node(labels={"kind": name})]} for name in ("east", "west")
        ]
    }
    only_west = template(jobSet="w")
    only_west["requirements"]["nodeSelector"] = {"kind": "west"}
    simulation, _ = finished(clusters, workload(queue("a", template(8), only_west)), fast_forward=True)
    first = {row["pool"]: row["allocated_cpu"] for row in rounds(simulation, ts=0.0)}
    assert first == {"east": 4.0, "west": 4.0}
    assert all(row["state"] == "SUCCEEDED" for row in rows(simulation))


def test_the_hard_limit_stops_the_clock() -> None:
    simulation, ticks = finished(
        fleet(node(cpu="1")),
        workload(queue("a", template(3, minutes=2), template(dependencies=["a-0"]))),
        end_ms=185_000,
        fast_forward=True,
    )
    assert [(row["state"], row["scheduled_time"], row["finished_time"]) for row in rows(simulation)] == [
        ("SUCCEEDED", 0.0, 120.0),
        ("CANCELLED", 120.0, 185.0),
        ("CANCELLED", None, 185.0),
    ]
    assert simulation.is_out_of_time
    assert (simulation.unsubmitted, simulation.ended_ms, ticks[-1].at_ms) == (1, 185_000, 185_000)


def test_jobs_that_never_fit_are_rejected_and_their_dependents_never_come() -> None:
    simulation, _ = finished(
        fleet(), workload(queue("a", template(2, cpu="5", id="big"), template(dependencies=["big"]), template()))
    )
    assert [row["state"] for row in rows(simulation)] == ["REJECTED", "REJECTED", "SUCCEEDED"]
    assert "the largest node offers 4" in simulation.rejections["big"]
    assert simulation.unsubmitted == 1
    assert not simulation.is_out_of_time


def test_what_can_only_wait_ends_the_simulation() -> None:
    # Fits the node, but the queue may never hold so much of the pool.
    limited = SchedulingPolicy(
        priority_classes=MIXED.priority_classes,
        default_priority_class="low",
        max_round_fractions={"cpu": 0.1},
    )
    simulation, ticks = finished(fleet(node(cpu="10")), workload(queue("a", template(3, cpu="4"))), limited)
    assert {row["state"] for row in rows(simulation)} <= {"SUCCEEDED", "CANCELLED"}
    assert len(ticks) < 100


def test_taints_selectors_and_affinity_are_those_of_a_server() -> None:
    tainted = node(taints=[{"key": "gpu", "value": "true", "effect": "NoSchedule"}], labels={"zone": "z1"})
    tolerant = template(jobSet="tolerant")
    tolerant["requirements"] |= {
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]
                }
            }
        },
    }
    simulation, _ = finished(fleet(tainted), workload(queue("a", tolerant, template(jobSet="plain"))))
    assert [row["job_set"] for row in rows(simulation, state="SUCCEEDED")] == ["tolerant"]
    assert [row["job_set"] for row in rows(simulation, state="REJECTED")] == ["plain"]


def test_same_seed_same_results_another_seed_others() -> None:
    def results(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        random = template(20, cpu="1", runtimeDistribution={"minimum": "30s", "tailMean": "5m"})
        other = template(20, cpu="2", earliestSubmitTime="2m", runtimeDistribution={"tailMean": "3m"})
        simulation, _ = finished(
            fleet(
                node(number=3),
                workflowManagerDelayDistribution={"minimum": "5s", "tailMean": "10s"},
                pendingDelayDistribution={"tailMean": "4s"},
            ),
            workload(queue("a", random), queue("b", other)),
            seed=seed,
            fast_forward=True,
        )
        return rows(simulation), rounds(simulation)

    assert results(5) == results(5)
    ends = [[row["finished_time"] for row in results(seed)[0]] for seed in (5, 6)]
    assert ends[0] != ends[1]


def test_another_template_does_not_shift_what_is_drawn() -> None:
    random = template(5, id="r", jobSet="r", runtimeDistribution={"minimum": "30s", "tailMean": "5m"})
    alone, _ = finished(fleet(node(cpu="100")), workload(queue("b", random)), fast_forward=True)
    first = template(5, id="q", runtimeDistribution={"tailMean": "5m"})
    beside, _ = finished(fleet(node(cpu="100")), workload(queue("a", first), queue("b", random)), fast_forward=True)
    ends = [sorted(row["finished_time"] for row in rows(each, job_set="r")) for each in (alone, beside)]
    assert ends[0] == ends[1]


def test_a_class_that_the_configuration_lacks_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"queues\[0\].jobTemplates\[0\].priorityClassName: .* 'none'; it has low"):
        prepared(fleet(), workload(queue("a", template(priorityClassName="none"))))


def test_nothing_but_the_scheduler_is_left_of_a_policy() -> None:
    policy = SchedulingPolicy(
        disabled=True,
        rate=RateLimit(1, 1),
        rate_per_queue=RateLimit(1, 1),
        pools=(PoolPolicy(name="p", away_pools=("q",), short_job_penalty_ms=5), PoolPolicy(name="q")),
    )
    simulated = as_simulated(policy)
    assert not simulated.disabled
    assert simulated.rate == simulated.rate_per_queue == RateLimit()
    assert [(pool.name, pool.away_pools, pool.short_job_penalty_ms) for pool in simulated.pools] == [
        ("p", (), 0),
        ("q", (), 0),
    ]


def test_ids_follow_from_time_and_order() -> None:
    spec = read(workload(queue("a", template(2), template(earliestSubmitTime="1m"))))
    simulation, _ = finished(fleet(node(cpu="8")), spec, fast_forward=True)
    ids = [row["job_id"] for row in rows(simulation)]
    assert ids == sorted(ids)
    assert ids[0] == "0" * 25 + "1"
    assert ids[2][:10] == "0000001tk0"
