"""Retry policies: create, replace, delete, show."""

import math
import re
from collections.abc import Iterator
from typing import Final

from armada.control.commands.permissions import CREATE_RETRY_POLICY, DELETE_RETRY_POLICY, UPDATE_RETRY_POLICY, require
from armada.control.commands.situation import Situation
from armada.control.commands.texts import shortened, text_fault
from armada.model.errors import InvalidRequest, NotFound
from armada.model.events import JobSetEvents, RetryPolicyDeleted, RetryPolicySet
from armada.model.policy import RetryMutation, RetryPolicy, RetryRule
from armada.model.resources import InvalidQuantity, parse_quantity
from armada.state.ledger import Ledger

Sequences = tuple[JobSetEvents, ...]

MAX_RULES: Final = 100
MAX_CATEGORY_BYTES: Final = 1_024
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def create(at: Situation, policy: RetryPolicy) -> Sequences:
    """Create a retry policy, or replace the one of its name; raises PermissionDenied, InvalidRequest."""
    require(at.caller, CREATE_RETRY_POLICY, f"create retry policy {shortened(policy.name)}")
    _check(policy)
    return _put(at, policy)


def update(at: Situation, policy: RetryPolicy) -> Sequences:
    """Replace a retry policy; raises PermissionDenied, InvalidRequest, NotFound."""
    require(at.caller, UPDATE_RETRY_POLICY, f"update retry policy {shortened(policy.name)}")
    _check(policy)
    named(at.ledger, policy.name)
    return _put(at, policy)


def delete(at: Situation, name: str) -> Sequences:
    """Delete a retry policy; queues that name it do so no more, and an unknown one is no error.

    Raises PermissionDenied, InvalidRequest.
    """
    require(at.caller, DELETE_RETRY_POLICY, f"delete retry policy {shortened(name)}")
    if not name:
        raise InvalidRequest("the retry policy's name is missing")
    if name not in at.ledger.retry_policies:
        return ()
    return (JobSetEvents("", "", (RetryPolicyDeleted(at_ms=at.now_ms, name=name),)),)


def named(ledger: Ledger, name: str) -> RetryPolicy:
    """Return the policy of a name; raises InvalidRequest where it is empty, NotFound."""
    if not name:
        raise InvalidRequest("the retry policy's name is missing")
    policy = ledger.retry_policies.get(name)
    if policy is None:
        raise NotFound(f"there is no retry policy {shortened(name)}")
    return policy


def listing(ledger: Ledger) -> tuple[RetryPolicy, ...]:
    """Return all policies by name."""
    return tuple(policy for _, policy in sorted(ledger.retry_policies.items()))


def _put(at: Situation, policy: RetryPolicy) -> Sequences:
    return (JobSetEvents("", "", (RetryPolicySet(at_ms=at.now_ms, policy=policy),)),)


def _check(policy: RetryPolicy) -> None:
    if not policy.name:
        raise InvalidRequest("the retry policy's name is missing")
    if fault := next(_faults(policy), ""):
        raise InvalidRequest(f"retry policy {shortened(policy.name)}: {fault}")


def _faults(policy: RetryPolicy) -> Iterator[str]:
    if _NAME.fullmatch(policy.name) is None:
        yield "its name must be 1 to 63 lower-case letters, digits and inner hyphens"
    if len(policy.rules) > MAX_RULES:
        yield f"it has {len(policy.rules)} rules, at most {MAX_RULES} are allowed"
    for index, rule in enumerate(policy.rules):
        for fault in _rule_faults(rule):
            yield f"rule {index}: {fault}"


def _rule_faults(rule: RetryRule) -> Iterator[str]:
    yield from filter(None, [text_fault("on_category", rule.on_category, MAX_CATEGORY_BYTES, required=True)])
    yield from filter(None, [text_fault("on_subcategory", rule.on_subcategory, MAX_CATEGORY_BYTES)])
    if rule.mutation is not None:
        yield from _mutation_faults(rule.mutation)


def _mutation_faults(mutation: RetryMutation) -> Iterator[str]:
    factor, added = mutation.memory_factor, mutation.memory_added
    if factor and added:
        yield "memory: give either a factor or a static amount, not both"
    if factor and not (math.isfinite(factor) and factor > 1):
        yield f"memory: the factor must be a finite number greater than 1, not {factor:g}"
    if added:
        try:
            amount = parse_quantity(added)
        except InvalidQuantity as error:
            yield f"memory: {error}"
            return
        if amount <= 0:
            yield f"memory: the static amount must be greater than 0, not {shortened(added)}"
