"""What a running Armada scheduler showed on its metrics page: the same names, types and labels are shown here."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from armada.control.measuring.catalogue import SERIES
from tests.shared_folder import recordings

BY_NAME = {series.name: series for series in SERIES}


def recorded() -> Iterator[Any]:
    """The scheduler's own series; those of its runtime and of libraries are left out."""
    page = json.loads(recordings("api", "metrics.json").read_text())
    for metric in page["processes"]["scheduler"]["metrics"]:
        if metric["name"].startswith("armada_"):
            yield pytest.param(metric, id=metric["name"])


@pytest.mark.parametrize("metric", list(recorded()))
def test_a_recorded_series_is_shown(metric: dict[str, Any]) -> None:
    series = BY_NAME[metric["name"]]
    labels = set(metric["labels"])
    assert metric["type"] == series.kind
    # The recorded queue had a label of its own, `team`.
    own = labels - set(series.labels)
    assert own == ({"team"} if series.has_free_labels else set())
    assert labels >= set(series.labels)
