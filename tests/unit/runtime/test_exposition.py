"""The text form of metrics: what prometheus_client reads back is what was written, under the same names."""

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from armada.runtime.exposition import Buckets, TextPage, number_text


def test_a_counter_keeps_its_name() -> None:
    page = TextPage()
    page.begin("armada_jobs_done", "counter", "Jobs that\nended")
    page.sample("armada_jobs_done", ("queue",), ("qa",), 3)
    assert page.text() == (
        '# HELP armada_jobs_done Jobs that\\nended\n# TYPE armada_jobs_done counter\narmada_jobs_done{queue="qa"} 3\n'
    )
    (family,) = text_string_to_metric_families(page.text())
    assert (family.name, family.type, family.documentation) == ("armada_jobs_done", "counter", "Jobs that\nended")


def test_hostile_label_values_come_back_whole() -> None:
    values = ('say "a"', "back\\slash", "two\nlines", "ü{},=")
    page = TextPage()
    page.begin("g", "gauge", "")
    for value in values:
        page.sample("g", ("queue", "pool"), (value, ""), 1)
    (family,) = text_string_to_metric_families(page.text())
    assert tuple(sample.labels["queue"] for sample in family.samples) == values
    assert {sample.labels["pool"] for sample in family.samples} == {""}


def test_a_histogram_counts_up_to_everything() -> None:
    page = TextPage()
    page.begin("h", "histogram", "times")
    page.histogram("h", ("queue",), ("qa",), Buckets((0.5, 10.0), (2, 0, 3), 45.5))
    (family,) = text_string_to_metric_families(page.text())
    found = {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples}
    assert found == {
        ("h_bucket", "0.5"): 2,
        ("h_bucket", "10"): 2,
        ("h_bucket", "+Inf"): 5,
        ("h_sum", None): 45.5,
        ("h_count", None): 5,
    }
    with pytest.raises(ValueError, match="zip"):
        page.histogram("h", (), (), Buckets((0.5,), (1,), 0))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2**40, "1099511627776"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (1e21, "1e+21"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
    ],
)
def test_numbers_are_written_exactly(value: float, text: str) -> None:
    assert number_text(value) == text
    assert math.isnan(value) or float(text) == value
