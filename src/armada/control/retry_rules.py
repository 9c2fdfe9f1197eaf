"""What a retry policy says to a failure: pure rules, asked in one fixed order."""

import enum

import msgspec

from armada.model.events import Failure
from armada.model.policy import RetryEngine, RetryMutation, RetryPolicy, RetryRule


class Answer(enum.StrEnum):
    """How a policy decided, by the names that reports and metrics use."""

    NO_ERROR = "no_error"
    GLOBAL_LIMIT = "fail_global_limit"
    RULE = "fail_rule"
    DEFAULT = "fail_default"
    POLICY_LIMIT = "fail_policy_limit"
    RETRY = "retry"
    UNSCHEDULABLE = "retry_unschedulable"
    GANG_SKIPPED = "gang_skipped"
    """The policy was not asked: it leaves gangs alone."""


class Ruling(msgspec.Struct, frozen=True):
    """An answer and why, in words; `mutation` is what the retry changes (only a matching rule brings one)."""

    answer: Answer
    reason: str
    mutation: RetryMutation | None = None


def ruling(engine: RetryEngine, policy: RetryPolicy, failure: Failure | None, retries_used: int) -> Ruling:
    """Say if a job that failed like this, after so many retries, is tried again.

    The bound over all policies comes first; then the rules from the top, the default where none matches, and the
    policy's own bound last.
    """
    if failure is None:
        return Ruling(Answer.NO_ERROR, "the run says nothing of a failure")
    most = engine.global_max_retries
    if retries_used >= most:
        return Ruling(Answer.GLOBAL_LIMIT, f"{retries_used} of {most} retries that any job may have are used up")
    rule = matching_rule(policy, failure)
    if rule is not None and not rule.retries:
        return Ruling(Answer.RULE, f"its rule for category {rule.on_category} says that the job fails")
    if rule is None and not policy.retries_by_default:
        return Ruling(Answer.DEFAULT, "no rule matches, and by default jobs fail")
    if retries_used >= policy.retry_limit:
        return Ruling(Answer.POLICY_LIMIT, f"{retries_used} of its {policy.retry_limit} retries are used up")
    return Ruling(Answer.RETRY, "the job is tried again", rule.mutation if rule is not None else None)


def matching_rule(policy: RetryPolicy, failure: Failure) -> RetryRule | None:
    """Return the first rule for a failure's category and subcategory; upper and lower case differ."""
    for rule in policy.rules:
        if rule.on_category and rule.on_category != failure.category:
            continue
        if not rule.on_subcategory or rule.on_subcategory == failure.subcategory:
            return rule
    return None
