"""Retry policies: create, update, get, delete; files in which actions are called Retry and Fail."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from armada.cli import manifests, render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.connection import LISTING_DEADLINE_S
from armada.cli.session import Session, verb
from armada.cli.verbs import groups

KIND: Final = "RetryPolicy"

PolicyName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the retry policy.")]
PolicyFile = Annotated[
    Path,
    typer.Option("--file", "-f", metavar="FILE", help="YAML or JSON file of a RetryPolicy; - reads stdin."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]

_ACTIONS: Final = {"Retry": "RETRY_ACTION_RETRY", "Fail": "RETRY_ACTION_FAIL"}
_WORDS: Final = {2: "Retry", 1: "Fail"}


@verb(groups.create, "retry-policy", examples="armadactl create retry-policy -f grow.yaml")
def create_retry_policy(session: Session, file: PolicyFile, *, dry_run: DryRun = False) -> None:
    """Create a retry policy from a file. One of this name that exists already is replaced as a whole."""
    create(session, policy_of_file(manifests.manifest(file, (KIND,))), dry_run=dry_run)


def create(session: Session, policy: Any, *, dry_run: bool) -> None:
    """Create a policy (an API message), and tell of it."""
    if dry_run:
        render.line(f"Would create retry policy {render.printable(policy.name)} (dry run)")
        return
    session.connection.call(session.connection.retry_service.CreateRetryPolicy, policy)
    _told(session, policy, f"Created retry policy {policy.name}")


@verb(groups.update, "retry-policy", examples="armadactl update retry-policy -f grow.yaml")
def update_retry_policy(session: Session, file: PolicyFile) -> None:
    """Replace a retry policy by the one of a file."""
    policy = policy_of_file(manifests.manifest(file, (KIND,)))
    session.connection.call(session.connection.retry_service.UpdateRetryPolicy, policy)
    _told(session, policy, f"Updated retry policy {policy.name}")


@verb(groups.delete, "retry-policy", examples="armadactl delete retry-policy grow")
def delete_retry_policy(session: Session, name: PolicyName) -> None:
    """Delete a retry policy. Queues that name it do so no more; it is no error when there is none of this name."""
    from armada_client.armada import submit_pb2

    connection = session.connection
    connection.call(connection.retry_service.DeleteRetryPolicy, submit_pb2.RetryPolicyDeleteRequest(name=name))
    render.emit(
        session.output,
        {"deleted": {"retryPolicy": name}},
        lambda: f"Deleted retry policy {render.printable(name, one_line=True)} (or it did not exist)",
    )


@verb(groups.get, "retry-policy", examples="armadactl get retry-policy grow -o yaml > grow.yaml")
def get_retry_policy(session: Session, name: PolicyName) -> None:
    """Show one retry policy.

    With -o yaml it is printed as a file that `create -f` reads.
    """
    from armada_client.armada import submit_pb2

    connection = session.connection
    request = submit_pb2.RetryPolicyGetRequest(name=name)
    policy = connection.call(connection.retry_service.GetRetryPolicy, request, deadline_s=LISTING_DEADLINE_S)
    render.emit(session.output, policy_document(policy), lambda: _details(policy))


@verb(groups.get, "retry-policies", examples="armadactl get retry-policies")
def get_retry_policies(session: Session) -> None:
    """List all retry policies."""
    from armada_client.armada import submit_pb2

    connection = session.connection
    request = submit_pb2.RetryPolicyListRequest()
    answer = connection.call(connection.retry_service.GetRetryPolicies, request, deadline_s=LISTING_DEADLINE_S)
    policies = list(answer.retry_policies)
    listing = {
        "apiVersion": manifests.API_VERSION,
        "kind": "RetryPolicyList",
        "items": [policy_document(policy) for policy in policies],
    }
    render.emit(session.output, listing, lambda: _listing(policies))


def policy_of_file(given: manifests.Manifest) -> Any:
    """The retry policy that a file describes, as an API message.

    Raises:
        CommandFailed: it has fields that a policy does not have, or an action that is none.
    """
    from armada_client.armada import submit_pb2

    fields = dict(given.fields)
    if "defaultAction" in fields:
        fields["defaultAction"] = _action(fields["defaultAction"], f"{given.source}: defaultAction")
    rules = fields.get("rules")
    if isinstance(rules, list):
        fields["rules"] = [
            {**rule, "action": _action(rule["action"], f"{given.source}: rules[{index}].action")}
            if isinstance(rule, dict) and "action" in rule
            else rule
            for index, rule in enumerate(rules)
        ]
    policy: Any = manifests.message(fields, submit_pb2.RetryPolicy, source=given.source)
    if not policy.name:
        raise CommandFailed(f"{given.source}: name is missing", ExitStatus.USAGE)
    return policy


def _action(value: Any, place: str) -> str:
    if not isinstance(value, str) or value not in _ACTIONS:
        raise CommandFailed(f"{place}: want Retry or Fail, not {value!r}", ExitStatus.USAGE)
    return _ACTIONS[value]


def policy_document(policy: Any) -> dict[str, Any]:
    """The policy as a file describes it: what is unset or zero is left out."""
    fields: dict[str, Any] = manifests.document(policy)
    if "defaultAction" in fields:
        fields["defaultAction"] = _word(policy.default_action)
    for rule, row in zip(fields.get("rules", ()), policy.rules, strict=True):
        rule["action"] = _word(row.action)
    return {"apiVersion": manifests.API_VERSION, "kind": KIND, **fields}


def _told(session: Session, policy: Any, text: str) -> None:
    render.emit(session.output, policy_document(policy), lambda: render.printable(text, one_line=True))


def _listing(policies: list[Any]) -> Any:
    if not policies:
        return "No retry policies."
    rows = [
        (policy.name, str(policy.retry_limit), _word(policy.default_action), str(len(policy.rules)))
        for policy in policies
    ]
    return render.table(("name", "retries", "by default", "rules"), rows, right=("retries", "rules"))


def _details(policy: Any) -> Any:
    rows = [("Name", policy.name), ("Retries", str(policy.retry_limit)), ("By default", _word(policy.default_action))]
    rows += [(f"Rule {index}", _rule_text(rule)) for index, rule in enumerate(policy.rules)]
    return render.fields(rows)


def _rule_text(rule: Any) -> str:
    what = rule.on_category + (f"/{rule.on_subcategory}" if rule.on_subcategory else "")
    memory, changes = rule.mutate.resources.memory, []
    if memory.factor:
        changes.append(f"memory x {memory.factor:g}")
    if memory.static:
        changes.append(f"memory + {memory.static}")
    if rule.mutate.affinity.avoid_same_node:
        changes.append("another node")
    return f"{what}: {_word(rule.action)}" + (f" ({', '.join(changes)})" if changes else "")


def _word(action: int) -> str:
    return _WORDS.get(action, f"unknown action {action}")
