"""Metrics live in a registry of their own and read the ledger when asked."""

from armada.model.lifecycle import JobState
from armada.runtime.telemetry import Metrics


def test_two_processes_share_no_series() -> None:
    one, other = Metrics(), Metrics()
    one.appends.inc()
    assert one.registry.get_sample_value("armada_log_appends_total") == 1
    assert other.registry.get_sample_value("armada_log_appends_total") == 0


def test_queue_sizes_are_asked_for_when_they_are_read() -> None:
    metrics = Metrics()
    sizes = {"qa": [0] * len(JobState)}
    metrics.show_jobs(lambda: sizes)
    sizes["qa"][JobState.QUEUED] = 7
    sizes["qa"][JobState.SUCCEEDED] = 9
    read = metrics.registry.get_sample_value
    assert read("armada_jobs", {"queue": "qa", "state": "queued"}) == 7
    assert read("armada_jobs", {"queue": "qa", "state": "running"}) == 0
    assert read("armada_jobs", {"queue": "qa", "state": "succeeded"}) is None
    sizes.clear()
    assert read("armada_jobs", {"queue": "qa", "state": "queued"}) is None
