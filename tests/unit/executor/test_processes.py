"""This machine's processes as pods: what they see, how they end, and that nothing of them is left."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from armada.executor.clock import wall_clock_ms
from armada.executor.cluster import LogRequest, Outcome, PodDeletion
from armada.executor.pods import order_for
from armada.model.errors import StartupRefused
from armada.model.fleet import Taint
from armada.model.jobs import GangSpec
from tests.unit.executor.builders import lease, template
from tests.unit.executor.machines import Machine, processes_of, until, until_none_of

TRUE = {"name": "main", "command": ["true"]}


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


async def test_another_attempt_has_a_pod_of_its_own_and_the_first_keeps_its_log(machine: Machine) -> None:
    """Field case F050."""
    for run_id, code in (("first", 3), ("second", 0)):
        made = template(["sh", "-c", f"echo {run_id}; exit {code}"])
        order = order_for(lease(run_id, job_id="job", template=made, node_name="here"))
        assert [creation.outcome for creation in await machine.cluster.create([order])] == [Outcome.CREATED]
        pod = await machine.end(run_id)
        assert pod.name == "armada-job-0"
    assert await machine.text("first") == ["first"]
    assert [line.text for line in await machine.cluster.read_log(LogRequest(job_id="job"))][1:] == ["second"]


async def test_a_full_disk_hides_no_end(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    await machine.sh("r", "sleep 0.3; exit 3")
    await machine.until("r", "running")

    def full(self: Path, *args: Any) -> int:
        del args
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert (await machine.end("r")).containers[0].exit_code == 3
    made = template(["true"])
    monkeypatch.setattr(os, "open", lambda *args: full(Path(str(args[0]))))
    (creation,) = await machine.cluster.create([order_for(lease("s", template=made, node_name="here"))])
    assert (creation.outcome, "No space left" in creation.message) == (Outcome.FAILED, True)


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


async def test_an_idle_machine_sets_no_timer(machine: Machine) -> None:
    await machine.sh("r", "true")
    await machine.end("r")
    await asyncio.sleep(1.2)
    assert machine.cluster._look is None
    assert machine.cluster._timers == {}
