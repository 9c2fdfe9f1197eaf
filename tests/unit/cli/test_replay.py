"""`armada replay`: a capsule from `armada decide` is decided again alike, in this process and in others."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from armada.cli.operator import run
from armada.control.rounds.capsules import read_capsule
from tests.unit.cli.test_decide import problem, write


@pytest.fixture
def capsule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    gang = {"id": "g", "cardinality": 2}
    jobs = [
        *({"id": f"j{n}", "queue": "a", "submitted": n, "request": {"cpu": "1"}} for n in range(3)),
        {"id": "m0", "queue": "a", "submitted": 8, "request": {"cpu": "500m"}, "gang": gang},
    ]
    file = tmp_path / "round.capsule"
    assert run(["decide", write(tmp_path, problem(jobs=jobs, rounds=1)), "--capsule", str(file)]) == 0
    capsys.readouterr()
    return str(file)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["replay", *arguments, "--output", "json"]) == 0
    value: dict[str, Any] = json.loads(capsys.readouterr().out)
    return value


def test_the_round_is_proved_and_told(capsule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", capsule]) == 0
    told = capsys.readouterr().out
    assert "the decisions are the same, to the last bit" in told
    assert "leased 2 jobs" in told
    value = answer(capsys, capsule)
    assert value["replay"]["equal"]
    assert (value["round"]["leased"]["jobs"], value["round"]["queues"][0]["name"]) == (2, "a")


def test_one_job_is_explained(capsule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, capsule, "--job", "j0")["job"]["account"]["outcome"] == "leased"
    assert "no node has room" in answer(capsys, capsule, "--job", "j2")["job"]["account"]["text"]
    assert run(["replay", capsule, "--job", "m0"]) == 0
    assert "not all members of the gang have been submitted" in capsys.readouterr().out
    assert run(["replay", capsule, "--job", "nobody"]) == 1
    assert "there is no job 'nobody' in this capsule" in capsys.readouterr().err


def test_decisions_that_differ_are_told_with_status_1(capsule: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = msgspec.structs.replace(read_capsule(Path(capsule).read_bytes()), digest="0" * 32)
    Path(capsule).write_bytes(other.to_bytes())
    assert run(["replay", capsule]) == 1
    assert "DIFFER" in capsys.readouterr().out


def test_files_that_are_no_capsules_are_refused(
    capsule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "foreign").write_bytes(b"PK\x03\x04 something else")
    Path(capsule).write_bytes(Path(capsule).read_bytes()[:-9])
    for file, why in (("foreign", "is no round capsule"), ("round.capsule", "cut short"), ("none", "No such file")):
        assert run(["replay", str(tmp_path / file)]) == 1
        assert why in capsys.readouterr().err
    assert run(["replay", capsule, "--output", "xml"]) == 2


@pytest.mark.parametrize("without_compiler", ["0", "1"])
def test_a_fresh_process_decides_alike_with_and_without_compiled_kernels(capsule: str, without_compiler: str) -> None:
    cache = Path(os.environ["NUMBA_CACHE_DIR"]).parents[1]
    answered = subprocess.run(
        [sys.executable, "-m", "armada", "replay", capsule, "--output", "json"],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "NUMBA_DISABLE_JIT": without_compiler, "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=False,
        timeout=110,
    )
    assert answered.returncode == 0, answered.stderr
    assert json.loads(answered.stdout)["replay"]["digest"] == read_capsule(Path(capsule).read_bytes()).digest
