"""Configuration files, contexts, credentials, and how failures of the connection are told."""

import json
import stat
import sys
from pathlib import Path

import grpc
import pytest
from armada_client.armada import submit_pb2

from armada.cli import user
from armada.cli.failures import CommandFailed, ExitStatus, exit_code
from armada.cli.remote import targets
from armada.cli.remote.connection import ATTEMPTS, CallFailed, Connection
from armada.cli.remote.targets import BasicCredentials, ExecCredentials, Target
from tests.unit.cli.conftest import Armadactl, FakeServer

CONFIGURATION = """\
# which server is meant
currentContext: Lab
contexts:
  Lab:
    armadaUrl: lab.example:443
    basicAuth: {username: alice, password: apw}
  laptop: {armadaUrl: "localhost:50051"}
  tokens:
    armadaUrl: sched.example:443
    execAuth: {cmd: get-token, args: [--aud, batch], env: [{name: REGION, value: eu}]}
  browser:
    openIdAuth: {providerUrl: "https://id.example"}
kubectlCommandTemplate: "k --context {{cluster}}"
"""


@pytest.fixture
def file(home: Path) -> Path:
    """A configuration file in the home folder."""
    path = home / ".armadactl.yaml"
    path.write_text(CONFIGURATION)
    path.chmod(0o600)
    return path


def resolved(file: Path | None = None, named: str | None = None, url: str | None = None, **environment: str) -> Target:
    configuration = targets.load(file, environment)
    return targets.resolve(configuration, named=named, url=url, environment=environment)


def test_the_current_context_counts_and_names_ignore_case(file: Path) -> None:
    lab = resolved(file)
    assert (lab.name, lab.url, lab.plaintext) == ("lab", "lab.example:443", False)
    assert lab.credentials == BasicCredentials("alice", "apw")
    assert lab.log_command == "k --context {{cluster}}"
    assert resolved(file, named="LAPTOP").plaintext
    assert resolved(file, CURRENTCONTEXT="laptop").name == "laptop"


def test_addresses_given_later_win(file: Path) -> None:
    assert resolved(file, url="localhost:50051").url == "localhost:50051"
    assert resolved(file, ARMADAURL="other:1").url == "other:1"
    assert resolved(file, url="flag:2", ARMADAURL="other:1").url == "flag:2"
    assert resolved(file, url="127.0.0.1:5").plaintext


def test_commands_that_print_tokens_are_credentials(file: Path) -> None:
    assert resolved(file, named="tokens").credentials == ExecCredentials(
        ("get-token", "--aud", "batch"), (("REGION", "eu"),)
    )


def test_without_any_configuration_the_local_server_is_meant(home: Path) -> None:
    target = resolved(HOME=str(home))
    assert (target.url, target.credentials, target.plaintext) == ("localhost:50051", None, True)


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("contexts: [a]", "contexts"),
        ("- a", "mapping"),
        ("a: [", "not YAML"),
        ("currentContext: zzz\ncontexts: {a: {}}", "zzz"),
        ("basicAuth: {password: x}", "basicAuth"),
        ("openIdAuth: {providerUrl: x}", "not supported yet"),
    ],
)
def test_wrong_configurations_are_refused_with_the_file(tmp_path: Path, content: str, cause: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(content)
    with pytest.raises(CommandFailed, match=cause) as caught:
        resolved(path)
    assert "wrong.yaml" in caught.value.message + caught.value.hint
    assert caught.value.status is ExitStatus.USAGE


def test_a_context_is_switched_without_touching_the_rest(armadactl: Armadactl, file: Path) -> None:
    assert armadactl("config", "get-contexts").out == "Available contexts: browser, lab (current), laptop, tokens\n"
    assert armadactl("config", "use-context", "laptop").out == "Current context set to laptop\n"
    assert file.read_text() == CONFIGURATION.replace("currentContext: Lab", "currentContext: laptop")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert armadactl("config", "current-context").out == "Current context: laptop\n"
    missing = armadactl("config", "use-context", "zzz")
    assert missing.status is ExitStatus.NOT_FOUND
    assert "zzz" in missing.err
    assert armadactl("config", "get-contexts", "--config", "none.yaml").status is ExitStatus.USAGE


def test_a_file_without_a_current_context_gets_one(armadactl: Armadactl, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("contexts: {a: {}}\n")
    armadactl("config", "use-context", "a", "--config", str(path))
    assert path.read_text() == "currentContext: a\ncontexts: {a: {}}\n"


def test_names_and_passwords_travel_with_every_call(armadactl: Armadactl, server: FakeServer, file: Path) -> None:
    del file
    armadactl("get", "queues", "--context", "lab")
    assert server.metadata[-1]["authorization"] == "Basic YWxpY2U6YXB3"


def test_a_token_command_runs_for_each_call(url: str, server: FakeServer) -> None:
    credentials = ExecCredentials(
        (sys.executable, "-c", "import os; print(' t-' + os.environ['WHO'])"), (("WHO", "me"),)
    )
    connection = Connection(Target(url=url, credentials=credentials))
    request = submit_pb2.QueueDeleteRequest(name="q")
    connection.call(connection.submit_service.DeleteQueue, request)
    assert server.metadata[-1]["authorization"] == "Bearer t-me"
    for script, cause in (("import sys; sys.exit('no luck')", "no luck"), ("", "printed no token")):
        failing = Connection(Target(url=url, credentials=ExecCredentials((sys.executable, "-c", script))))
        with pytest.raises(CommandFailed, match=cause) as caught:
            failing.call(failing.submit_service.DeleteQueue, request)
        assert caught.value.status is ExitStatus.DENIED
    absent = Connection(Target(url=url, credentials=ExecCredentials(("/nonexistent/token",))))
    with pytest.raises(CommandFailed, match="can't run"):
        absent.call(absent.submit_service.DeleteQueue, request)


def test_a_server_that_is_not_there_is_told_apart(armadactl: Armadactl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armada.cli.remote.connection.FIRST_PAUSE_S", 0.001)
    ran = armadactl("get", "queues", at="127.0.0.1:1")
    assert ran.status is ExitStatus.UNREACHABLE
    assert ran.err.startswith("Error: can't reach the server at 127.0.0.1:1: connection refused\n")
    assert "armada up" in ran.err


def test_calls_are_tried_again_when_that_may_help(url: str, server: FakeServer) -> None:
    pauses: list[float] = []
    connection = Connection(Target(url=url), pause=pauses.append)
    request = submit_pb2.QueueDeleteRequest(name="q")
    server.failures = [(grpc.StatusCode.UNAVAILABLE, "a moment"), (grpc.StatusCode.RESOURCE_EXHAUSTED, "slowly")]
    connection.call(connection.submit_service.DeleteQueue, request)
    assert pauses == [0.2, 0.4]
    server.failures = [(grpc.StatusCode.UNAVAILABLE, "gone")] * ATTEMPTS
    with pytest.raises(CallFailed, match="gone"):
        connection.call(connection.submit_service.DeleteQueue, request)
    pauses.clear()
    for code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNIMPLEMENTED):
        server.failures = [(code, "no")]
        with pytest.raises(CallFailed) as caught:
            connection.call(connection.submit_service.DeleteQueue, request)
        assert caught.value.code == code.name
    assert pauses == []
    connection.close()


def test_exit_codes_are_one_for_every_failure_unless_details_are_wanted() -> None:
    assert {exit_code(status, detailed=False) for status in ExitStatus} == {0, 1, 130}
    assert [exit_code(status, detailed=True) for status in ExitStatus] == [int(status) for status in ExitStatus]


@pytest.mark.parametrize(
    ("arguments", "variable", "code"),
    [
        (["get", "queue"], "", 1),
        (["get", "queue", "--exit-codes", "detailed"], "", 2),
        (["get", "queue", "--exit-codes=detailed"], "", 2),
        (["get", "queue"], "detailed", 2),
        (["fly"], "", 1),
        ([], "", 0),
        (["get"], "", 0),
        (["version"], "", 0),
    ],
)
def test_the_process_ends_with_that_code(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], variable: str, code: int
) -> None:
    monkeypatch.setenv("ARMADACTL_EXIT_CODES", variable)
    with pytest.raises(SystemExit) as ended:
        user.main(arguments)
    assert ended.value.code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ["--armadaUrl", "URL", "get", "queues"],
        ["get", "--armadaUrl", "URL", "queues"],
        ["get", "queues", "--armadaUrl", "URL"],
        ["--armadaUrl", "127.0.0.1:1", "get", "queues", "--armadaUrl", "URL"],
    ],
)
def test_global_options_may_stand_anywhere_and_the_nearest_wins(
    url: str, server: FakeServer, arguments: list[str]
) -> None:
    assert user.run([part.replace("URL", url) if part == "URL" else part for part in arguments]) is ExitStatus.OK
    assert len(server.requests) == 1


def test_version_is_told_in_every_form(armadactl: Armadactl) -> None:
    told = json.loads(armadactl("version", "-o", "json").out)
    assert set(told) == {"version", "python", "client"}
    assert told["version"] in armadactl("version").out


def test_an_unknown_word_is_answered_with_a_near_one(armadactl: Armadactl) -> None:
    ran = armadactl("submitt", at="")
    assert ran.status is ExitStatus.USAGE
    assert "submit" in ran.err
    assert ran.out == ""
