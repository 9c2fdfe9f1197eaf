"""Commands about retry policies: who may, what is refused, and what queues then name."""

from typing import Any

import pytest

from armada.control.commands import queues, retry_policies
from armada.control.commands.permissions import CREATE_RETRY_POLICY
from armada.model.errors import InvalidRequest, NotFound, PermissionDenied
from armada.model.events import RetryPolicyDeleted, RetryPolicySet
from armada.model.fleet import Queue
from armada.model.policy import RetryMutation, RetryPolicy, RetryRule
from armada.model.submission import Caller, QueueRequest
from tests.unit.control.world import World, kinds


def policy(name: str = "grow", *mutations: RetryMutation, **rule: Any) -> RetryPolicy:
    rows = tuple(RetryRule(retries=True, on_category="mem", mutation=mutation) for mutation in mutations)
    if rule:
        rows = (RetryRule(retries=True, **{"on_category": "mem", **rule}),)
    return RetryPolicy(name=name, retry_limit=3, rules=rows)


def with_policies(*names: str) -> World:
    world = World()
    for name in names:
        world.store(*retry_policies.create(world.at(), policy(name)))
    return world


def test_policies_come_change_and_go() -> None:
    world = with_policies("late", "early")
    assert [each.name for each in retry_policies.listing(world.ledger)] == ["early", "late"]
    changed = policy("late", RetryMutation(memory_factor=1.5, avoid_same_node=True))
    world.store(*retry_policies.update(world.at(), changed))
    assert retry_policies.named(world.ledger, "late") == changed
    (sequence,) = retry_policies.delete(world.at(), "late")
    assert isinstance(sequence.events[0], RetryPolicyDeleted)
    world.store(sequence)
    assert retry_policies.delete(world.at(), "late") == ()
    with pytest.raises(NotFound, match="no retry policy 'late'"):
        retry_policies.named(world.ledger, "late")
    with pytest.raises(NotFound):
        retry_policies.update(world.at(), changed)


def test_creating_again_replaces() -> None:
    world = with_policies("grow")
    (sequence,) = retry_policies.create(world.at(), policy("grow", RetryMutation(memory_added="1Gi")))
    assert isinstance(sequence.events[0], RetryPolicySet)
    world.store(sequence)
    assert len(retry_policies.listing(world.ledger)) == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (policy(""), "name is missing"),
        (policy("Bad"), "lower-case letters"),
        (policy("a" * 64), "1 to 63"),
        (policy("-a"), "lower-case"),
        (policy("a\n"), "lower-case"),
        (policy(on_category=""), "rule 0: on_category is missing"),
        (policy(on_category="x" * 1025), "1025 bytes"),
        (policy(on_subcategory="\0"), "NUL"),
        (RetryPolicy(name="a", retry_limit=1, rules=policy("a", RetryMutation()).rules * 101), "101 rules"),
        (policy("a", RetryMutation(), RetryMutation(1.5, "1Gi")), "rule 1: memory: give either"),
        (policy("a", RetryMutation(1.0)), "greater than 1, not 1"),
        (policy("a", RetryMutation(float("inf"))), "finite"),
        (policy("a", RetryMutation(float("nan"))), "finite"),
        (policy("a", RetryMutation(memory_added="lots")), "'lots'"),
        (policy("a", RetryMutation(memory_added="0")), "greater than 0"),
        (policy("a", RetryMutation(memory_added="-1Gi")), "greater than 0"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said(given: RetryPolicy, complaint: str) -> None:
    for command in (retry_policies.create, retry_policies.update):
        with pytest.raises(InvalidRequest, match=complaint):
            command(with_policies("a").at(), given)


def test_only_those_may_who_may() -> None:
    world = with_policies("grow")
    creator = world.at(Caller(name="carol", permissions=frozenset({CREATE_RETRY_POLICY})))
    assert kinds(retry_policies.create(creator, policy())) == ["RetryPolicySet"]
    with pytest.raises(PermissionDenied):
        retry_policies.update(creator, policy())
    with pytest.raises(PermissionDenied):
        retry_policies.delete(creator, "grow")
    with pytest.raises(PermissionDenied):
        retry_policies.create(world.at(Caller(name="bob")), policy())


@pytest.mark.parametrize("name", [""])
def test_a_policy_has_a_name(name: str) -> None:
    world = World()
    with pytest.raises(InvalidRequest):
        retry_policies.named(world.ledger, name)
    with pytest.raises(InvalidRequest):
        retry_policies.delete(world.at(), name)


def test_queues_name_policies_that_exist_until_they_are_deleted() -> None:
    world = with_policies("first", "second")
    asked = QueueRequest(Queue(name="qr", retry_policies=("first", "second")))
    world.store(*queues.create(world.at(), asked))
    queue = world.ledger.queues["qr"]
    assert queue.retry_policies == ("first", "second")
    world.store(*retry_policies.delete(world.at(), "first"))
    queue = world.ledger.queues["qr"]
    assert list(queue.retry_policies) == ["second"]
    with pytest.raises(InvalidRequest, match=r"no retry policy 'first'$"):
        queues.update(world.at(), asked)
