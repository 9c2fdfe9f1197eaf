"""Logs and metrics of a process. Nothing is global: whoever makes a registry hands it on."""

import logging
import sys
from typing import Any, Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from armada.model.lifecycle import JobState

Log = structlog.typing.FilteringBoundLogger

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_ROUND_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


def make_log(level: str, form: Literal["auto", "console", "json"]) -> Log:
    """Return a logger that writes one line an event to standard error."""
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    processors = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info if as_json else structlog.processors.UnicodeDecoder(),
        renderer,
    ]
    log: Log = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
    )
    return log


class Metrics:
    """The series of a control-plane process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.jobs = Gauge(
            "armada_jobs", "Jobs in the ledger by queue and state", ["queue", "state"], registry=self.registry
        )
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

    def show_jobs(self, counts: dict[str, tuple[int, ...]]) -> None:
        """Set the sizes of all queues; a queue that is gone loses its series."""
        self.jobs.clear()
        for queue, by_state in counts.items():
            for state, count in enumerate(by_state):
                if not JobState(state).is_terminal:
                    self.jobs.labels(queue, JobState(state).name.lower()).set(count)
