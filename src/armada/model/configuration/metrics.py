"""The keys under `metrics.`, read into a `MetricsPolicy`."""

from collections.abc import Mapping
from typing import Any, Final

from armada.model.configuration.reading import Section, boolean, closed, duration_ms, listed, text, texts, whole
from armada.model.errors import InvalidRequest
from armada.model.policy import MetricsPolicy

DEFAULTS: Final = MetricsPolicy()
"""What stands for every key that a configuration leaves out."""

_MAX_PORT: Final = 65_535
_MAX_INTERVALS: Final = 20


@closed
def _metrics_policy(section: Section) -> MetricsPolicy:
    get = section.get
    if get("publishMetricsToPulsar", boolean, False):
        raise InvalidRequest(
            f"{section.path('publishMetricsToPulsar')}: there is no Pulsar here; the figures are on the metrics page",
        )
    policy = MetricsPolicy(
        refresh_ms=get("refreshInterval", duration_ms, DEFAULTS.refresh_ms),
        state_reset_ms=get("jobStateMetricsResetInterval", duration_ms, DEFAULTS.state_reset_ms),
        tracked_resources=get("trackedResourceNames", texts, DEFAULTS.tracked_resources),
        primary_pools=get("queuedJobPrimaryPoolOrder", texts, ()),
        checkpoint_intervals_ms=get("jobCheckpointIntervals", listed(duration_ms), ()),
        scalable_unit_label=get("scalableUnitLabel", text, ""),
        shows_nodes=get("nodeSeries", boolean, DEFAULTS.shows_nodes),
        max_labels=get("maximumSeries", whole, DEFAULTS.max_labels),
        port=get("port", whole, None),
    )
    if policy.state_reset_ms <= 0:
        raise InvalidRequest(f"{section.path('jobStateMetricsResetInterval')} must be greater than 0")
    if policy.max_labels <= 0:
        raise InvalidRequest(f"{section.path('maximumSeries')} must be greater than 0")
    if policy.port is not None and not 0 <= policy.port <= _MAX_PORT:
        raise InvalidRequest(f"{section.path('port')}: {policy.port} is no port")
    if len(policy.checkpoint_intervals_ms) > _MAX_INTERVALS:
        raise InvalidRequest(f"{section.path('jobCheckpointIntervals')}: at most {_MAX_INTERVALS} are counted")
    return policy


def metrics_policy(values: Mapping[str, Any], path: str = "") -> MetricsPolicy:
    """Read the section `metrics` (spec/scheduling.md section 23).

    Raises:
        InvalidRequest: an unknown key, or a value that can't be; the text names it.
    """
    return _metrics_policy(values, path)
