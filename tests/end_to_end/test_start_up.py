"""Starting, refusing to start, and stopping: a clear line, the right exit status, no damage."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.armada_process import FREE_PORTS, ArmadaUp, run
from tests.end_to_end.conftest import Armadactl

pytestmark = pytest.mark.timeout(300)

WRONG_USAGE = 2
UNWRITABLE = Path("/proc/armada-data")
"""Nobody can make a folder here, not even root, whom permissions don't stop."""


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def refusal(*arguments: str, status: int = 1, **environment: str) -> str:
    """What `armada` says when it can't start: one line, no traceback; after wrong usage one more, on help."""
    ended = run(*arguments, **environment)
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "ready" not in ended.stdout
    lines = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == (2 if status == WRONG_USAGE else 1), ended.stderr
    assert lines[0].startswith("Error: ")
    return lines[0]


@pytest.mark.parametrize("kind", ["grpc", "http", "metrics"])
def test_a_taken_port_is_named(tmp_path: Path, taken_port: int, kind: str) -> None:
    ports = dict(zip(FREE_PORTS[::2], FREE_PORTS[1::2], strict=True)) | {f"--{kind}-port": str(taken_port)}
    told = refusal("up", "--data", str(tmp_path / "data"), *(part for pair in ports.items() for part in pair))
    assert str(taken_port) in told
    if kind == "grpc":
        with ArmadaUp(tmp_path) as up:
            up.wait_ready()


def test_two_on_one_folder_are_one_too_many(tmp_path: Path) -> None:
    with ArmadaUp(tmp_path) as first:
        first.wait_ready()
        told = refusal("up", "--data", str(tmp_path / "data"), *FREE_PORTS)
        assert "in use" in told
        assert str(first.process.pid) in told
        assert Armadactl(tmp_path, first.url)("create", "queue", "q").returncode == 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    assert str(UNWRITABLE) in refusal("up", "--data", str(UNWRITABLE), *FREE_PORTS)
    file = tmp_path / "file"
    file.write_text("not a folder")
    assert str(file) in refusal("up", "--data", str(file), *FREE_PORTS)
    assert file.read_text() == "not a folder"
    if os.getuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        assert str(closed) in refusal("up", "--data", str(closed), *FREE_PORTS)


def test_a_folder_of_another_version_or_of_others_is_left_alone(tmp_path: Path) -> None:
    with ArmadaUp(tmp_path) as up:
        up.wait_ready()
        assert Armadactl(tmp_path, up.url)("create", "queue", "kept").returncode == 0
    version = tmp_path / "data" / "VERSION"
    own = version.read_text()
    version.write_text("999\n")
    before = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir() if path.is_file()}
    assert "'999'" in refusal("up", "--data", str(tmp_path / "data"), *FREE_PORTS)
    after = {path.name: path.read_bytes() for path in (tmp_path / "data").iterdir() if path.is_file()}
    assert {name: content for name, content in after.items() if name != "lock"} == {
        name: content for name, content in before.items() if name != "lock"
    }
    version.write_text(own)
    with ArmadaUp(tmp_path) as again:
        again.wait_ready()
        assert Armadactl(tmp_path, again.url)("get", "queue", "kept").returncode == 0
    strange = tmp_path / "photos"
    strange.mkdir()
    (strange / "holiday.jpg").write_bytes(b"x")
    assert "holiday.jpg" in refusal("up", "--data", str(strange), *FREE_PORTS)


@pytest.mark.parametrize(
    ("arguments", "word", "status"),
    [
        (("--simulate", "three"), "CLUSTERSxNODES", 1),
        (("--simulate", "0x-1"), "CLUSTERSxNODES", 1),
        (("--simulate", "1000000x1000000"), "simulate", 1),
        (("--log-level", "loud"), "log_level", 1),
        (("--grpc-port", "70000"), "65535", 2),
        (("--grpc-port", "x"), "--grpc-port", 2),
        (("--host", "0.0.0.0"), "0.0.0.0", 1),  # noqa: S104 - what must be refused
        (("--config", "nowhere.yaml"), "nowhere.yaml", 1),
        (("--nonsense",), "--nonsense", 2),
        (("extra",), "extra", 2),
    ],
)
def test_wrong_settings_are_refused_by_name(tmp_path: Path, arguments: tuple[str, ...], word: str, status: int) -> None:
    assert word in refusal("up", "--data", str(tmp_path / "data"), *arguments, status=status)
    assert not (tmp_path / "data" / "lock").exists()


def test_unknown_settings_in_a_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("grpc_prot: 5\n")
    assert "grpc_prot" in refusal("up", "--data", str(tmp_path / "data"), "--config", str(file))
    file.write_text("scheduling: {maximumSchedulingBurstt: 1}\n")
    refusal("up", "--data", str(tmp_path / "data"), "--config", str(file), *FREE_PORTS)


def test_it_says_where_everything_is_and_stops_in_order(tmp_path: Path) -> None:
    with ArmadaUp(tmp_path, "--simulate", "2x3") as up:
        up.wait_ready()
        assert up.printed[-1].startswith("ready ")
        assert set(up.facts) == {"grpc", "http", "metrics", "data"}
        assert up.facts["data"] == str(tmp_path / "data")
        assert any("sim-2" in line for line in up.printed)
        assert up.stop() == 0
    with ArmadaUp(tmp_path) as again:
        again.wait_ready()
        assert again.interrupt() == 0
        assert "Traceback" not in again.log()


def test_executors_of_their_own_join_a_server(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("clusters: [{id: east, nodes: [{name: n, count: 2}]}]\n")
    with ArmadaUp(tmp_path / "server", command=("server",)) as server:
        server.wait_ready()
        options = ("--server", server.url, "--simulate", str(fleet))
        with ArmadaUp(tmp_path / "executor", *options, command=("executor",), ports=False) as executor:
            executor.wait_ready()
            assert executor.facts["server"] == server.url
            armadactl = Armadactl(tmp_path, server.url)
            assert armadactl("create", "queue", "q").returncode == 0
            (tmp_path / "jobs.yaml").write_text(JOBS)
            assert armadactl("submit", "jobs.yaml").returncode == 0
            watched = armadactl("watch", "q", "s", "--exit-if-inactive")
            assert "Succeeded:   3" in watched.stdout
            assert executor.stop() == 0
        assert server.stop() == 0


JOBS = "queue: q\njobSetId: s\njobs:\n" + 3 * (
    "- {namespace: n, podSpec: {containers: [{name: m, image: i, args: [sleep, '0.2'],"
    " resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}}]}}\n"
)


def test_work_goes_on_after_a_kill(tmp_path: Path) -> None:
    with ArmadaUp(tmp_path, "--simulate", "1x4") as up:
        up.wait_ready()
        armadactl = Armadactl(tmp_path, up.url)
        assert armadactl("create", "queue", "q").returncode == 0
        (tmp_path / "jobs.yaml").write_text(JOBS.replace("0.2", "2"))
        assert armadactl("submit", "jobs.yaml").returncode == 0
        up.kill()
    with ArmadaUp(tmp_path, "--simulate", "1x4") as again:
        again.wait_ready()
        armadactl = Armadactl(tmp_path, again.url)
        began_s = time.monotonic()
        watched = armadactl("watch", "q", "s", "--exit-if-inactive")
        assert time.monotonic() - began_s < 30
        assert watched.returncode == 0
        shown = armadactl("get", "job-set", "q", "s", "-o", "json").stdout
        assert shown.count('"jobId"') == 3
