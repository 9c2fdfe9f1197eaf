"""Retry policies between messages and model."""

from typing import Any

import pytest
from armada_client.armada import submit_pb2 as api
from google.protobuf.json_format import MessageToDict, ParseDict

from armada.model.errors import InvalidRequest
from armada.model.policy import RetryMutation, RetryPolicy, RetryRule
from armada.wire.operating.retries import retry_policy, retry_policy_list, retry_policy_message

FULL: dict[str, Any] = {
    "name": "grow",
    "retryLimit": 4_000_000_000,
    "defaultAction": "RETRY_ACTION_RETRY",
    "rules": [
        {
            "action": "RETRY_ACTION_RETRY",
            "onCategory": "mem",
            "onSubcategory": "oom",
            "mutate": {"affinity": {"avoidSameNode": True}, "resources": {"memory": {"factor": 1.35}}},
        },
        {
            "action": "RETRY_ACTION_RETRY",
            "onCategory": "x",
            "mutate": {"resources": {"memory": {"static": "1Gi"}}},
        },
        {"action": "RETRY_ACTION_FAIL", "onCategory": "y", "mutate": {}},
        {"action": "RETRY_ACTION_FAIL", "onCategory": "z"},
    ],
}


def message(value: dict[str, Any]) -> api.RetryPolicy:
    return ParseDict(value, api.RetryPolicy())


def test_a_policy_goes_both_ways() -> None:
    policy = retry_policy(message(FULL))
    assert policy == RetryPolicy(
        name="grow",
        retry_limit=4_000_000_000,
        retries_by_default=True,
        rules=(
            RetryRule(
                retries=True,
                on_category="mem",
                on_subcategory="oom",
                mutation=RetryMutation(1.35, "", avoid_same_node=True),
            ),
            RetryRule(retries=True, on_category="x", mutation=RetryMutation(0.0, "1Gi")),
            RetryRule(retries=False, on_category="y", mutation=RetryMutation()),
            RetryRule(retries=False, on_category="z"),
        ),
    )
    assert MessageToDict(retry_policy_message(policy)) == FULL
    assert [each.name for each in retry_policy_list([policy]).retry_policies] == ["grow"]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"name": "a"}, "default_action"),
        ({"name": "a", "defaultAction": 7}, "default_action"),
        ({"name": "a", "defaultAction": 1, "rules": [{"onCategory": "x"}]}, r"rules\[0\].action"),
        (
            {"defaultAction": 1, "rules": [{"action": 1, "mutate": {"resources": {"memory": {}}}}]},
            r"rules\[0\].mutate.resources.memory: give a factor or a static amount",
        ),
    ],
)
def test_what_a_message_leaves_out_is_said(value: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        retry_policy(message(value))
