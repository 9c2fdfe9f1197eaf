"""Retry policies as users write them, read into a `RetryPolicy`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from armada.model.configuration.reading import Section, boolean, closed, listed, number, quantity, text, whole
from armada.model.errors import InvalidRequest
from armada.model.policy import RetryMutation, RetryPolicy, RetryRule
from armada.model.resources import parse_quantity

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@closed
def _mutation(section: Section) -> RetryMutation:
    factor, added = 0.0, ""
    if memory := section.get("memory", _memory, None):
        factor, added = memory
    return RetryMutation(factor, added, section.get("avoidSameNode", boolean, False))


@closed
def _memory(section: Section) -> tuple[float, str]:
    factor, added = section.get("factor", number, 0.0), section.get("static", quantity, "")
    if bool(factor) == bool(added):
        raise InvalidRequest(f"{section.path('factor')}: give exactly one of factor and static")
    if factor and factor <= 1:
        raise InvalidRequest(f"{section.path('factor')}: must be greater than 1, found {factor}")
    if added and parse_quantity(added) <= 0:
        raise InvalidRequest(f"{section.path('static')}: must be greater than 0, found {added!r}")
    return factor, added


def _retries(value: Any, path: str) -> bool:
    if value not in {"Retry", "Fail"}:
        raise InvalidRequest(f"{path}: expected Retry or Fail, found {value!r}")
    return bool(value == "Retry")


@closed
def _rule(section: Section) -> RetryRule:
    rule = RetryRule(
        retries=section.need("action", _retries),
        on_category=section.get("onCategory", text, ""),
        on_subcategory=section.get("onSubcategory", text, ""),
        mutation=section.get("mutate", _mutation, None),
    )
    if rule.on_subcategory and not rule.on_category:
        raise InvalidRequest(f"{section.path('onSubcategory')} needs onCategory beside it")
    return rule


@closed
def _retry_policy(section: Section) -> RetryPolicy:
    name = section.need("name", text)
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"{section.path('name')}: {name!r} must be 1 to 63 lower-case letters, digits and inner hyphens",
        )
    return RetryPolicy(
        name=name,
        retry_limit=section.get("retryLimit", whole, 0),
        retries_by_default=section.get("defaultAction", _retries, False),
        rules=section.get("rules", listed(_rule), ()),
    )


def retry_policy(values: Mapping[str, Any], path: str = "") -> RetryPolicy:
    """Read one retry policy (spec/scheduling.md section 18.2).

    Raises:
        InvalidRequest: an unknown key, a bad name, or a rule that can't apply.
    """
    return _retry_policy(values, path)
