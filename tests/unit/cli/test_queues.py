"""Queue verbs against a server in this process."""

import json
from pathlib import Path

import pytest
import yaml
from armada_client.armada import submit_pb2

from armada.cli.failures import ExitStatus
from tests.unit.cli.conftest import Armadactl, FakeServer

QUEUE_FILE = """\
apiVersion: armadaproject.io/v1beta1
kind: Queue
name: vision
priorityFactor: 2
labels: {team: imaging}
permissions:
- {subjects: [{kind: Group, name: imaging}], verbs: [submit, cancel, watch]}
resourceLimitsByPriorityClassName:
  armada-preemptible: {maximumResourceFraction: {cpu: 0.25}}
"""


def test_create_queue_sends_what_the_flags_say(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl(
        "create", "queue", "cq", "--priority-factor", "2", "--labels", "team=a,x=y", "--owners", "dana,lee", "--cordon"
    )
    assert (ran.status, ran.out, ran.err) == (ExitStatus.OK, "Created queue cq\n", "")
    queue = server.queues["cq"]
    assert queue.priority_factor == 2
    assert dict(queue.labels) == {"team": "a", "x": "y"}
    assert list(queue.user_owners) == ["dana", "lee"]
    assert queue.cordoned


def test_a_refused_queue_is_an_error_with_the_servers_text(armadactl: Armadactl, server: FakeServer) -> None:
    ran = armadactl("create", "queue", "zz", "--priority-factor", "0.5")
    assert ran.status is ExitStatus.FAILED
    assert ran.err == "Error: priority factor must be at least 1\n"
    assert ran.out == ""
    assert "zz" not in server.queues


@pytest.mark.parametrize("label", ["a=b=c", "a", "=b", "a="])
def test_labels_need_exactly_one_equals_sign(armadactl: Armadactl, server: FakeServer, label: str) -> None:
    ran = armadactl("create", "queue", "zz", "--labels", label)
    assert ran.status is ExitStatus.USAGE
    assert label in ran.err
    assert server.requests == []


@pytest.mark.parametrize("arguments", [("create", "queue"), ("create", "queue", "a", "b"), ("delete", "queue")])
def test_a_wrong_number_of_names_is_a_usage_error(armadactl: Armadactl, arguments: tuple[str, ...]) -> None:
    ran = armadactl(*arguments)
    assert ran.status is ExitStatus.USAGE
    assert ran.err.startswith("Error: ")


def test_a_name_cannot_forge_rows(armadactl: Armadactl, server: FakeServer) -> None:
    for name in ("a\nb", "c\u202ed"):
        server.queues[name] = submit_pb2.Queue(name=name, priority_factor=1)
    shown = armadactl("get", "queues").out.splitlines()
    assert [line.split()[0] for line in shown] == ["NAME", "a\\nb", "c\\u202ed"]


@pytest.mark.parametrize("arguments", [("create", "queue", "\udcff\udcfe"), ("get", "queues", "-l", "a=\udcff")])
def test_arguments_that_are_no_text_are_a_usage_error(
    armadactl: Armadactl, server: FakeServer, arguments: tuple[str, ...]
) -> None:
    ran = armadactl(*arguments)
    assert ran.status is ExitStatus.USAGE
    assert "is not UTF-8 text" in ran.err
    assert server.requests == []


def test_queues_come_from_files_and_go_back_to_them(armadactl: Armadactl, server: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "vision.yaml"
    file.write_text(QUEUE_FILE)
    assert armadactl("create", "-f", str(file)).status is ExitStatus.OK
    shown = armadactl("get", "queue", "vision", "-o", "yaml").out
    assert yaml.safe_load(shown) == yaml.safe_load(QUEUE_FILE)
    assert "priorityFactor: 2\n" in shown
    again = tmp_path / "again.yaml"
    again.write_text(shown)
    before = server.queues.pop("vision")
    assert armadactl("create", "-f", str(again)).status is ExitStatus.OK
    assert server.queues["vision"] == before


def test_a_dry_run_creates_nothing(armadactl: Armadactl, server: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "vision.yaml"
    file.write_text(QUEUE_FILE)
    assert armadactl("create", "-f", str(file), "--dry-run").status is ExitStatus.OK
    assert armadactl("create", "queue", "q", "--dry-run").status is ExitStatus.OK
    assert server.requests == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("kind: Queue", "kind: Thing"), "kind"),
        (("armadaproject.io/v1beta1", "foo/v1"), "apiVersion"),
        (("kind: Queue\n", ""), "kind"),
        (("priorityFactor", "priorityFaktor"), "priorityFaktor: unknown field, did you mean priorityFactor?"),
        (("kind: Group", "kindd: Group"), "permissions[0].subjects[0].kindd"),
        (("name: vision\n", ""), "name is missing"),
    ],
)
def test_a_wrong_queue_file_names_the_place(
    armadactl: Armadactl, server: FakeServer, tmp_path: Path, change: tuple[str, str], place: str
) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(QUEUE_FILE.replace(*change, 1))
    ran = armadactl("create", "-f", str(file))
    assert ran.status is ExitStatus.USAGE
    assert place in ran.err
    assert str(file) in ran.err
    assert server.requests == []


def test_owners_in_a_file_are_passed_over_with_a_warning(
    armadactl: Armadactl, server: FakeServer, tmp_path: Path
) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(QUEUE_FILE + "userOwners: [dana]\n")
    ran = armadactl("create", "-f", str(file))
    assert ran.status is ExitStatus.OK
    assert "userOwners" in ran.err
    assert list(server.queues["vision"].user_owners) == []


def test_create_without_anything_says_what_is_wanted(armadactl: Armadactl) -> None:
    ran = armadactl("create")
    assert ran.status is ExitStatus.USAGE
    assert "-f FILE" in ran.err


def test_update_resets_what_is_not_given_unless_told_to_keep(armadactl: Armadactl, server: FakeServer) -> None:
    armadactl("create", "queue", "cq", "--labels", "team=a", "--priority-factor", "4")
    armadactl("update", "queue", "cq", "--labels", "x=y", "--keep")
    assert server.queues["cq"].priority_factor == 4
    assert dict(server.queues["cq"].labels) == {"x": "y"}
    armadactl("update", "queue", "cq", "--priority-factor", "3")
    assert server.queues["cq"].priority_factor == 3
    assert dict(server.queues["cq"].labels) == {}


def test_a_missing_queue_is_not_found(armadactl: Armadactl) -> None:
    ran = armadactl("get", "queue", "none")
    assert ran.status is ExitStatus.NOT_FOUND
    assert 'could not find queue "none"' in ran.err
    assert armadactl("delete", "queue", "none").status is ExitStatus.OK


@pytest.fixture
def three(armadactl: Armadactl) -> Armadactl:
    """A server with the queues alpha and beta of team=x, and gamma."""
    armadactl("create", "queue", "alpha", "--labels", "team=x")
    armadactl("create", "queue", "beta", "--labels", "team=x,gpu=yes")
    armadactl("create", "queue", "gamma")
    return armadactl


@pytest.mark.parametrize(
    ("arguments", "chosen"),
    [
        ((), ["alpha", "beta", "gamma"]),
        (("alpha", "nonesuch"), ["alpha"]),
        (("nonesuch",), []),
        (("-l", "team"), ["alpha", "beta"]),
        (("-l", "team=x,gpu=yes"), ["beta"]),
        (("-l", "team", "--inverse"), ["gamma"]),
        (("--only-cordoned",), []),
    ],
)
def test_lists_are_chosen_by_name_or_label(three: Armadactl, arguments: tuple[str, ...], chosen: list[str]) -> None:
    ran = three("get", "queues", *arguments, "-o", "json")
    assert ran.status is ExitStatus.OK
    assert [queue["name"] for queue in json.loads(ran.out)["items"]] == chosen


def test_names_and_labels_together_are_refused(three: Armadactl) -> None:
    assert three("get", "queues", "alpha", "-l", "team").status is ExitStatus.USAGE


def test_the_list_for_people_is_a_table(three: Armadactl) -> None:
    lines = three("get", "queues").out.splitlines()
    assert lines[0].split() == ["NAME", "PRIORITY", "FACTOR", "CORDONED", "LABELS"]
    assert lines[2].split() == ["beta", "1", "gpu=yes,", "team=x"]


def test_cordon_and_uncordon(three: Armadactl, server: FakeServer) -> None:
    ran = three("cordon", "queues", "-l", "team=x")
    assert ran.out.splitlines() == ["Cordoning the following queues:", "alpha cordoned", "beta cordoned"]
    assert server.queues["beta"].cordoned
    assert not server.queues["gamma"].cordoned
    dry = three("uncordon", "queue", "alpha", "--dry-run")
    assert dry.out.splitlines() == ["Uncordoning the following queues: (DRY RUN)", "alpha"]
    assert server.queues["alpha"].cordoned
    three("uncordon", "queues", "alpha", "beta")
    assert not server.queues["alpha"].cordoned
    assert three("cordon", "queues", "nonesuch").status is ExitStatus.OK
    assert three("cordon", "queues").status is ExitStatus.USAGE
