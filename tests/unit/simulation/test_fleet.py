"""Simulation files: what they say, and what is wrong with them."""

import pytest

from armada.model.errors import InvalidRequest
from armada.model.fleet import Taint
from armada.simulation.fleet import Distribution, Fault, duration_ms, read_fleet, uniform_fleet

WHOLE = """
seed: 7
timeScale: 10
clusters:
  - id: east
    pool: gpu
    nodes:
      - name: a100
        count: 3
        allocatable: {cpu: "96", memory: 1Ti, nvidia.com/gpu: "8"}
        labels: {zone: z1}
        taints: [{key: gpu, value: "true", effect: NoSchedule}]
      - {name: cpu}
    pods:
      default:
        startDelay: {dist: lognormal, p50: 2s, p99: 30s}
        runtime: {dist: exponential, mean: 10m}
        stopDelay: 20ms
        outcome: {succeed: 0.97, exit: {1: 0.02}, oom: 0.01}
      byAnnotation: example.com/sim
    faults:
      - {at: 1h, node: a100-2, kind: NotReady, for: 20m}
      - {every: 30m, kind: apiErrors, rate: 0.2, for: 1m}
  - id: west
"""


def test_a_whole_file() -> None:
    fleet = read_fleet(WHOLE)
    assert fleet.seed == 7
    east, west = fleet.clusters
    assert (east.executor_id, east.pool, west.executor_id, west.pool) == ("east", "gpu", "west", "default")
    assert [node.name for node in east.nodes] == ["east-a100-0", "east-a100-1", "east-a100-2", "east-cpu-0"]
    node = east.nodes[0]
    assert node.total == {
        "ephemeral-storage": "1Ti",
        "pods": "250",
        "cpu": "96",
        "memory": "1Ti",
        "nvidia.com/gpu": "8",
    }
    assert node.labels["zone"] == "z1"
    assert node.labels["kubernetes.io/hostname"] == "east-a100-0"
    assert node.labels["armadaproject.io/simulated"] == "true"
    assert node.taints == (Taint("gpu", "true"),)
    assert (node.node_id, node.node_type, node.executor_id, node.pool) == ("east-east-a100-0", "a100", "east", "gpu")
    assert east.time_scale == 10
    assert east.annotation == "example.com/sim"
    assert east.behaviour.start_delay == Distribution("lognormal", 2_000, 30_000)
    assert east.behaviour.runtime == Distribution("exponential", 600_000)
    assert east.behaviour.stop_delay == Distribution("constant", 20)
    assert east.behaviour.exits == ((1, 0.02),)
    assert east.behaviour.oom == 0.01
    assert east.faults == (
        Fault(kind="NotReady", at_ms=3_600_000, for_ms=1_200_000, node="east-a100-2"),
        Fault(kind="apiErrors", at_ms=1_800_000, every_ms=1_800_000, for_ms=60_000, rate=0.2),
    )
    assert len(west.nodes) == 500
    assert west.nodes[0].name == "west-worker-0"


def test_the_configuration_of_a_fake_executor() -> None:
    fleet = read_fleet(
        """
        application: {clusterId: fake-a, pool: blue}
        kubernetes: {nodeIdLabel: kubernetes.io/hostname}
        nodes: [{name: cpu, count: 2, allocatable: {cpu: "8"}}]
        """
    )
    (cluster,) = fleet.clusters
    assert (cluster.executor_id, cluster.pool) == ("fake-a", "blue")
    assert [node.name for node in cluster.nodes] == ["fake-a-cpu-0", "fake-a-cpu-1"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("]", "not YAML"),
        ("seed: 2020-13-45", "not YAML"),
        ("seed: !!bool perhaps", "not YAML"),
        ("[]", "file: must be a mapping"),
        ("clusters: []", "must be 1 to"),
        ("{clusters: [{id: a}], speed: 3}", "unknown key 'speed'"),
        ("{clusters: [{id: a}], seed: x}", "seed: 'x'"),
        ("{clusters: [{id: a}], timeScale: 0}", "timeScale: 0"),
        ("clusters: [{pool: p}]", "clusters[0].id"),
        ("clusters: [{id: a}, {id: a}]", "two have the id 'a'"),
        ("clusters: [{id: a, nodes: [{name: n, count: 0}]}]", "clusters[0].nodes[0].count: 0"),
        ("clusters: [{id: a, nodes: [{name: n, count: 1000000}]}]", "count: 1000000"),
        ("clusters: [{id: a, nodes: [{name: n}, {name: n}]}]", "two nodes would have the name 'a-n-0'"),
        ("clusters: [{id: a, nodes: [{name: n, allocatable: {cpu: lots}}]}]", "allocatable.cpu"),
        ("clusters: [{id: a, nodes: [{name: n, allocatable: {cpu: -1}}]}]", "is negative"),
        ("clusters: [{id: a, nodes: [{name: n, taints: [{key: k, effect: Never}]}]}]", "'Never' is not"),
        ("clusters: [{id: a, external: {rate: 5/min}}]", "unknown key 'external'"),
        ("clusters: [{id: a, pods: {default: {runtime: 5}}}]", "runtime: must be a mapping"),
        ("clusters: [{id: a, pods: {default: {runtime: soon}}}]", "'soon' is not a length of time"),
        ("clusters: [{id: a, pods: {default: {runtime: {dist: normal}}}}]", "'normal' is not"),
        ("clusters: [{id: a, pods: {default: {runtime: {dist: uniform, min: 2s, max: 1s}}}}]", "must not be above"),
        ("clusters: [{id: a, pods: {default: {runtime: {dist: lognormal, p50: 0s, p99: 1s}}}}]", "above 0"),
        ("clusters: [{id: a, pods: {default: {outcome: {succeed: 0.5}}}}]", "add up to 0.5"),
        ("clusters: [{id: a, pods: {default: {outcome: {exit: {300: 0.5}}}}}]", "'300' is not an exit code"),
        ("clusters: [{id: a, pods: {default: {outcome: {oom: 2}}}}]", "oom: 2 is not a number from 0 to 1"),
        ("clusters: [{id: a, faults: [{kind: fire, for: 1s}]}]", "kind: 'fire'"),
        ("clusters: [{id: a, faults: [{kind: Gone, for: 1s, node: x}]}]", "there is no node 'x'"),
        ("clusters: [{id: a, faults: [{kind: apiErrors, every: 1s, for: 2s}]}]", "longer than `for`"),
    ],
)
def test_what_is_wrong_is_named(text: str, part: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_fleet(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30s", 30_000), ("1h30m", 5_400_000), ("250ms", 250), ("1.5s", 1_500), ("0s", 0), ("2d", 172_800_000)],
)
def test_lengths_of_time(text: str, expected: int) -> None:
    assert duration_ms(text, "x") == expected


@pytest.mark.parametrize("value", ["", "s", "5", 5, "5s ", "-1s", "1e3s", "400d", None, "1h-1m"])
def test_what_is_no_length_of_time(value: object) -> None:
    with pytest.raises(InvalidRequest, match="x: "):
        duration_ms(value, "x")


def test_distributions() -> None:
    grid = [number / 1000 for number in range(1000)]
    assert {Distribution("constant", 5).at(chance) for chance in grid} == {5}
    uniform = [Distribution("uniform", 10, 20).at(chance) for chance in grid]
    assert (min(uniform), max(uniform)) == (10, 19)
    exponential = [Distribution("exponential", 1_000).at(chance) for chance in grid]
    assert 980 < sum(exponential) / len(grid) < 1_000
    lognormal = sorted(Distribution("lognormal", 2_000, 30_000).at(chance) for chance in grid)
    assert lognormal[500] == 2_000
    assert lognormal[990] == 30_000
    assert lognormal[0] >= 0


def test_equal_clusters() -> None:
    fleet = uniform_fleet(3, 20, pool="p", seed=4)
    assert [cluster.executor_id for cluster in fleet.clusters] == ["sim-1", "sim-2", "sim-3"]
    assert {len(cluster.nodes) for cluster in fleet.clusters} == {20}
    assert {node.labels["armadaproject.io/simulated"] for c in fleet.clusters for node in c.nodes} == {"true"}
    for clusters, nodes in ((0, 1), (1, 0), (1_001, 1), (2, 150_000)):
        with pytest.raises(InvalidRequest, match="can't be simulated"):
            uniform_fleet(clusters, nodes)
