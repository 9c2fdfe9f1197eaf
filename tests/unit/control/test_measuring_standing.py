"""Figures of what stands, on small ledgers: every value can be counted by hand."""

from typing import Any

import numpy as np
import pytest

from armada.control.measuring.fleet import NODES
from armada.control.measuring.queues import PoolBids, price_families, weighted_median
from armada.control.measuring.standing import EDGES_MS, SERIES, Circumstances, StandingFigures
from armada.model.events import ExecutorSettingsChanged, JobSetEvents, RunSucceeded
from armada.model.fleet import ExecutorSettings
from armada.model.leases import NodeUsage
from armada.model.policy import MetricsPolicy, PoolPolicy, SchedulingPolicy
from armada.state.figures.held import held_figures
from armada.state.figures.queued import queued_figures
from tests.unit.control.world import World, fact, item, node, pod

GIB = 2**30
Samples = dict[tuple[str, ...], float]


class Scene:
    """A world and the figures of what stands in it, `seconds` after its begin."""

    def __init__(self, policy: SchedulingPolicy | None = None, metrics: MetricsPolicy | None = None) -> None:
        self.world = World(policy)
        self.figures = StandingFigures(self.world.policy, metrics or MetricsPolicy())
        self._start_ms = self.world.now_ms
        self.seen: dict[str, Any] = {}

    def at(self, seconds: float) -> None:
        self.world.now_ms = self._start_ms + round(seconds * 1_000)

    def families(self) -> dict[str, Any]:
        seen = {"judged": lambda *_: None, **self.seen}
        made = self.figures.families(self.world.ledger.standing(), Circumstances(now_ms=self.world.now_ms, **seen))
        return {family.series.name.removeprefix("armada_"): family for family in made}

    def samples(self, name: str) -> Samples:
        return dict(self.families()[name].samples)


def test_sizes_and_kinds_of_queues() -> None:
    scene = Scene()
    scene.world.queue("qb", priority_factor=2.5)
    scene.world.report_nodes(node("n1"))
    first, *_ = scene.world.submit(item(), item(), item(pod(cpu="2")))
    scene.world.start(first)
    scene.world.submit(*[item(pod(cpu="1000m"))] * 2, item(pod(cpu="1")), queue="qb")
    sizes = scene.samples("queue_size")
    assert {labels[1:]: count for labels, count in sizes.items() if labels[0] == "qa"} == {
        ("qa", "queued"): 2,
        ("qa", "leased"): 0,
        ("qa", "pending"): 0,
        ("qa", "running"): 1,
    }
    assert sizes[("qb", "qb", "queued")] == 3
    assert scene.samples("queue_priority") == {("qa", "qa"): 1.0, ("qb", "qb"): 2.5}
    # Two of qa's; qb's are one kind in two ways of writing.
    assert scene.samples("queue_distinct_scheduling_keys") == {("qa", "qa"): 2, ("qb", "qb"): 1}


def test_labels_of_queues_are_written_as_labels() -> None:
    scene = Scene()
    labels = {"team": "ml", "cost-centre": "7", "queue": "no", "1st": "x", "cost_centre": "8"}
    scene.world.queue("qb", labels=labels)
    family = scene.families()["queue_labels"]
    assert family.samples == [(("qb", "qb", "x", "7", "ml"), 1.0)]
    assert family.free == [("_1st", "cost_centre", "team")]


def test_what_queued_jobs_ask_for() -> None:
    scene = Scene()
    scene.world.report_nodes(node("n1"))
    for cpu in ("1", "2", "3", "8"):
        scene.world.submit(item(pod(cpu=cpu, memory="1Gi")))
    scene.world.submit(item(pod(cpu="4", priorityClassName="armada-urgent")))
    key = ("default", "armada-default", "qa", "qa", "", "cpu", "primary")
    urgent = ("default", "armada-urgent", "qa", "qa", "", "cpu", "primary")
    assert scene.samples("queue_resource_queued")[key] == 14
    assert scene.samples("queue_resource_queued_min")[key] == 1
    assert scene.samples("queue_resource_queued_max")[key] == 8
    assert scene.samples("queue_resource_queued_median")[key] == 2.5
    assert scene.samples("queue_resource_queued_count")[key] == 4
    assert scene.samples("queue_resource_queued")[urgent] == 4
    assert scene.samples("queue_resource_queued")[(*key[:5], "memory", "primary")] == 4 * GIB
    assert not [labels for labels in scene.samples("queue_resource_queued") if labels[5] == "nvidia.com/gpu"]


def test_how_long_jobs_have_waited() -> None:
    scene = Scene()
    scene.world.report_nodes(node("n1"))
    scene.world.submit(item())
    scene.at(50)
    scene.world.submit(item())
    scene.at(57)
    scene.world.submit(item())
    scene.at(60)
    labels = ("default", "armada-default", "qa", "qa", "primary")
    found = scene.families()
    (waited,) = found["job_queued_seconds"].distributions
    assert waited[0] == labels
    assert waited[1].total == 60 + 10 + 3
    # Buckets end at 1, 5, 10, 30, 60 seconds and so on; a value at an end is below it.
    assert waited[1].counts[:6] == (0, 1, 1, 0, 1, 0)
    assert dict(found["job_queued_seconds_min"].samples) == {labels: 3}
    assert dict(found["job_queued_seconds_max"].samples) == {labels: 60}
    assert dict(found["job_queued_seconds_median"].samples) == {labels: 10}


TWO_POOLS = SchedulingPolicy(pools=(PoolPolicy(name="a"), PoolPolicy(name="b")))


def test_a_job_of_several_pools_is_primary_in_one() -> None:
    scene = Scene(TWO_POOLS, MetricsPolicy(primary_pools=("b",)))
    scene.world.submit(item(), item())
    roles = {(labels[0], labels[-1]): value for labels, value in scene.samples("queue_resource_queued").items()}
    assert set(roles) == {("b", "primary"), ("a", "secondary")}
    counts = scene.samples("queue_resource_queued_count")
    assert sum(value for labels, value in counts.items() if labels[5] == "cpu") == 4


def test_jobs_count_only_where_they_can_run() -> None:
    scene = Scene(TWO_POOLS)
    scene.seen["judged"] = lambda _, shape, __: ("b",) if dict(shape.requests)["cpu"] == "2" else ()
    scene.world.submit(item(pod(cpu="2")), item(pod(cpu="9")))
    found = {labels[0]: value for labels, value in scene.samples("queue_resource_queued").items() if labels[5] == "cpu"}
    assert found == {"b": 2, "": 9}


def test_what_runs_hold_and_how_long_they_ran() -> None:
    scene = Scene(metrics=MetricsPolicy(scalable_unit_label="rack"))
    place: dict[str, Any] = {"node_type": "big", "reservation": "r", "labels": {"rack": "r7"}}
    scene.world.report_nodes(node("n1", **place), node("n2"))
    first, second, third = scene.world.submit(item(pod(cpu="2")), item(pod(cpu="1")), item(pod(cpu="4")))
    scene.world.start(first)
    scene.at(40)
    scene.world.start(second)
    scene.world.lease(third, "n2")
    scene.at(100)
    where = ("east", "default", "armada-default", "qa", "qa", "", "cpu")
    allocated = scene.samples("queue_resource_allocated")
    assert {labels: value for labels, value in allocated.items() if "cpu" in labels} == {
        (*where, "big", "r", "default", "r7"): 3,
        (*where, "", "", "default", ""): 4,
    }
    key = where[1:]
    assert scene.samples("queue_resource_allocated_min")[key] == 1
    assert scene.samples("queue_resource_allocated_max")[key] == 4
    assert scene.samples("queue_resource_allocated_median")[key] == 2
    labels = ("default", "armada-default", "qa", "qa")
    found = scene.families()
    ((ran, times),) = found["job_run_time_seconds"].distributions
    assert (ran, times.total, sum(times.counts)) == (labels, 160.0, 2)
    assert dict(found["job_run_time_seconds_median"].samples) == {labels: 80}
    assert dict(found["queue_leased_pod_count"].samples) == {
        ("east", "default", "qa", "qa", "RUNNING", "big", "r"): 2,
        ("east", "default", "qa", "qa", "LEASED", "", ""): 1,
    }
    assert dict(found["node_job_phase_count"].samples) == {("n1", "east", "RUNNING"): 2, ("n2", "east", "LEASED"): 1}


def test_nodes_show_what_is_held_until_its_room_is_free() -> None:
    scene = Scene()
    scene.world.report_nodes(node("n1", cpu="4"))
    (job_id,) = scene.world.submit(item(pod(cpu="3", priorityClassName="armada-preemptible")))
    run_id = scene.world.start(job_id)
    status = ("cpu", "", "true", "false", "default", "dedicated", "")
    labels = ("default", "n1", "east", "", *status)
    assert scene.samples("scheduler_node_allocatable_resource")[labels] == 4
    assert scene.samples("scheduler_node_allocated_resource")[labels] == 3
    assert scene.samples("scheduler_node_preemptibility") == {("default", "n1", "east", "", "true", ""): 1}
    ended = RunSucceeded(at_ms=scene.world.now_ms, job_id=job_id, run_id=run_id)
    scene.world.store(JobSetEvents("qa", "s", (ended,)))
    assert scene.samples("scheduler_node_allocated_resource")[labels] == 3
    assert scene.samples("node_job_phase_count") == {}


def test_a_node_that_shrank_is_over_allocated() -> None:
    """A device driver restarts and reports nothing for a while: the node says so, and no capacity is below zero."""
    scene = Scene()
    total = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "4"}
    scene.world.report_nodes(node("n1", total=total))
    gpu = pod()
    for part in gpu["containers"][0]["resources"].values():
        part["nvidia.com/gpu"] = "1"
    for job_id in scene.world.submit(*[item(gpu) for _ in range(4)]):
        scene.world.start(job_id)
    scene.world.report_nodes(node("n1", total={**total, "nvidia.com/gpu": "0"}))
    found = scene.samples("scheduler_node_allocated_resource")
    shown = {labels[4]: value for labels, value in found.items() if labels[7] == "true"}
    assert (shown["nvidia.com/gpu"], len(shown)) == (4, len(found))
    gpus = ("east", "default", "nvidia.com/gpu", "", "", "default", "dedicated", "")
    assert scene.samples("cluster_capacity")[gpus] == 0
    scene.world.report_nodes(node("n1", total=total))
    assert {labels[7] for labels in scene.samples("scheduler_node_allocated_resource")} == {"false"}


def test_capacity_of_cordoned_and_shared_nodes() -> None:
    policy = SchedulingPolicy(pools=(PoolPolicy(name="default"), PoolPolicy(name="guest", away_pools=("default",))))
    scene = Scene(policy)
    pods = {1000: {"cpu": "1"}, 2000: {"cpu": "2"}}
    scene.world.report_nodes(
        node("n1", unallocatable=pods), node("n2", unschedulable=True), node("n3", unallocatable={0: {"cpu": "99"}})
    )

    def cpus(name: str, capacity: str = "dedicated", pool: str = "default") -> float:
        return scene.samples(name)[("east", pool, "cpu", "", "", "default", capacity, "")]

    assert (cpus("cluster_farm_capacity"), cpus("cluster_capacity")) == (24, 5 + 8 + 0)
    assert cpus("cluster_available_capacity") == 5
    assert cpus("cluster_capacity", "shared", "guest") == 13
    nodes = ("east", "default", NODES, "", "", "default", "dedicated", "")
    assert (scene.samples("cluster_capacity")[nodes], scene.samples("cluster_available_capacity")[nodes]) == (3, 2)
    assert scene.samples("cluster_cordoned_status") == {("east", "", ""): 0}
    settings = ExecutorSettings(executor_id="east", cordoned=True, cordon_reason="repair", set_by="alice")
    scene.world.store(fact(ExecutorSettingsChanged(at_ms=1, settings=settings)))
    assert scene.samples("cluster_cordoned_status") == {("east", "repair", "alice"): 1}
    assert cpus("cluster_available_capacity") == 0
    names = ("cluster_capacity", "cluster_available_capacity")
    assert min(value for name in names for value in scene.samples(name).values()) == 0
    assert scene.samples("scheduler_pool_info") == {("default",): 1, ("guest",): 1}


def test_words_of_executors() -> None:
    scene = Scene()
    scene.world.report_nodes(node("n1", node_type="big"))
    used = [NodeUsage("n1", "default", "qa", (("cpu", 1.5),)), NodeUsage("gone", "default", "qa", (("cpu", 0.5),))]
    scene.seen |= {"usage": {"east": used}, "heartbeats": {"east": 5_500}}
    assert scene.samples("queue_resource_used") == {
        ("east", "default", "qa", "qa", "cpu", "big", "", "default", ""): 1.5,
        ("east", "default", "qa", "qa", "cpu", "", "", "", ""): 0.5,
    }
    assert scene.samples("executor_last_heartbeat_timestamp_seconds") == {("east",): 5.5}


def test_the_most_shared_values_ever_held_are_told() -> None:
    scene = Scene()
    scene.world.submit(item(), queue="qa", job_set="one")
    before = scene.samples("scheduler_interned_strings")[()]
    scene.world.submit(item(), queue="qa", job_set="two")
    after = scene.samples("scheduler_interned_strings")[()]
    assert after == before + 1
    for job_id in scene.world.ledger.jobs_in_queue("qa"):
        scene.world.cancel(job_id)
    assert scene.samples("scheduler_interned_strings")[()] == after


def test_nodes_are_left_out_on_request() -> None:
    scene = Scene(metrics=MetricsPolicy(shows_nodes=False))
    scene.world.report_nodes(node("n1"))
    assert not [name for name in scene.families() if "node_" in name]
    assert scene.samples("cluster_capacity")


def test_prices_of_jobs_that_wait_and_run() -> None:
    scene = Scene()
    scene.world.report_nodes(node("n1"))
    jobs = [item(annotations={"armadaproject.io/priceBand": band}) for band in ("A", "A", "B", "B", "B")]
    *_, last = scene.world.submit(*jobs)
    scene.world.start(last)
    standing = scene.world.ledger.standing()
    made = _figures(scene, standing)
    bids = np.zeros((9, 2))
    bids[1], bids[2] = (5.0, 7.0), (1.0, 2.0)
    market = PoolBids("default", {"qa": bids.tolist()})
    families = price_families(*made, [market], scene.figures._naming)
    found = {family.series.name: dict(family.samples) for family in families}
    key = ("default", "armada-default", "qa")
    assert found["armada_queue_price_queued_min"] == {(*key, "primary"): 1.0}
    assert found["armada_queue_price_queued_max"] == {(*key, "primary"): 5.0}
    assert found["armada_queue_price_queued_median"] == {(*key, "primary"): 3.0}
    assert found["armada_queue_price_running_median"] == {key: 2.0}
    assert found["armada_queue_price_band_phase_bid"][("default", "qa", "qa", "queueing", "A")] == 5.0
    assert found["armada_queue_price_band_phase_bid"][("default", "qa", "qa", "running", "B")] == 2.0


def _figures(scene: Scene, standing: Any) -> tuple[Any, Any]:
    places = np.zeros(max(1, len(standing.node_ids)), np.int32)
    held = held_figures(standing, places, np.zeros(3, np.int32), EDGES_MS, scene.world.now_ms)
    return queued_figures(standing, lambda *_: ("default",), EDGES_MS, scene.world.now_ms), held


@pytest.mark.parametrize(
    ("values", "median"),
    [([(1.0, 1)], 1.0), ([(1.0, 1), (9.0, 1)], 5.0), ([(9.0, 3), (1.0, 1)], 9.0), ([(1.0, 2), (3.0, 2)], 2.0)],
)
def test_a_median_of_weighted_prices(values: list[tuple[float, int]], median: float) -> None:
    assert weighted_median(values) == median


def test_an_empty_ledger_has_figures_too() -> None:
    scene = Scene()
    assert scene.samples("queue_size")[("qa", "qa", "queued")] == 0
    assert scene.samples("queue_resource_allocated") == {}


def test_every_sample_has_its_labels() -> None:
    scene = Scene()
    scene.world.report_nodes(node("n1"))
    first, _ = scene.world.submit(item(), item())
    scene.world.start(first)
    found = scene.families()
    assert {family.series for family in found.values()} == set(SERIES)
    for family in found.values():
        free = family.free or [()] * len(family.samples)
        assert all(
            len(labels) == len(family.series.labels) + len(own)
            for (labels, _), own in zip(family.samples, free, strict=True)
        )
        assert all(len(labels) == len(family.series.labels) for labels, _ in family.distributions)
