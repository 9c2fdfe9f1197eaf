"""Quantities and resource columns: reading, writing, rounding, limits."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armada.model.errors import InvalidRequest
from armada.model.resources import (
    INT64_MAX,
    INT64_MIN,
    InvalidQuantity,
    ResourceKinds,
    added,
    canonical_quantity,
    exceeds,
    format_quantity,
    fraction_of,
    milli_units,
    parse_quantity,
    resolution_exponent,
    whole_units,
)

KINDS = ResourceKinds.from_resolutions({"cpu": "1m", "memory": "1", "gpu": "1"})


@pytest.mark.parametrize(
    ("text", "nano", "canonical"),
    [
        ("1", 10**9, "1"),
        ("500m", 5 * 10**8, "500m"),
        ("0.5", 5 * 10**8, "500m"),
        ("1.5Gi", 1536 * 2**20 * 10**9, "1536Mi"),
        ("512Ki", 2**19 * 10**9, "512Ki"),
        ("0.5Ki", 512 * 10**9, "512"),
        ("1E", 10**27, "1E"),
        ("1E3", 10**12, "1E3"),
        ("2e-3", 2 * 10**6, "2e-3"),
        ("0.1n", 1, "1n"),
        ("-0.1n", -1, "-1n"),
        ("-0", 0, "0"),
        ("8Ei", INT64_MAX * 10**9, str(INT64_MAX)),
    ],
)
def test_reads_and_writes_back(text: str, nano: int, canonical: str) -> None:
    assert parse_quantity(text) == nano
    assert canonical_quantity(text) == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("1 Gi", "no Kubernetes quantity"),
        ("1gi", "no Kubernetes quantity"),
        ("NaN", "no Kubernetes quantity"),
        ("\N{ARABIC-INDIC DIGIT THREE}", "no Kubernetes quantity"),
        ("1\n", "no Kubernetes quantity"),
        ("1e101", "exponent beyond 100"),
        ("1e-999999999", "exponent beyond 100"),
        ("9" * 129, "too long"),
        ("Ei", "no digits"),
    ],
)
def test_refuses_precisely(text: str, words: str) -> None:
    with pytest.raises(InvalidQuantity, match=words) as caught:
        parse_quantity(text)
    assert isinstance(caught.value, InvalidRequest)
    assert isinstance(caught.value, ValueError)


@given(st.integers(-(10**30), 10**30))
def test_a_formatted_amount_reads_back_equal(nano: int) -> None:
    assert parse_quantity(format_quantity(nano)) == nano


@given(
    st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,12})?", fullmatch=True),
    st.sampled_from([("", 1), ("m", Fraction(1, 1000)), ("k", 1000), ("G", 10**9), ("e-2", Fraction(1, 100))]),
)
def test_reading_is_exact_but_for_the_last_nano(number: str, suffix: tuple[str, Fraction | int]) -> None:
    exact = Fraction(number) * suffix[1] * 10**9
    nano = parse_quantity(number + suffix[0])
    assert 0 <= abs(nano) - abs(exact) < 1
    assert nano * exact >= 0


@given(st.from_regex(r"[0-9]{1,15}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|m|k|M|)", fullmatch=True))
def test_the_canonical_form_has_the_same_value(text: str) -> None:
    assert parse_quantity(canonical_quantity(text)) == parse_quantity(text)
    assert canonical_quantity(canonical_quantity(text)) == canonical_quantity(text)


def test_rounding_to_units_is_away_from_zero_and_saturates() -> None:
    assert whole_units(1) == 1
    assert whole_units(-1) == -1
    assert milli_units(1_000_001) == 2
    assert whole_units(10**30) == INT64_MAX
    assert milli_units(-(10**30)) == INT64_MIN


@pytest.mark.parametrize(
    ("resolution", "exponent"),
    [("1", 9), ("1m", 6), ("100m", 8), ("50m", 7), ("1Gi", 18), ("99Mi", 17), ("0", 6), ("-5", 6), ("1n", 0)],
)
def test_a_resolution_is_cut_to_a_power_of_ten(resolution: str, exponent: int) -> None:
    assert resolution_exponent(resolution) == exponent


def test_jobs_are_rounded_up_and_nodes_down() -> None:
    assert KINDS.vector_up({"cpu": "1.0001", "memory": "100m"}) == (1001, 1, 0)
    assert KINDS.vector_down({"cpu": "1.0009", "memory": "1900m", "gpu": "3"}) == (1000, 1, 3)
    assert KINDS.vector_up((("memory", "1Gi"),)) == (0, 2**30, 0)


def test_vectors_saturate() -> None:
    assert KINDS.vector_up({"cpu": "1e30", "memory": "-1e30"}) == (INT64_MAX, INT64_MIN, 0)


def test_unknown_names_are_left_out_and_told() -> None:
    requests = {"cpu": "1", "fpga": "1"}
    assert KINDS.vector_up(requests) == (1000, 0, 0)
    assert KINDS.unknown(requests) == ("fpga",)
    assert KINDS.unknown(tuple(requests.items())) == ("fpga",)


def test_a_bad_quantity_names_its_resource() -> None:
    with pytest.raises(InvalidQuantity, match="resource cpu: 'many'"):
        KINDS.vector_up({"cpu": "many"})


def test_vectors_become_quantities_again() -> None:
    assert KINDS.quantities((1500, 2**31, 0)) == {"cpu": "1500m", "memory": "2147483648"}


def test_kinds_refuse_repeats() -> None:
    with pytest.raises(InvalidRequest, match="'cpu' is declared twice"):
        ResourceKinds.from_resolutions([("cpu", "1"), ("cpu", "1m")])
    with pytest.raises(InvalidRequest, match="kind 0 has no name"):
        ResourceKinds.from_resolutions([("", "1")])


def test_fractions_truncate_towards_zero() -> None:
    assert fraction_of(10, 0.25) == 2
    assert fraction_of(-10, 0.25) == -2
    assert fraction_of(INT64_MAX, 1.0) == INT64_MAX
    assert fraction_of(INT64_MAX, 3.0) == INT64_MAX
    assert fraction_of(7, float("inf")) == INT64_MAX


def test_a_missing_fraction_of_nothing_is_no_limit() -> None:
    assert fraction_of(0, float("inf")) == INT64_MAX


def test_vector_arithmetic() -> None:
    assert added((INT64_MAX, 1), (1, 2)) == (INT64_MAX, 3)
    assert exceeds((1, 5), (2, 4))
    assert not exceeds((2, 4), (2, 4))
