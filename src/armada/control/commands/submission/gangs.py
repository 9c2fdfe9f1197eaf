"""Gangs as their members describe them: annotations read and checked, also against members that are known already."""

from typing import Final

import msgspec

from armada.control.commands.texts import shortened
from armada.model.jobs import FAIL_FAST, GANG_CARDINALITY, GANG_ID, GANG_UNIFORMITY_LABEL, GangSpec
from armada.model.submission import SubmissionPolicy, SubmittedItem

MAX_CARDINALITY: Final = 1_000_000
"""No gang is larger. A bound keeps a typing error from waiting for ever for members that nobody will send."""


class GangClaim(msgspec.Struct, frozen=True):
    """What one item says about its gang; `priority_class` as written (an empty one differs from the default's name)."""

    spec: GangSpec
    priority_class: str


def gang_claim(item: SubmittedItem, policy: SubmissionPolicy) -> tuple[GangClaim | None, str]:
    """Return an item's gang (None for a plain job) and what is wrong with its annotations (empty when nothing is)."""
    del policy
    annotations = item.annotations
    gang_id = annotations.get(GANG_ID)
    if gang_id is None:
        return None, ""
    cardinality, fault = _cardinality(annotations.get(GANG_CARDINALITY))
    if not gang_id:
        fault = f"annotation {GANG_ID} is empty"
    if fault or cardinality == 1:
        return None, fault
    fail_fast = annotations.get(FAIL_FAST, "true")
    if fail_fast != "true":
        return None, f"annotation {FAIL_FAST} ({shortened(fail_fast)}) can only be true for a member of a gang"
    spec = GangSpec(gang_id, cardinality, annotations.get(GANG_UNIFORMITY_LABEL, ""))
    priority_class = item.pods[0].spec.get("priorityClassName") or "" if item.pods else ""
    return GangClaim(spec, priority_class), ""


def _cardinality(text: str | None) -> tuple[int, str]:
    if text is None:
        return 0, f"annotation {GANG_CARDINALITY} is missing beside {GANG_ID}"
    named = f"annotation {GANG_CARDINALITY} ({shortened(text)})"
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        return 0, f"{named} is no whole number"
    cardinality = int(text) if len(digits) < len(str(MAX_CARDINALITY)) + 4 else MAX_CARDINALITY + 1
    if text[0] == "-" or cardinality < 1:
        return 0, f"{named} must be at least 1"
    if cardinality > MAX_CARDINALITY:
        return 0, f"{named} is above {MAX_CARDINALITY}"
    return cardinality, ""


def disagreement(first: GangClaim, other: GangClaim) -> str:
    """Say how two members of one gang contradict each other; empty when they agree."""
    pairs = (
        (GANG_CARDINALITY, str(first.spec.cardinality), str(other.spec.cardinality)),
        ("priorityClassName", first.priority_class, other.priority_class),
        (GANG_UNIFORMITY_LABEL, first.spec.uniformity_label, other.spec.uniformity_label),
    )
    for what, known, new in pairs:
        if known != new:
            return f"gang {shortened(first.spec.id)}: {what} is {shortened(new)} here and {shortened(known)} before"
    return ""
