"""Files of clusters and workloads: every form of a value, and mistakes told with path and remedy."""

from contextlib import suppress
from random import Random
from statistics import mean
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from armada.model.errors import InvalidRequest
from armada.model.fleet import Taint
from armada.model.jobs import SelectorRequirement, Toleration
from armada.simulation.whatif.reading import read_fleet_spec, read_workload_spec
from armada.simulation.whatif.specs import CLUSTER_LABEL, MAX_DELAY_MS, Delay, FleetSpec, WorkloadSpec, stream
from tests.unit.simulation.whatif import fleet, node, queue, read, template, workload


def read_fleet(values: Any) -> FleetSpec:
    return read_fleet_spec(yaml.safe_dump(values), "clusters", [])


def one(**fields: Any) -> dict[str, Any]:
    return workload(queue("a", template(**fields)))


def changed(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The same with another value at a dotted path; None takes the key away."""
    *way, last = path.split(".")
    spot: Any = values
    for step in way:
        spot = spot[int(step)] if step.isdigit() else spot[step]
    if value is None:
        del spot[last]
    else:
        spot[last] = value
    return values


def test_a_file_of_clusters() -> None:
    spec = read_fleet(
        {
            "name": "fleet",
            "clusters": [
                {
                    "name": "east",
                    "pool": "gpu",
                    "nodeTemplates": [
                        {
                            "number": 2,
                            "taints": [{"key": "gpu", "value": True}],
                            "labels": {"tier": 1, "fast": True},
                            "totalResources": {"resources": {"cpu": 32, "memory": "1024Gi", "nvidia.com/gpu": "8"}},
                        }
                    ],
                }
            ],
            "workflowManagerDelayDistribution": {"minimum": "1m", "tailMean": 30_000_000_000},
            "pendingDelayDistribution": {"minimum": {"seconds": 5}, "tailMean": "0"},
        }
    )
    assert (spec.name, spec.node_count) == ("fleet", 2)
    assert spec.workflow_delay == Delay(60_000, 30_000)
    assert spec.pending_delay == Delay(5_000, 0)
    [cluster] = spec.clusters
    [nodes] = cluster.node_templates
    assert (cluster.name, cluster.pool) == ("east", "gpu")
    assert nodes.total == {"cpu": "32", "memory": "1024Gi", "nvidia.com/gpu": "8"}
    assert nodes.labels == {"tier": "1", "fast": "true"}
    assert nodes.taints == (Taint("gpu", "true", "NoSchedule"),)


def test_a_workload() -> None:
    values = one(
        number=6,
        id="t",
        jobSet="s",
        queuePriority=3,
        priorityClassName="low",
        earliestSubmitTime="1h30m",
        earliestSubmitTimeFromDependencyCompletion={"seconds": "90", "nanos": 500_000_000},
        gangCardinality=3,
        gangNodeUniformityLabel="rack",
        repeat={"numTimes": 4, "period": 3_600_000_000_000},
    )
    requirements = values["queues"][0]["jobTemplates"][0]["requirements"]
    requirements |= {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]
                }
            }
        },
        "annotations": {"who": "me"},
        "priority": 1000,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    requirements["resourceRequirements"]["limits"] = {"cpu": 1, "nvidia.com/gpu": 2}
    spec = read({**values, "name": "w", "randomSeed": 42})
    assert (spec.name, spec.seed, spec.job_count) == ("w", 42, 24)
    [found] = spec.queues[0].templates
    assert (found.id, found.job_set, found.queue_priority, found.priority_class) == ("t", "s", 3, "low")
    assert (found.number, found.gang_cardinality, found.uniformity_label) == (6, 3, "rack")
    assert (found.earliest_ms, found.after_dependencies_ms) == (5_400_000, 90_500)
    assert (found.repeats, found.period_ms) == (4, 3_600_000)
    assert found.requests == (("cpu", "1"), ("memory", "1Gi"), ("nvidia.com/gpu", "2"))
    assert found.node_selector == (("disk", "ssd"),)
    assert found.tolerations == (Toleration("gpu", "Exists"),)
    assert found.affinity == ((SelectorRequirement("zone", "In", ("z",)),),)


def test_what_is_left_out_has_defaults() -> None:
    spec = read(workload(queue("a", template(), template())))
    assert (spec.name, spec.seed) == ("workload", 0)
    first, second = spec.queues[0].templates
    assert (first.id, second.id, second.job_set) == ("a-0", "a-1", "a-1")
    assert (first.gang_cardinality, first.uniformity_label, first.repeats) == (1, CLUSTER_LABEL, 1)


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("6m", 360_000),
        ("1h2m3s4ms", 3_723_004),
        ("0", 0),
        (0, 0),
        (360_000_000_000, 360_000),
        (3.6e11, 360_000),
        ({"seconds": 360}, 360_000),
        ({"seconds": "360", "nanos": 1_000_000}, 360_001),
        ({}, 0),
    ],
)
def test_lengths_of_time(written: Any, milliseconds: int) -> None:
    spec = read(one(runtimeDistribution={"minimum": written}))
    assert spec.queues[0].templates[0].runtime == Delay(milliseconds)


@pytest.mark.parametrize(
    "written", ["6", "6 m", "soon", "-1m", True, [], -1, 1.5, {"seconds": -1}, {"seconds": "x"}, "999999h", 10**20]
)
def test_what_is_no_length_of_time(written: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^queues\[0\]\.jobTemplates\[0\]\.runtimeDistribution\.minimum"):
        read(one(runtimeDistribution={"minimum": written}))


def test_a_number_that_was_meant_as_seconds_is_remarked_upon() -> None:
    remarks: list[str] = []
    read_workload_spec(yaml.safe_dump(one(runtimeDistribution={"minimum": 360})), "w", remarks)
    [remark] = remarks
    place, _, text = remark.partition(": ")
    assert place == "queues[0].jobTemplates[0].runtimeDistribution.minimum"
    assert text == "360 nanoseconds are less than a millisecond; write 6m, {seconds: 360}, or nanoseconds"


def test_keys_without_a_meaning_are_remarked_upon() -> None:
    remarks: list[str] = []
    values = {**one(dependecies=["x"]), "author": "me"}
    assert read_workload_spec(yaml.safe_dump(values), "w", remarks).job_count == 1
    assert [remark.partition(";")[0] for remark in remarks] == [
        "queues[0].jobTemplates[0].dependecies: unknown, not looked at",
        "author: unknown, not looked at",
    ]
    assert "dependencies" in remarks[0]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("queues", None, r"^queues is missing"),
        ("queues", [], r"^queues: there is none"),
        ("queues", "x", r"^queues: expected a list"),
        ("queues.0.name", None, r"^queues\[0\]\.name is missing"),
        ("queues.0.name", "", r"^queues\[0\]\.name: '' is no name"),
        ("queues.0.weight", 0, r"^queues\[0\]\.weight: 0 is no weight; write a number above 0"),
        ("queues.0.weight", "heavy", r"^queues\[0\]\.weight: expected a number"),
        ("queues.0.jobTemplates.0.number", 0, r"^queues\[0\]\.jobTemplates\[0\]\.number: 0 is not from 1"),
        ("queues.0.jobTemplates.0.number", 10**9, r"^queues\[0\]\.jobTemplates\[0\]\.number: "),
        ("queues.0.jobTemplates.0.requirements", None, r"\.requirements is missing"),
        ("queues.0.jobTemplates.0.requirements.resourceRequirements.requests", {}, r"requests is missing: say what"),
        ("queues.0.jobTemplates.0.requirements.resourceRequirements.requests.cpu", "lots", r"\.requests\.cpu: "),
        ("queues.0.jobTemplates.0.requirements.affinity", {"nodeAffinity": 5}, r"\.affinity: it has not the form"),
        ("queues.0.jobTemplates.0.runtimeDistribution", None, r"\.runtimeDistribution is missing"),
        ("queues.0.jobTemplates.0.gangCardinality", 3, r"\.gangCardinality: 4 jobs can't be split into gangs of 3"),
        ("queues.0.jobTemplates.0.repeat", {"numTimes": 0, "period": "1m"}, r"\.repeat\.numTimes: 0 is not from 1"),
        ("queues.0.jobTemplates.0.repeat", {"numTimes": 2}, r"\.repeat\.period is missing"),
        ("queues.0.jobTemplates.0.queuePriority", 2**31, r"\.queuePriority: 2147483648 is above"),
        ("queues.0.jobTemplates.0.dependencies", ["x"], r"\.dependencies\[0\]: no template has the id 'x'; ids are t"),
        ("queues.0.jobTemplates.0.dependencies", ["t"], r"\.dependencies: these wait for each other: t"),
        ("randomSeed", "seven", r"^randomSeed: 'seven' is no seed"),
    ],
)
def test_mistakes_in_workloads(path: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read(changed(one(number=4, id="t"), path, value))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("clusters", [], r"^clusters: 0 nodes in all"),
        ("clusters.0.pool", None, r"^clusters\[0\]\.pool is missing"),
        ("clusters.0.nodeTemplates.0.number", -1, r"^clusters\[0\]\.nodeTemplates\[0\]\.number: "),
        ("clusters.0.nodeTemplates.0.number", 200_001, r"^clusters: 200,001 nodes in all; there must be 1 to 200,000"),
        ("clusters.0.nodeTemplates.0.totalResources", {}, r"totalResources\.resources is missing"),
        ("clusters.0.nodeTemplates.0.labels", ["x"], r"\.labels: expected a mapping"),
        ("clusters.0.nodeTemplates.0.taints", [{"value": "x"}], r"\.taints\[0\]\.key is missing"),
        ("pendingDelayDistribution", "5m", r"^pendingDelayDistribution: expected a mapping"),
    ],
)
def test_mistakes_in_clusters(path: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read_fleet(changed(fleet(node()), path, value))


def test_names_and_ids_are_there_once() -> None:
    with pytest.raises(InvalidRequest, match=r"^clusters\[1\]\.name: 'c' is there twice"):
        read_fleet({"clusters": [*fleet()["clusters"], *fleet()["clusters"]]})
    with pytest.raises(InvalidRequest, match=r"^queues\[1\]\.name: 'a' is there twice"):
        read(workload(queue("a", template(id="x")), queue("a", template(id="y"))))
    with pytest.raises(InvalidRequest, match=r"^queues\[1\]\.jobTemplates\[0\]\.id: 'x' is there twice"):
        read(workload(queue("a", template(id="x")), queue("b", template(id="x"))))


def test_circles_of_dependencies_are_named() -> None:
    circle = workload(
        queue("a", template(id="x", dependencies=["z"]), template(id="free")),
        queue("b", template(id="y", dependencies=["x", "free"]), template(id="z", dependencies=["y"])),
    )
    with pytest.raises(InvalidRequest, match=r"these wait for each other: x, y, z"):
        read(circle)


@pytest.mark.parametrize(
    "content", ["a: [", "a: !!bool perhaps", "a: !!timestamp soon", "a: b: c", "\x00", "just a text", "- 1", ""]
)
def test_what_is_no_such_file_at_all(content: str) -> None:
    for reader in (read_fleet_spec, read_workload_spec):
        with pytest.raises(InvalidRequest):
            reader(content, "x", [])


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5))
def test_any_value_anywhere_is_read_or_refused(value: Any) -> None:
    """Whatever stands in a field: a spec or a refusal, never another failure."""
    for path in ("queues", "queues.0.weight", "queues.0.jobTemplates.0.repeat", "queues.0.jobTemplates.0.number"):
        content = yaml.safe_dump(changed(one(), path, value) if value is not None else {})
        with suppress(InvalidRequest):
            assert isinstance(read_workload_spec(content, "x", []), WorkloadSpec)


def test_delays_are_shifted_exponentials() -> None:
    delay = Delay(60_000, 120_000)
    lengths = [delay.drawn(chance) for chance in [Random(3)] for _ in range(20_000)]
    assert min(lengths) >= 60_000
    assert mean(lengths) == pytest.approx(180_000, rel=0.02)
    beyond = sum(length > 180_000 for length in lengths) / len(lengths)
    assert beyond == pytest.approx(0.3679, abs=0.02)


def test_a_delay_without_tail_takes_nothing_from_the_stream() -> None:
    chance = stream(1, "x")
    before = chance.getstate()
    assert Delay(5).drawn(chance) == 5
    assert chance.getstate() == before


def test_delays_are_bounded() -> None:
    assert Delay(0, MAX_DELAY_MS).drawn(Random(1)) <= MAX_DELAY_MS
    assert max(Delay(0, MAX_DELAY_MS).drawn(chance) for chance in [Random(1)] for _ in range(100)) == MAX_DELAY_MS


def test_streams_differ_by_seed_and_purpose() -> None:
    draws = [stream(*key).random() for key in ((1, "a"), (1, "b"), (2, "a"), (1, "a"))]
    assert draws[0] == draws[3]
    assert len(set(draws)) == 3
