"""Retry policy verbs against a server in this process."""

import json
from pathlib import Path

import pytest
import yaml

from armada.cli.failures import ExitStatus
from tests.unit.cli.conftest import Armadactl, FakeServer

POLICY_FILE = """\
apiVersion: armadaproject.io/v1beta1
kind: RetryPolicy
name: grow
retryLimit: 3
defaultAction: Fail
rules:
- action: Retry
  onCategory: mem
  onSubcategory: oom
  mutate: {resources: {memory: {factor: 1.5}}, affinity: {avoidSameNode: true}}
- {action: Fail, onCategory: user}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "grow.yaml"
    written.write_text(POLICY_FILE)
    return written


@pytest.mark.parametrize("command", [("create",), ("create", "retry-policy")])
def test_a_policy_is_created_from_a_file(
    armadactl: Armadactl, server: FakeServer, file: Path, command: tuple[str, ...]
) -> None:
    ran = armadactl(*command, "-f", str(file))
    assert (ran.status, ran.out, ran.err) == (ExitStatus.OK, "Created retry policy grow\n", "")
    policy = server.policies["grow"]
    assert (policy.retry_limit, policy.default_action) == (3, 1)
    assert [rule.action for rule in policy.rules] == [2, 1]
    assert policy.rules[0].mutate.resources.memory.factor == 1.5
    assert policy.rules[0].mutate.affinity.avoid_same_node


@pytest.mark.parametrize("command", [("create",), ("create", "retry-policy")])
def test_a_dry_run_creates_nothing(
    armadactl: Armadactl, server: FakeServer, file: Path, command: tuple[str, ...]
) -> None:
    ran = armadactl(*command, "-f", str(file), "--dry-run")
    assert (ran.status, ran.out) == (ExitStatus.OK, "Would create retry policy grow (dry run)\n")
    assert server.requests == []


def test_what_is_shown_is_a_file_again(armadactl: Armadactl, server: FakeServer, file: Path) -> None:
    armadactl("create", "-f", str(file))
    shown = armadactl("get", "retry-policy", "grow", "-o", "yaml").out
    assert yaml.safe_load(shown) == yaml.safe_load(POLICY_FILE)
    before = server.policies.pop("grow")
    file.write_text(shown)
    assert armadactl("create", "-f", str(file)).status is ExitStatus.OK
    assert server.policies["grow"] == before


def test_people_see_tables(armadactl: Armadactl, file: Path) -> None:
    assert armadactl("get", "retry-policies").out == "No retry policies.\n"
    armadactl("create", "-f", str(file))
    details = armadactl("get", "retry-policy", "grow").out
    assert "mem/oom: Retry (memory x 1.5, another node)" in details
    assert "user: Fail" in details
    listing = armadactl("get", "retry-policies").out.splitlines()
    assert listing[-1].split() == ["grow", "3", "Fail", "2"]
    document = json.loads(armadactl("get", "retry-policies", "-o", "json").out)
    assert document["kind"] == "RetryPolicyList"
    assert document["items"] == [yaml.safe_load(POLICY_FILE)]


def test_a_policy_is_replaced_and_deleted(armadactl: Armadactl, server: FakeServer, file: Path) -> None:
    missing = armadactl("update", "retry-policy", "-f", str(file), "--exit-codes", "detailed")
    assert missing.status is ExitStatus.NOT_FOUND
    armadactl("create", "-f", str(file))
    file.write_text(POLICY_FILE.replace("retryLimit: 3", "retryLimit: 5"))
    assert armadactl("update", "retry-policy", "-f", str(file)).out == "Updated retry policy grow\n"
    assert server.policies["grow"].retry_limit == 5
    gone = armadactl("delete", "retry-policy", "grow")
    assert gone.out == "Deleted retry policy grow (or it did not exist)\n"
    assert server.policies == {}
    assert armadactl("get", "retry-policy", "grow").status is ExitStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("retryLimit", "retry_limit"), "retry_limit: unknown field"),
        (("rules:", "colour: red\nrules:"), "colour: unknown field"),
        (("defaultAction: Fail", "defaultAction: fail"), "defaultAction: want Retry or Fail, not 'fail'"),
        (("action: Retry", "action: [Retry]"), "rules[0].action: want Retry or Fail"),
        (("factor", "faktor"), "rules[0].mutate.resources.memory.faktor"),
        (("name: grow\n", ""), "name is missing"),
        (("retryLimit: 3", "retryLimit: -3"), "retryLimit"),
        (("kind: RetryPolicy", "kind: Queue"), "Queue"),
    ],
)
def test_a_wrong_file_names_the_place(
    armadactl: Armadactl, server: FakeServer, file: Path, change: tuple[str, str], place: str
) -> None:
    file.write_text(POLICY_FILE.replace(*change, 1))
    ran = armadactl("create", "retry-policy", "-f", str(file))
    assert ran.status is ExitStatus.USAGE
    assert place in ran.err
    assert str(file) in ran.err
    assert server.requests == []
