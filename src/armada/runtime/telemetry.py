"""Logs and metrics of a process. Nothing is global: whoever makes a registry hands it on."""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from armada.model.lifecycle import JobState

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

    def show_jobs(self, counts: Callable[[], Mapping[str, Sequence[int]]]) -> None:
        """Show the number of live jobs by queue and state, asked for whenever the metrics are read."""
        self.registry.register(_JobCounts(counts))


class _JobCounts(Collector):
    """`armada_jobs`, read from the ledger when it is wanted: nothing is kept up to date in between."""

    def __init__(self, counts: Callable[[], Mapping[str, Sequence[int]]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        jobs = GaugeMetricFamily(
            "armada_jobs", "Jobs that have not ended, by queue and state", labels=["queue", "state"]
        )
        for queue, by_state in self._counts().items():
            for state, count in enumerate(by_state):
                if not JobState(state).is_terminal:
                    jobs.add_metric([queue, JobState(state).name.lower()], count)
        yield jobs
