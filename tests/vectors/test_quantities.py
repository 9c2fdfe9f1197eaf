"""Kubernetes quantities are read as a real Armada reads them (`../shared/vectors/quantities.json`)."""

import json
from functools import cache
from typing import Any

import pytest

from armada.model.resources import (
    INT64_MAX,
    InvalidQuantity,
    canonical_quantity,
    milli_units,
    parse_quantity,
    whole_units,
)
from tests.shared_folder import recordings

# The recorded value and milli-value of these negative amounts are +1: where the amount had to be rounded to a nano
# unit first, the recording system adds its rounding step upwards although the number is negative (it gives -1 for
# the very same amount written as -1n). Ours rounds away from zero for every spelling.
ROUNDED_THE_WRONG_WAY = {"-.5n", "-0.5n", "-84.2484993916n"}

# 10**21 units lie beyond int64; the recording system finds no suffix for them and writes the bare digit `1`.
LOST_ITS_SUFFIX = {"1000E"}


@cache
def recorded() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(recordings("quantities.json").read_text(encoding="utf-8"))
    return cases


def accepted(text: str) -> bool:
    try:
        parse_quantity(text)
    except InvalidQuantity:
        return False
    return True


def test_the_same_texts_are_quantities() -> None:
    cases = recorded()
    assert len(cases) > 1000
    assert [case["text"] for case in cases if accepted(case["text"]) != case["valid"]] == []


def test_canonical_forms_and_signs_are_equal() -> None:
    different = []
    for case in recorded():
        if case["valid"] and case["text"] not in LOST_ITS_SUFFIX:
            nano = parse_quantity(case["text"])
            ours = (canonical_quantity(case["text"]), (nano > 0) - (nano < 0))
            if ours != (case["canonical"], case["sign"]):
                different.append((case, ours))
    assert different == []


@pytest.mark.parametrize(("field", "divisor"), [("value", 10**9), ("milli", 10**6)])
def test_values_are_equal_or_saturated(field: str, divisor: int) -> None:
    different = []
    saturated_count = 0
    for case in recorded():
        if not case["valid"] or case["text"] in ROUNDED_THE_WRONG_WAY:
            continue
        nano = parse_quantity(case["text"])
        ours = whole_units(nano) if field == "value" else milli_units(nano)
        if ours == case[field]:
            continue
        # The recording system holds a negative or large amount in nano units and lets that wrap.
        if abs(nano) > INT64_MAX and (nano < 0 or abs(nano) // divisor >= INT64_MAX):
            exact = -(-abs(nano) // divisor)
            assert ours == (min(exact, INT64_MAX) if nano > 0 else max(-exact, -(2**63)))
            saturated_count += 1
            continue
        different.append((case, ours))
    assert different == []
    assert saturated_count > 0
