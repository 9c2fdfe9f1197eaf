"""Metrics live in a registry of their own; what executors know is asked for when it is read."""

import msgspec

from armada.executor.holding.stimuli import Figures
from armada.runtime.telemetry import ExecutorCounts, Metrics, show_executors


def test_two_processes_share_no_series() -> None:
    one, other = Metrics(), Metrics()
    one.appends.inc()
    assert one.registry.get_sample_value("armada_log_appends_total") == 1
    assert other.registry.get_sample_value("armada_log_appends_total") == 0


def test_executors_are_asked_when_the_metrics_are_read() -> None:
    metrics = Metrics()
    counts: dict[str, ExecutorCounts] = {}
    show_executors(metrics.registry, lambda: counts)
    read = metrics.registry.get_sample_value
    assert read("armada_executor_nodes", {"executor": "east"}) is None
    east = Figures(held={"running": 3, "ended": 1}, facts_waiting=2, pods_kept=4, facts_dropped=5, nodes=6)
    counts["east"] = east
    assert read("armada_executor_runs_held", {"executor": "east", "stage": "running"}) == 3
    assert read("armada_executor_facts_waiting", {"executor": "east"}) == 2
    assert read("armada_executor_facts_given_up_total", {"executor": "east"}) == 5
    assert read("armada_executor_pods_kept", {"executor": "east"}) == 4
    counts["east"] = msgspec.structs.replace(east, nodes=7)
    assert read("armada_executor_nodes", {"executor": "east"}) == 7
