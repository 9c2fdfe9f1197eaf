"""The simulated cluster: behaviour from annotation, command and file; room; faults; the same seed, the same story."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armada.executor.cluster import Changes, ClusterUnavailable, LogRequest, Outcome, PodDeletion
from armada.executor.pods import Pod, order_for
from armada.model.errors import InvalidRequest
from armada.model.jobs import JobTemplate
from armada.simulation.behaviour import plan_of
from armada.simulation.cluster import SimulatedCluster
from armada.simulation.fleet import Behaviour, ClusterSpec, Distribution, Fault, uniform_fleet
from tests.unit.executor.builders import lease, template

SIM = "armadaproject.io/sim"
PROMPT = Behaviour(
    start_delay=Distribution("constant", 10),
    runtime=Distribution("constant", 1_000),
    stop_delay=Distribution("constant", 5),
)


def spec(nodes: int = 2, behaviour: Behaviour = PROMPT, **changes: Any) -> ClusterSpec:
    return msgspec.structs.replace(uniform_fleet(1, nodes).clusters[0], behaviour=behaviour, **changes)


class World:
    """A cluster, its clock and everything it said."""

    def __init__(self, made: ClusterSpec | None = None, seed: int = 0) -> None:
        self.spec = made or spec()
        self.cluster = SimulatedCluster(self.spec, seed)
        self.now_ms = 1_000_000
        self.cluster.listing(self.now_ms)
        self.said: list[tuple[int, Changes]] = []
        self.pods: dict[str, Pod] = {}

    def create(self, run_id: str, made: JobTemplate, node: int = 0) -> tuple[Outcome, str]:
        order = order_for(lease(run_id, template=made, node_name=self.spec.nodes[node].name))
        (creation,) = self.cluster.create([order], self.now_ms)
        return creation.outcome, creation.message

    def run(self, until_ms: int) -> None:
        """Go from event to event until a time after the start."""
        end_ms = 1_000_000 + until_ms
        while True:
            wake_ms = self.cluster.next_wake_ms()
            if wake_ms is None or wake_ms > end_ms:
                break
            self.now_ms = max(wake_ms, self.now_ms)
            self.hear()
        self.now_ms = end_ms
        self.hear()

    def hear(self) -> None:
        changes = self.cluster.advance(self.now_ms)
        if changes:
            self.said.append((self.now_ms - 1_000_000, changes))
            self.pods.update((pod.run_id, pod) for pod in changes.pods)

    def story(self, run_id: str) -> list[tuple[int, str]]:
        said = []
        for at_ms, changes in self.said:
            said += [(at_ms, pod.phase) for pod in changes.pods if pod.run_id == run_id]
            said += [(at_ms, f"gone {gone.reason}".strip()) for gone in changes.gone if gone.run_id == run_id]
        return said


def annotated(text: str, command: tuple[str, ...] = ("x",), **more: Any) -> JobTemplate:
    return template(command, annotations={SIM: text}, **more)


def test_a_pod_lives_as_its_file_says() -> None:
    world = World()
    assert world.create("r", template(["x"])) == (Outcome.CREATED, "")
    world.run(5_000)
    assert world.story("r") == [(0, "pending"), (10, "running"), (1_010, "succeeded")]
    pod = world.pods["r"]
    assert (pod.started_ms, pod.finished_ms) == (1_000_010, 1_001_010)
    assert [(c.name, c.exit_code, c.reason) for c in pod.containers] == [("main", 0, "Completed")]
    assert world.cluster.next_wake_ms() is None


@pytest.mark.parametrize(
    ("made", "runtime_ms", "code"),
    [
        (template(["sleep", "2.5"]), 2_500, 0),
        (template(["sh", "-c", "sleep 1m; sleep 1"]), 61_000, 0),
        (template(["sh", "-c", "sleep 2; exit 3"]), 2_000, 3),
        (template(["sh", "-c"], containers=[{"name": "m", "args": ["sleep $(( (RANDOM % 1) + 4 ))"]}]), 4_000, 0),
        (annotated("runtime=7s,exit=9", ("sleep", "2")), 7_000, 9),
        (annotated("exit=0", ("sh", "-c", "sleep 2; exit 3")), 2_000, 0),
        (template(["python", "train.py", "--oversleep", "9"]), 1_000, 0),
        (
            template(containers=[{"name": "a", "command": ["sleep", "3"]}, {"name": "b", "command": ["sleep", "5"]}]),
            5_000,
            0,
        ),
    ],
)
def test_how_long_a_pod_runs_and_how_it_ends(made: JobTemplate, runtime_ms: int, code: int) -> None:
    world = World()
    world.create("r", made)
    world.run(100_000)
    pod = world.pods["r"]
    assert pod.finished_ms - pod.started_ms == runtime_ms
    assert pod.phase == ("failed" if code else "succeeded")
    assert {container.exit_code for container in pod.containers} == {code}


def test_a_drawn_runtime_stays_in_its_range() -> None:
    world = World(spec(nodes=30))
    made = template(["sh", "-c", "sleep $(( (RANDOM % 10) + 5 ))"])
    for number in range(200):
        world.create(f"r{number}", made, number % 30)
    world.run(60_000)
    lengths = {(pod.finished_ms - pod.started_ms) // 1_000 for pod in world.pods.values()}
    assert lengths == set(range(5, 15))


def test_out_of_memory_and_deadline() -> None:
    world = World()
    world.create("oom", annotated("oom"))
    world.create("late", annotated("runtime=1m", activeDeadlineSeconds=3))
    world.run(10_000)
    assert [(c.exit_code, c.reason) for c in world.pods["oom"].containers] == [(137, "OOMKilled")]
    late = world.pods["late"]
    assert (late.phase, late.reason, late.finished_ms - late.started_ms) == ("failed", "DeadlineExceeded", 3_000)


def test_a_stuck_pod_says_what_it_waits_for() -> None:
    world = World()
    world.create("r", annotated("stuck=ImagePullBackOff"))
    world.run(1_000_000)
    assert world.story("r") == [(0, "pending")]
    assert world.pods["r"].containers[0].reason == "ImagePullBackOff"
    world.cluster.delete([PodDeletion("r", 0, only_pending=True)], world.now_ms)
    world.hear()
    assert world.story("r")[-1][1] == "gone"


@pytest.mark.parametrize("text", ["runtime", "runtime=soon", "exit=256", "exit=x", "colour=red", "stuck=", "oom=1"])
def test_a_wrong_annotation_is_refused(text: str) -> None:
    outcome, message = World().create("r", annotated(text))
    assert outcome == Outcome.REFUSED
    assert SIM in message


def test_outcomes_are_drawn_by_their_chances() -> None:
    drawn = msgspec.structs.replace(PROMPT, exits=((1, 0.2), (2, 0.1)), oom=0.1)
    world = World(spec(nodes=100, behaviour=drawn))
    for number in range(5_000):
        world.create(f"r{number}", template(["x"], requests=()), number % 100)
    world.run(5_000)
    ends = [(pod.containers[0].exit_code, pod.containers[0].reason) for pod in world.pods.values()]
    for end, share in (((0, "Completed"), 0.6), ((1, "Error"), 0.2), ((2, "Error"), 0.1), ((137, "OOMKilled"), 0.1)):
        assert abs(ends.count(end) / 5_000 - share) < 0.03


def test_a_node_holds_what_fits_and_the_rest_waits() -> None:
    world = World()
    half = template(["x"], requests=(("cpu", "4"),))
    for number in range(5):
        world.create(f"r{number}", half)
    world.run(500)
    assert [world.pods[f"r{n}"].phase for n in range(5)] == ["running", "running", "pending", "pending", "pending"]
    world.run(2_500)
    assert [world.pods[f"r{n}"].phase for n in range(5)] == ["succeeded"] * 4 + ["running"]


def test_deletion_takes_its_time_and_frees_the_room_only_then() -> None:
    world = World()
    world.create("old", annotated("runtime=1h,stop=5s", requests=(("cpu", "8"),), terminationGracePeriodSeconds=3))
    world.create("new", template(["x"], requests=(("cpu", "8"),)))
    world.run(100)
    world.cluster.delete([PodDeletion("old")], world.now_ms)
    world.run(10_000)
    assert world.story("old")[-2:] == [(100, "running"), (3_100, "gone")]
    assert world.pods["new"].started_ms == 1_003_100


def test_a_second_deletion_may_hurry_the_first() -> None:
    world = World()
    world.create("r", annotated("runtime=1h,stop=1h"))
    world.run(100)
    world.cluster.delete([PodDeletion("r")], world.now_ms)
    world.run(200)
    world.cluster.delete([PodDeletion("r", 50)], world.now_ms)
    world.run(60_000)
    assert world.story("r")[-1] == (250, "gone")


def test_a_node_that_is_not_ready_stands_still() -> None:
    world = World(spec(faults=(Fault(kind="NotReady", at_ms=500, for_ms=10_000, node="sim-1-worker-0"),)))
    world.create("r", template(["x"]))
    world.create("other", template(["x"]), node=1)
    world.run(20_000)
    assert world.pods["other"].finished_ms == 1_001_010
    assert world.pods["r"].finished_ms == 1_010_500
    states = [(at_ms, node.unschedulable) for at_ms, changes in world.said for node in changes.nodes]
    assert states == [(500, True), (10_500, False)]


def test_a_node_that_is_gone_takes_its_pods_along() -> None:
    world = World(spec(faults=(Fault(kind="Gone", at_ms=500, for_ms=1_000, node="sim-1-worker-0"),)))
    world.create("r", template(["x"]))
    world.run(600)
    assert world.story("r")[-1] == (500, "gone node sim-1-worker-0 is gone")
    assert [name for _, changes in world.said for name in changes.nodes_gone] == ["sim-1-worker-0"]
    assert world.create("again", template(["x"]))[0] == Outcome.NO_NODE
    world.run(2_000)
    assert world.create("again", template(["x"]))[0] == Outcome.CREATED


def test_errors_of_the_interface_come_and_go_again_and_again() -> None:
    world = World(spec(faults=(Fault(kind="apiErrors", at_ms=1_000, every_ms=10_000, for_ms=2_000, rate=0.5),)))
    made = template(["x"], requests=())
    failed: dict[int, int] = {}
    for second in range(40):
        world.run(second * 1_000 + 1)
        for number in range(20):
            try:
                world.create(f"r{second}-{number}", made)
            except ClusterUnavailable:
                failed[second] = failed.get(second, 0) + 1
    assert sorted(failed) == [1, 2, 11, 12, 21, 22, 31, 32]
    assert 40 < sum(failed.values()) < 120


def test_time_can_be_scaled() -> None:
    world = World(spec(time_scale=10.0))
    world.create("r", template(["sleep", "100"]))
    world.run(20_000)
    assert world.pods["r"].finished_ms - world.pods["r"].started_ms == 10_000


def test_logs_say_that_nothing_ran() -> None:
    world = World()
    world.create("r", template(["sh", "-c", "sleep 1; exit 3"]))
    world.run(5_000)
    lines = world.cluster.read_log(LogRequest(job_id="job-r"), world.now_ms)
    assert "nothing is executed" in lines[0].text
    assert "exit code 3" in lines[1].text


def test_a_broken_spec_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match="no containers"):
        plan_of(msgspec.structs.replace(template(), pod_spec=b"{}"), SIM)


def story(seed: int, order: list[int], pauses: list[int]) -> list[str]:
    """All that happens to 20 pods, created in some order with the clock looked at now and then."""
    drawn = Behaviour(
        start_delay=Distribution("lognormal", 100, 2_000),
        runtime=Distribution("exponential", 5_000),
        exits=((1, 0.3),),
        oom=0.1,
    )
    world = World(spec(behaviour=drawn), seed)
    for number in order:
        world.create(f"r{number}", template(["x"], requests=()), number % 2)
    for pause in [*pauses, 10_000_000]:
        world.run(world.now_ms - 1_000_000 + pause)
    return sorted(
        f"{pod.run_id} {pod.started_ms} {pod.finished_ms} {pod.containers[0].exit_code}" for pod in world.pods.values()
    )


@given(
    order=st.permutations(range(20)), pauses=st.lists(st.integers(0, 5_000), max_size=20), seed=st.integers(0, 2**64)
)
def test_a_seed_tells_the_same_story_in_any_order_of_calls(order: list[int], pauses: list[int], seed: int) -> None:
    assert story(seed, order, pauses) == story(seed, list(range(20)), [])


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    script = "from tests.unit.simulation.test_cluster import story; print(story(5, list(range(20)), [7]))"
    told = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert story(5, list(range(20)), [7]) != story(6, list(range(20)), [7])
