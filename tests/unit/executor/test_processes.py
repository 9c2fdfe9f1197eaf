"""This machine's processes as pods: what they see, how they end, and that nothing of them is left or lost."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from armada.executor.cluster import LogRequest, Outcome, PodDeletion
from armada.executor.machine.container import kill_strays
from armada.executor.machine.node import ProcessSettings
from armada.executor.pods import Pod, order_for
from armada.executor.processes import ProcessCluster
from armada.executor.service import wall_clock_ms
from armada.model.errors import StartupRefused
from armada.model.fleet import Taint
from armada.model.jobs import GangSpec
from tests.unit.executor.builders import lease, template

TRUE = {"name": "main", "command": ["true"]}
SLEEPY_DRIVER = """
import asyncio, sys
from pathlib import Path
from armada.executor.processes import ProcessCluster
from armada.executor.machine.node import ProcessSettings
from armada.executor.pods import order_for
from armada.executor.service import wall_clock_ms
from tests.unit.executor.builders import lease, template

async def main():
    cluster = ProcessCluster(Path(sys.argv[1]), executor_id="e", pool="p", clock_ms=wall_clock_ms,
                             settings=ProcessSettings(node_name="here"))
    await cluster.list()
    await cluster.create([order_for(lease(f"r{n}", template=template(["sh", "-c", script], **{
        "terminationGracePeriodSeconds": 1}), node_name="here")) for n, script in enumerate(sys.argv[2:])])
    print("created", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


class Machine:
    """A process cluster in a folder, with the last state of each pod."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        made = ProcessSettings(**{"node_name": "here", **settings})
        self.cluster = ProcessCluster(folder, executor_id="e", pool="p", clock_ms=wall_clock_ms, settings=made)
        self.pods: dict[str, Pod] = {}
        self.gone: list[str] = []

    async def open(self) -> "Machine":
        self.pods = {pod.run_id: pod for pod in (await self.cluster.list()).pods}
        return self

    async def create(self, run_id: str, command: Sequence[str] | None, **spec: Any) -> tuple[Outcome, str]:
        made = template(command, **spec)
        (creation,) = await self.cluster.create([order_for(lease(run_id, template=made, node_name="here"))])
        return creation.outcome, creation.message

    async def sh(self, run_id: str, script: str, **spec: Any) -> None:
        assert await self.create(run_id, ["sh", "-c", script], **spec) == (Outcome.CREATED, "")

    async def until(self, run_id: str, *phases: str) -> Pod:
        async with asyncio.timeout(20):
            while run_id not in self.pods or self.pods[run_id].phase not in phases:
                await self._hear()
        return self.pods[run_id]

    async def end(self, run_id: str) -> Pod:
        return await self.until(run_id, "succeeded", "failed")

    async def until_gone(self, run_id: str) -> None:
        async with asyncio.timeout(20):
            while run_id not in self.gone:
                await self._hear()

    async def _hear(self) -> None:
        changes = await self.cluster.changes()
        self.pods.update((pod.run_id, pod) for pod in changes.pods)
        self.gone.extend(gone.run_id for gone in changes.gone)

    async def text(self, run_id: str, container: str = "") -> list[str]:
        lines = await self.cluster.read_log(LogRequest(run_id=run_id, container=container))
        return [line.text for line in lines if not line.text.startswith("armada: ")]

    async def close(self) -> None:
        run_ids = list(self.cluster._pods)
        await self.cluster.delete([PodDeletion(run_id, 0) for run_id in run_ids])
        for run_id in run_ids:
            await self.until_gone(run_id)
        await self.cluster.close()
        await asyncio.to_thread(kill_strays, frozenset(run_ids))


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    machine = await Machine(tmp_path / "pods").open()
    yield machine
    await machine.close()


def processes_of(run_id: str) -> list[int]:
    """Pids of all processes that carry the run's id and are no zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"ARMADA_JOB_RUN_ID={run_id}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


async def until(done: Callable[[], bool], timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not done():  # noqa: ASYNC110 - neither the table of processes nor files have events
            await asyncio.sleep(0.02)


async def until_none_of(run_id: str) -> None:
    await until(lambda: not processes_of(run_id))


async def test_the_environment_is_small_and_leaks_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXECUTOR_SECRET", "hush")
    env = [
        {"name": "GREETING", "value": "hello $(ARMADA_JOB_ID) $(NOBODY) $$(HOME)"},
        {"name": "odd.name-of", "value": "kept"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "TEAM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
        {"name": "ARMADA_QUEUE", "value": "mine"},
    ]
    container = {
        "name": "main",
        "command": ["env"],
        "env": env,
        "resources": {"requests": {"memory": "100Mi"}},
    }
    made = template(labels={"team": "a"}, containers=[container], gang=GangSpec("g1", 2, "zone"))
    overlaid = lease("env", template=made, node_name="here", overlay={"ARMADA_GANG_NODE_UNIFORMITY_LABEL_VALUE": "z1"})
    await machine.cluster.create([order_for(overlaid)])
    assert (await machine.end("env")).phase == "succeeded"
    seen = dict(line.split("=", 1) for line in await machine.text("env"))
    folder = str(machine.folder / "env" / "work-0")
    assert seen.pop("PWD", folder) == folder
    assert seen == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": folder,
        "LANG": "C.UTF-8",
        "HOSTNAME": "armada-job-env-0",
        "ARMADA_JOB_ID": "job-env",
        "ARMADA_JOB_RUN_ID": "env",
        "ARMADA_QUEUE": "mine",
        "ARMADA_JOB_SET_ID": "s",
        "ARMADA_GANG_ID": "g1",
        "ARMADA_GANG_CARDINALITY": "2",
        "ARMADA_GANG_NODE_UNIFORMITY_LABEL_NAME": "zone",
        "ARMADA_GANG_NODE_UNIFORMITY_LABEL_VALUE": "z1",
        "GREETING": "hello job-env $(NOBODY) $(HOME)",
        "odd.name-of": "kept",
        "NODE": "here",
        "TEAM": "a",
        "MEMORY": "100",
    }


async def test_words_of_a_command_are_taken_as_they_are(machine: Machine) -> None:
    await machine.create("words", ["echo", r"a\tb", "*", "$HOME", "two  spaces", "$(ARMADA_QUEUE)"])
    await machine.end("words")
    assert await machine.text("words") == [r"a\tb * $HOME two  spaces q"]


async def test_every_pod_has_a_folder_of_its_own(machine: Machine) -> None:
    await machine.sh("a", "echo mine > file; pwd")
    await machine.sh("b", "ls; pwd")
    await machine.end("a")
    await machine.end("b")
    (first,), (second,) = await machine.text("a"), await machine.text("b")
    assert first != second
    assert (Path(first) / "file").read_text() == "mine\n"
    assert (machine.folder / "a").stat().st_mode & 0o077 == 0


async def test_a_working_directory_that_is_there_is_used(machine: Machine, tmp_path: Path) -> None:
    for run_id, wanted in (("there", str(tmp_path)), ("absent", "/not/there")):
        container = {"name": "main", "command": ["pwd"], "workingDir": wanted}
        await machine.create(run_id, None, containers=[container])
        await machine.end(run_id)
    assert await machine.text("there") == [str(tmp_path)]
    assert await machine.text("absent") == [str(machine.folder / "absent" / "work-0")]
    notes = await machine.cluster.read_log(LogRequest(run_id="absent"))
    assert "workingDir /not/there" in notes[0].text


async def test_an_image_is_ignored_with_a_note(machine: Machine) -> None:
    await machine.create("noted", ["echo", "hi"], volumes=[{"name": "cache", "emptyDir": {}}])
    await machine.end("noted")
    lines = [line.text for line in await machine.cluster.read_log(LogRequest(run_id="noted"))]
    assert lines == [
        "armada: volumes are not mounted on this machine: cache",
        "armada: image busybox of container main is not used: its command runs on this machine",
        "hi",
    ]


@pytest.mark.parametrize(
    ("container", "part"),
    [
        ({"name": "main", "image": "busybox"}, "has no command: images are not run on this machine"),
        ({"name": "main", "image": "busybox", "args": ["x"]}, "has no command: images are not run on this machine"),
        ({"name": "main", "command": ["no-such-program"]}, "no program 'no-such-program'"),
        (
            {"name": "main", "command": ["true"], "envFrom": [{"secretRef": {"name": "s"}}]},
            "no config maps and secrets",
        ),
        (
            {"name": "main", "command": ["true"], "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]},
            "variable A: there are no config maps and secrets",
        ),
        (
            {
                "name": "main",
                "command": ["true"],
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
            },
            "variable A: there is no field 'x'",
        ),
        ({"name": "main", "command": ["true"], "env": [{"name": "A=B", "value": "x"}]}, "'A=B' can't be the name"),
        ({"name": "main", "command": "true"}, "no program 't'"),
    ],
)
async def test_what_can_not_run_here_is_refused(machine: Machine, container: dict[str, Any], part: str) -> None:
    outcome, message = await machine.create("refused", None, containers=[container])
    assert outcome == Outcome.REFUSED
    assert part in message
    assert not (machine.folder / "refused").exists()


async def test_a_program_that_can_not_be_executed_fails_its_container(machine: Machine) -> None:
    await machine.create("noexec", ["./missing"])
    pod = await machine.end("noexec")
    assert pod.containers[0].exit_code in (126, 127)


async def test_another_user_is_refused(machine: Machine) -> None:
    outcome, message = await machine.create("user", ["id", "-u"], securityContext={"runAsUser": 65534})
    assert outcome == Outcome.REFUSED
    assert "asks for user 65534" in message
    own = {"runAsUser": os.geteuid(), "runAsGroup": os.getegid()}
    assert (await machine.create("own", ["true"], securityContext=own))[0] == Outcome.CREATED
    if os.geteuid() == 0:
        assert (await machine.create("root", ["true"], securityContext={"runAsNonRoot": True}))[0] == Outcome.REFUSED


async def test_exit_codes_and_signals(machine: Machine) -> None:
    for run_id, script, code in (("zero", "exit 0", 0), ("three", "exit 3", 3), ("killed", "kill -KILL $$$$", 137)):
        await machine.sh(run_id, script)
        pod = await machine.end(run_id)
        assert pod.containers[0].exit_code == code
        assert pod.phase == ("succeeded" if code == 0 else "failed")


async def test_a_request_to_terminate_can_be_obeyed(machine: Machine) -> None:
    flag = machine.folder.parent / "cleaned"
    script = f"trap 'touch {flag}; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    await machine.sh("polite", script, terminationGracePeriodSeconds=10)
    await until(lambda: (machine.folder / "polite" / "0.log").read_text() == "ready\n")
    await machine.cluster.delete([PodDeletion("polite")])
    await machine.until_gone("polite")
    assert flag.exists()


async def test_what_does_not_obey_is_killed_with_all_its_children(machine: Machine) -> None:
    script = "trap '' TERM; (trap '' TERM; sleep 300) & sleep 300; sleep 300"
    await machine.sh("stubborn", script, terminationGracePeriodSeconds=1)
    await until(lambda: len(processes_of("stubborn")) >= 4)
    start = wall_clock_ms()
    await machine.cluster.delete([PodDeletion("stubborn")])
    await machine.until_gone("stubborn")
    assert 900 <= wall_clock_ms() - start < 5_000
    await until_none_of("stubborn")


async def test_nothing_of_a_container_outlives_its_end(machine: Machine) -> None:
    await machine.sh("leaving", "sleep 300 & setsid sleep 300 & exit 0")
    assert (await machine.end("leaving")).phase == "succeeded"
    await until_none_of("leaving")


async def test_a_deadline_counts_from_the_start_with_init_containers(machine: Machine) -> None:
    init = [{"name": "wait", "command": ["sleep", "0.6"]}]
    await machine.sh("late", "sleep 300", initContainers=init, activeDeadlineSeconds=1)
    pod = await machine.end("late")
    assert (pod.phase, pod.reason) == ("failed", "DeadlineExceeded")
    assert 900 <= pod.finished_ms - pod.created_ms < 5_000


async def test_init_containers_run_first_and_in_order(machine: Machine) -> None:
    trace = machine.folder.parent / "trace"
    init = [
        {"name": name, "command": ["sh", "-c", f"echo {name}+ >> {trace}; sleep 0.05; echo {name}- >> {trace}"]}
        for name in ("one", "two")
    ]
    await machine.sh("ordered", f"echo main >> {trace}", initContainers=init)
    pod = await machine.end("ordered")
    assert trace.read_text().split() == ["one+", "one-", "two+", "two-", "main"]
    assert [(c.name, c.is_init, c.exit_code) for c in pod.containers] == [
        ("one", True, 0),
        ("two", True, 0),
        ("main", False, 0),
    ]


async def test_a_failed_init_container_ends_the_pod_before_its_main_ones(machine: Machine) -> None:
    init = [{"name": "bad", "command": ["sh", "-c", "exit 5"]}, {"name": "never", "command": ["true"]}]
    await machine.sh("stillborn", "true", initContainers=init)
    pod = await machine.end("stillborn")
    assert pod.phase == "failed"
    assert pod.started_ms == 0
    assert [(c.name, c.started_ms > 0, c.exit_code) for c in pod.containers] == [
        ("bad", True, 5),
        ("never", False, 0),
        ("main", False, 0),
    ]


async def test_sidecars_start_first_restart_and_end_with_the_main_containers(machine: Machine) -> None:
    trace = machine.folder.parent / "trace"
    sidecar = {
        "name": "side",
        "command": ["sh", "-c", f"echo start >> {trace}; test $(wc -l < {trace}) -gt 1 && exec sleep 300"],
        "restartPolicy": "Always",
    }
    script = f"until test $(wc -l < {trace}) -gt 1; do sleep 0.02; done"
    await machine.sh("accompanied", script, initContainers=[sidecar], terminationGracePeriodSeconds=5)
    pod = await machine.end("accompanied")
    assert pod.phase == "succeeded"
    assert trace.read_text().split() == ["start", "start"]
    await until_none_of("accompanied")


async def test_several_main_containers_run_together(machine: Machine) -> None:
    pipe = machine.folder.parent / "pipe"
    os.mkfifo(pipe)
    containers = [
        {"name": "left", "command": ["sh", "-c", f"echo hello > {pipe}"]},
        {"name": "right", "command": ["cat", str(pipe)]},
    ]
    await machine.create("pair", None, containers=containers)
    assert (await machine.end("pair")).phase == "succeeded"
    assert await machine.text("pair", "right") == ["hello"]
    assert await machine.text("pair", "left") == []


async def test_two_executors_can_not_share_a_folder(machine: Machine) -> None:
    with pytest.raises(StartupRefused, match="another executor uses"):
        await Machine(machine.folder).open()


async def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupRefused, match="can't be used"):
        await Machine(tmp_path / "file" / "pods").open()


async def test_the_node_says_what_the_machine_has(tmp_path: Path) -> None:
    machine = await Machine(tmp_path, labels={"zone": "z"}, taints=(Taint("k"),), totals={"cpu": "3500m"}).open()
    (node,) = (await machine.cluster.list()).nodes
    assert node.labels["zone"] == "z"
    assert node.labels["armadaproject.io/processes"] == "true"
    assert node.taints == (Taint("k"),)
    assert node.total["cpu"] == "3500m"
    assert int(node.total["memory"]) > 1 << 28
    assert int(node.total["ephemeral-storage"]) >= 110 * (8 << 30)
    await machine.close()
    with pytest.raises(StartupRefused, match="total of cpu"):
        await Machine(tmp_path / "other", totals={"cpu": "many"}).open()


# -- restarts


async def test_after_an_orderly_restart_everything_is_found(tmp_path: Path) -> None:
    before = await Machine(tmp_path / "pods").open()
    await before.sh("running", "sleep 0.5; exit 7")
    await before.sh("ended", "exit 4")
    await before.sh("quick", "sleep 0.2; echo later; exit 5")
    await before.end("ended")
    await before.until("running", "running")
    await before.cluster.close()
    await asyncio.sleep(0.3)
    after = await Machine(tmp_path / "pods").open()
    assert after.pods["running"].phase == "running"
    assert after.pods["running"].started_ms == before.pods["running"].started_ms
    assert after.pods["ended"] == before.pods["ended"]
    assert after.pods["quick"].containers[0].exit_code == 5
    assert await after.text("quick") == ["later"]
    assert (await after.end("running")).containers[0].exit_code == 7
    assert await after.create("running", ["true"]) == (Outcome.ALREADY_THERE, "")
    await after.close()


def start_driver(folder: Path, *scripts: str) -> subprocess.Popen[bytes]:
    driver = subprocess.Popen([sys.executable, "-c", SLEEPY_DRIVER, str(folder), *scripts], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"created\n"
    return driver


def kill(driver: subprocess.Popen[bytes]) -> None:
    driver.kill()
    driver.wait()
    if driver.stdout is not None:
        driver.stdout.close()


async def test_containers_survive_kill_9_of_their_executor(tmp_path: Path) -> None:
    folder = tmp_path / "pods"
    driver = start_driver(folder, "sleep 1.5; exit 6", "sleep 0.1; exit 9", "trap '' TERM; while :; do sleep 0.1; done")
    kill(driver)
    await asyncio.sleep(0.3)
    machine = await Machine(folder).open()
    assert machine.pods["r0"].phase == "running"
    assert machine.pods["r1"].containers[0].exit_code == 9
    assert len(processes_of("r0")) == 3  # the leader, the shell, its sleep
    await machine.cluster.delete([PodDeletion("r2")])
    assert (await machine.end("r0")).containers[0].exit_code == 6
    await machine.until_gone("r2")
    await until_none_of("r2")
    await machine.close()


async def test_a_deletion_that_was_under_way_goes_on_after_a_crash(tmp_path: Path) -> None:
    machine = await Machine(tmp_path / "pods").open()
    await machine.sh("r", "trap '' TERM; while :; do sleep 0.1; done", terminationGracePeriodSeconds=1)
    await asyncio.sleep(0.1)
    await machine.cluster.delete([PodDeletion("r")])
    await machine.cluster.close()
    again = await Machine(tmp_path / "pods").open()
    assert again.pods["r"].deletion_due_ms > 0
    await again.until_gone("r")
    await until_none_of("r")
    await again.close()


async def test_a_deadline_holds_over_a_restart(tmp_path: Path) -> None:
    machine = await Machine(tmp_path / "pods").open()
    await machine.sh("r", "sleep 300", activeDeadlineSeconds=1)
    await machine.cluster.close()
    await asyncio.sleep(1.2)
    again = await Machine(tmp_path / "pods").open()
    assert (await again.end("r")).reason == "DeadlineExceeded"
    await again.close()


async def test_init_containers_go_on_after_a_restart(tmp_path: Path) -> None:
    machine = await Machine(tmp_path / "pods").open()
    init = [{"name": "first", "command": ["sleep", "0.2"]}]
    await machine.sh("r", "echo done", initContainers=init)
    await machine.cluster.close()
    await asyncio.sleep(0.4)
    again = await Machine(tmp_path / "pods").open()
    assert (await again.end("r")).phase == "succeeded"
    assert await again.text("r") == ["done"]
    await again.close()


async def test_a_container_is_started_once_however_often_it_is_tried(tmp_path: Path) -> None:
    """The crash between starting a container and knowing about it: its leader may run, or be just about to."""
    machine = await Machine(tmp_path / "pods").open()
    trace = tmp_path / "trace"
    await machine.sh("r", f"echo started >> {trace}; sleep 0.5; exit 3")
    process = machine.cluster._pods["r"]._places[0].process
    await until(lambda: process.has_record)
    assert process.pidfd is not None
    asyncio.get_running_loop().remove_reader(process.pidfd)
    process.let_go()
    process.start(wall_clock_ms())
    machine.cluster._watch(machine.cluster._pods["r"], process)
    assert (await machine.end("r")).containers[0].exit_code == 3
    assert trace.read_text() == "started\n"
    await machine.close()


async def test_a_container_whose_leader_was_killed_is_lost_and_leaves_nothing(machine: Machine) -> None:
    await machine.sh("r", "sleep 300; true")
    await until(lambda: len(processes_of("r")) >= 3)
    started = (machine.folder / "r" / "0.0.started").read_text().split()
    os.kill(int(started[2]), signal.SIGKILL)
    pod = await machine.end("r")
    assert (pod.phase, pod.containers[0].exit_code, pod.containers[0].reason) == (
        "failed",
        137,
        "ContainerStatusUnknown",
    )
    await until_none_of("r")


async def test_another_boot_of_the_machine_means_that_nothing_runs(tmp_path: Path) -> None:
    machine = await Machine(tmp_path / "pods").open()
    await machine.sh("r", "sleep 300")
    record = machine.folder / "r" / "0.0.started"
    await until(lambda: record.exists() and record.read_text().endswith("\n"))
    await machine.cluster.close()
    words = record.read_text().split(" ")
    record.write_text(" ".join((words[0], "00000000-0000-0000-0000-000000000000", *words[2:])))
    again = await Machine(tmp_path / "pods").open()
    assert again.pods["r"].containers[0].reason == "ContainerStatusUnknown"
    await again.close()
    await until_none_of("r")


async def test_leftovers_of_a_crash_are_swept_and_strange_folders_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "pods"
    for name in (".new-r1", ".old-r2", "strange"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("x")
    machine = await Machine(folder).open()
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "strange"]
    await machine.close()


async def test_an_idle_machine_sets_no_timer(machine: Machine) -> None:
    await machine.sh("r", "true")
    await machine.end("r")
    await asyncio.sleep(1.2)
    assert machine.cluster._look is None
    assert machine.cluster._timers == {}
