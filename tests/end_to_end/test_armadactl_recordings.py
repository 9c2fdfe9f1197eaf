"""The recorded runs of Armada's own `armadactl`, given to ours: same exit status, text on the same streams.

Wording is free. What ours decides otherwise is listed below by id, with the reason; what it does not do yet, too.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from armada.cli import user
from armada.cli.failures import exit_code
from tests.armada_process import ArmadaUp
from tests.end_to_end.conftest import SETTING_VARIABLES
from tests.shared_folder import recordings

pytestmark = pytest.mark.timeout(300)

OTHERWISE: Final = {
    "help": "the recording gave a file name where a command is wanted; ours prints its help",
    "get-queues-inverse": "the reference fails over a queue of weight NaN, which ours never stores",
    "submit-unknown-key": "an unknown field in a file of jobs is refused with its place",
    "submit-two-docs": "a warning says that only the first document is read",
    "create-file-owners": "a warning says that userOwners is not read from files",
    "cancel-job-empty-id": "an empty id never means the whole set",
    "no-config-at-all": "no notice about a configuration that nobody needs",
}
"""Cases in which ours answers differently on purpose."""

NEEDS_PERMISSIONS: Final = re.compile(r"bobctx|badctx|noauth")
"""Cases about credentials: the server takes everyone on loopback for now."""

NOT_YET: Final = {
    "docs-help": "no built-in manual",
    "no-args": "docs and completion are not among the commands",
}


def is_open(case_id: str) -> bool:
    """Whether the case is about a command that ours does not have yet."""
    return case_id in NOT_YET


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """The recordings."""
    read: dict[str, Any] = json.loads(recordings("api", "armadactl.json").read_text())
    return read


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmadaUp]:
    """A system of its own: the cases build on each other."""
    with ArmadaUp(tmp_path_factory.mktemp("recordings"), "--simulate", "1x2") as running:
        yield running.wait_ready()


class Replay:
    """Runs the cases in order; ids of jobs are bound at first sight, as placeholders say."""

    def __init__(self, folder: Path, recorded: dict[str, Any], url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._cases = recorded["cases"]
        self._ids: dict[str, str] = {}
        files = dict(recorded["files"])
        # The recording shows only the beginning of this one.
        head, job = files["long.yaml"].replace("cset2", "cmany").split("jobs:\n")
        files["many.yaml"] = head.replace("cq", "cqc") + "jobs:\n" + job * 450
        for name, content in files.items():
            if "after" not in name:
                (folder / name).write_text(content)
        self._configuration = recorded["config"].replace("localhost:50051", url)
        (folder / "cfg.yaml").write_text(self._configuration)
        (folder / ".armadactl.yaml").write_text(self._configuration)
        self._folder = folder
        self._capsys = capsys

    def differences(self) -> list[str]:
        """What came out otherwise than recorded."""
        found = []
        for case in self._cases:
            if is_open(case["id"]) or NEEDS_PERMISSIONS.search(" ".join(case["args"])):
                continue
            if case["exit"] is None:
                continue
            found.extend(self._compare(case))
        return found

    def _compare(self, case: dict[str, Any]) -> list[str]:
        # In this process: a hundred processes would take longer than all other tests.
        self._capsys.readouterr()
        status = exit_code(user.run([self._ids.get(part, part) for part in self._arguments(case)]), detailed=False)
        out, err = self._capsys.readouterr()
        self._bind(case, out)
        if case["id"] in OTHERWISE:
            return []
        found = []
        if status != case["exit"]:
            found.append(f"exit status {status}, not {case['exit']}")
        if bool(err) != bool(case["stderr"]):
            found.append("text on stderr" if err else "no text on stderr")
        if case["stdout"] and case["exit"] == 0 and not out:
            found.append("no text on stdout")
        if isinstance(case["stdout"], dict):
            words = case["stdout"]["commands"] + [flag["long"] for flag in case["stdout"]["flags"]]
            found.extend(f"help without {word}" for word in words if word not in out)
        return [f"{case['id']}: {text}: {out[-300:]!r} {err[-300:]!r}" for text in found]

    def _arguments(self, case: dict[str, Any]) -> list[str]:
        arguments: list[str] = list(case["args"])
        if case["id"].startswith("config-") and "default" not in case["id"]:
            arguments += ["--config", "none.yaml" if case["id"] == "config-no-file" else "cfg.yaml"]
        return arguments

    def _bind(self, case: dict[str, Any], stdout: str) -> None:
        if not isinstance(case["stdout"], str):
            return
        wanted = re.findall(r"^Submitted job with id (<job:\d+>)", case["stdout"], re.MULTILINE)
        got = re.findall(r"^Submitted job with id (\S+)", stdout, re.MULTILINE)
        self._ids.update(zip(wanted, got, strict=False))


def test_recorded_runs_end_alike(
    tmp_path: Path,
    recorded: dict[str, Any],
    system: ArmadaUp,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    for variable in SETTING_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    replay = Replay(tmp_path, recorded, system.url, capsys)
    differences = replay.differences()
    assert not differences, "\n".join(differences)


def test_the_lists_of_exceptions_name_recorded_cases(recorded: dict[str, Any]) -> None:
    known = {case["id"] for case in recorded["cases"]}
    assert OTHERWISE.keys() <= known
    assert NOT_YET.keys() <= known
    assert sum(1 for case_id in known if not is_open(case_id)) > 60
