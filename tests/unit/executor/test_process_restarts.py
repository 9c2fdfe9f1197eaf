"""Processes that outlive their executor: found again, ended once, never started twice."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from armada.executor.clock import wall_clock_ms
from armada.executor.cluster import Outcome, PodDeletion
from armada.executor.machine import container
from tests.unit.executor.machines import Machine, processes_of, until, until_none_of

SLEEPY_DRIVER = """
import asyncio, sys
from pathlib import Path
from armada.executor.processes import ProcessCluster
from armada.executor.machine.node import ProcessSettings
from armada.executor.pods import order_for
from armada.executor.clock import wall_clock_ms
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
    await again.cluster.proceed()
    assert (await again.end("r")).phase == "succeeded"
    assert await again.text("r") == ["done"]
    await again.close()


async def test_what_was_found_starts_nothing_before_it_may(tmp_path: Path) -> None:
    """The job may have been cancelled while nobody was there to end its pod (field case F032)."""
    machine = await Machine(tmp_path / "pods").open()
    trace = tmp_path / "trace"
    for run_id, code in (("kept", 0), ("over", 0), ("failing", 1)):
        init = [{"name": "first", "command": ["sh", "-c", f"sleep 0.2; exit {code}"]}]
        await machine.sh(run_id, f"echo {run_id} >> {trace}", initContainers=init)
    await machine.cluster.close()
    await asyncio.sleep(0.5)
    again = await Machine(tmp_path / "pods").open()
    assert again.pods["failing"].phase == "failed"
    assert {again.pods[run_id].phase for run_id in ("kept", "over")} == {"pending"}
    await asyncio.sleep(0.3)
    assert not trace.exists()
    await again.cluster.delete([PodDeletion("over", 0)])
    await again.until_gone("over")
    await again.cluster.proceed()
    await again.end("kept")
    assert trace.read_text() == "kept\n"
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


@pytest.mark.parametrize("moved_ms", [-7_200_000, 7_200_000])
async def test_an_end_lies_between_start_and_now_though_the_clock_was_set(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, moved_ms: int
) -> None:
    """Files are dated by the machine's clock, which may have been set since the pod started."""
    dated = container._mtime_ms
    monkeypatch.setattr(container, "_mtime_ms", lambda path: dated(path) + moved_ms)
    await machine.sh("r", "sleep 0.1")
    pod = await machine.end("r")
    assert pod.started_ms <= pod.finished_ms <= wall_clock_ms()


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
