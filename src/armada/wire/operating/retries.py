"""Retry policies: messages and model."""

from collections.abc import Iterable, Mapping
from typing import Final

from armada_client.armada import submit_pb2 as api

from armada.model.errors import InvalidRequest
from armada.model.policy import RetryMutation, RetryPolicy, RetryRule

_RETRIES: Final[Mapping[int, bool]] = {api.RETRY_ACTION_RETRY: True, api.RETRY_ACTION_FAIL: False}
_ACTIONS: Final = {True: api.RETRY_ACTION_RETRY, False: api.RETRY_ACTION_FAIL}


def retry_policy(message: api.RetryPolicy) -> RetryPolicy:
    """Return the policy of a message.

    Raises:
        InvalidRequest: an action is not set, or a change of memory says neither how nor by how much.
    """
    return RetryPolicy(
        name=message.name,
        retry_limit=message.retry_limit,
        retries_by_default=_retries(message.default_action, "default_action"),
        rules=tuple(_rule(rule, f"rules[{index}]") for index, rule in enumerate(message.rules)),
    )


def _rule(message: api.RetryRule, path: str) -> RetryRule:
    return RetryRule(
        retries=_retries(message.action, f"{path}.action"),
        on_category=message.on_category,
        on_subcategory=message.on_subcategory,
        mutation=_mutation(message.mutate, path) if message.HasField("mutate") else None,
    )


def _mutation(message: api.RetryMutation, path: str) -> RetryMutation:
    memory = message.resources.memory
    if message.resources.HasField("memory") and not memory.static and not memory.factor:
        raise InvalidRequest(f"{path}.mutate.resources.memory: give a factor or a static amount")
    return RetryMutation(memory.factor, memory.static, message.affinity.avoid_same_node)


def _retries(action: int, path: str) -> bool:
    if action not in _RETRIES:
        raise InvalidRequest(f"{path}: say what to do, Retry or Fail")
    return _RETRIES[action]


def retry_policy_message(policy: RetryPolicy) -> api.RetryPolicy:
    """Return a policy as it is shown."""
    message = api.RetryPolicy(
        name=policy.name, retry_limit=policy.retry_limit, default_action=_ACTIONS[policy.retries_by_default]
    )
    for rule in policy.rules:
        row = message.rules.add(
            action=_ACTIONS[rule.retries], on_category=rule.on_category, on_subcategory=rule.on_subcategory
        )
        if rule.mutation is not None:
            _fill(row.mutate, rule.mutation)
    return message


def _fill(message: api.RetryMutation, mutation: RetryMutation) -> None:
    message.SetInParent()
    if mutation.avoid_same_node:
        message.affinity.avoid_same_node = True
    if mutation.memory_added:
        message.resources.memory.static = mutation.memory_added
    if mutation.memory_factor:
        message.resources.memory.factor = mutation.memory_factor


def retry_policy_list(policies: Iterable[RetryPolicy]) -> api.RetryPolicyList:
    """Return policies as one answer."""
    return api.RetryPolicyList(retry_policies=[retry_policy_message(policy) for policy in policies])
