"""Logs and metrics of a process. Nothing is global: whoever makes a registry hands it on."""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Log = structlog.typing.FilteringBoundLogger

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_ROUND_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


def make_log(level: str, form: Literal["auto", "console", "json"]) -> Log:
    """Let every logger of the process write one line an event to standard error, and return one."""
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    renderer: Any = structlog.processors.JSONRenderer()
    if not as_json:
        # The plain traceback: the default one would load rich, and print pages.
        renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([structlog.processors.format_exc_info] if as_json else []),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        # Looked up at each line: standard error may be another file by then.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    log: Log = structlog.get_logger("armada")
    return log


class Metrics:
    """The series of a control-plane process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.position = Gauge("armada_log_position", "Last log entry folded", registry=self.registry)
        self.appends = Counter("armada_log_appends", "Batches appended to the log", registry=self.registry)
        self.append_seconds = Histogram(
            "armada_log_append_seconds",
            "Time to append a batch durably",
            registry=self.registry,
            buckets=_ROUND_BUCKETS,
        )
        self.submitted = Counter("armada_jobs_submitted", "Jobs accepted", registry=self.registry)
        self.refused = Counter("armada_requests_refused", "Requests refused", ["code"], registry=self.registry)
        self.round_seconds = Histogram(
            "armada_round_seconds",
            "Time of a scheduling round",
            ["pool"],
            registry=self.registry,
            buckets=_ROUND_BUCKETS,
        )
        self.leased = Counter("armada_runs_leased", "Runs leased by rounds", ["pool"], registry=self.registry)
        self.preempted = Counter("armada_runs_preempted", "Runs preempted by rounds", ["pool"], registry=self.registry)
        self.reports_dropped = Counter(
            "armada_reports_dropped",
            "Facts reported by executors that were not taken",
            ["executor"],
            registry=self.registry,
        )
        self.exchanges = Counter(
            "armada_lease_exchanges", "Lease exchanges with executors", ["executor"], registry=self.registry
        )
        self.streams = Gauge("armada_event_streams", "Event streams open", registry=self.registry)


class ExecutorCounts(Protocol):
    """What an executor knows of itself."""

    @property
    def held(self) -> Mapping[str, int]:
        """Runs by stage."""

    @property
    def facts_waiting(self) -> int:
        """Facts that the control plane has not taken yet."""

    @property
    def facts_dropped(self) -> int:
        """Facts given up so far."""

    @property
    def pods_kept(self) -> int:
        """Finished pods that are kept for their output."""

    @property
    def nodes(self) -> int:
        """Nodes of its cluster."""


def show_executors(registry: CollectorRegistry, counts: Callable[[], Mapping[str, ExecutorCounts]]) -> None:
    """Show what the executors of this process know, asked for by id whenever the metrics are read."""
    registry.register(_Executors(counts))


class _Executors(Collector):
    """Read from the executors when it is wanted: nothing is kept up to date in between."""

    def __init__(self, counts: Callable[[], Mapping[str, ExecutorCounts]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        held = GaugeMetricFamily(
            "armada_executor_runs_held", "Runs that an executor holds, by stage", labels=["executor", "stage"]
        )
        waiting = GaugeMetricFamily(
            "armada_executor_facts_waiting", "Facts not delivered to the control plane yet", labels=["executor"]
        )
        dropped = CounterMetricFamily(
            "armada_executor_facts_given_up", "Facts that an executor gave up delivering", labels=["executor"]
        )
        kept = GaugeMetricFamily(
            "armada_executor_pods_kept", "Finished pods kept for their output", labels=["executor"]
        )
        nodes = GaugeMetricFamily("armada_executor_nodes", "Nodes of an executor's cluster", labels=["executor"])
        for executor_id, counts in self._counts().items():
            for stage, count in counts.held.items():
                held.add_metric([executor_id, stage], count)
            waiting.add_metric([executor_id], counts.facts_waiting)
            dropped.add_metric([executor_id], counts.facts_dropped)
            kept.add_metric([executor_id], counts.pods_kept)
            nodes.add_metric([executor_id], counts.nodes)
        yield from (held, waiting, dropped, kept, nodes)
