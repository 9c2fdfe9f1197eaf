"""Following a job set's events: the stream with its reconnects, and what the events add up to per job."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from armada.cli.failures import ExitStatus
from armada.cli.remote.connection import CallFailed, Connection

RECONNECT_PAUSE_S: Final = 5.0
RECONNECT_LIMIT: Final = 120
"""Tries in a row without one event before a lost stream is given up: ten minutes."""

FINISHED: Final = frozenset({"succeeded", "failed", "cancelled"})

FIRST_LIMIT: Final = 3
FIRST_PAUSE_S: Final = 1.0
"""Tries and pauses before the first event: who has just typed the command wants to know soon."""

_STATE_AFTER: Final = {
    "queued": "queued",
    "leased": "leased",
    "lease_returned": "queued",
    "lease_expired": "queued",
    "pending": "pending",
    "running": "running",
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
}
"""The state that an event leaves its job in; other events leave it as it was. A preempted job also gets `failed`."""


@dataclass(frozen=True, slots=True)
class FollowedEvent:
    """One message of the stream: its id to resume from, the kind of event (`running`), the event itself."""

    id: str
    kind: str
    event: Any


@dataclass(slots=True)
class FollowedJob:
    """What the events so far say about one job. `state` is empty until it is queued; `reason` says why it failed."""

    job_id: str
    state: str = ""
    reason: str = ""
    cluster: str = ""
    node: str = ""
    exit_codes: tuple[int, ...] = ()
    was_preempted: bool = False
    is_rejected: bool = False


class JobSetTally:
    """The jobs of a job set as its events tell them; an ended job stays ended."""

    def __init__(self) -> None:
        self.jobs: dict[str, FollowedJob] = {}
        self._counts: Counter[str] = Counter()

    def __getitem__(self, state: str) -> int:
        return self._counts[state]

    @property
    def is_inactive(self) -> bool:
        """True when jobs were seen and all of them have ended."""
        return bool(self.jobs) and sum(self._counts[state] for state in FINISHED) == len(self.jobs)

    def take(self, followed: FollowedEvent) -> FollowedJob:
        """Apply one event and return its job."""
        event, kind = followed.event, followed.kind
        job = self.jobs.get(event.job_id)
        if job is None:
            job = self.jobs[event.job_id] = FollowedJob(event.job_id)
        if job.state in FINISHED:
            return job
        state = _STATE_AFTER.get(kind, job.state)
        if kind == "failed":
            if event.retryable:
                state = "queued"
            job.reason = event.reason
            job.is_rejected = event.cause == _REJECTED
            job.exit_codes = tuple(status.exitCode for status in event.container_statuses)
        elif kind == "preempted":
            job.was_preempted = True
            job.reason = event.reason
        job.cluster = getattr(event, "cluster_id", "") or job.cluster
        job.node = getattr(event, "node_name", "") or job.node
        if state != job.state:
            self._counts[job.state] -= 1
            self._counts[state] += 1
            job.state = state
        return job


_REJECTED: Final = 4
"""`Cause.Rejected` of the event messages."""


class Follower:
    """Reads a job set's events from a position on, in order, each once, over as many connections as it takes."""

    def __init__(
        self,
        connection: Connection,
        queue: str,
        job_set: str,
        *,
        after: str = "",
        on_trouble: Callable[[str], None] = lambda _text: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._job_set = job_set
        self._on_trouble = on_trouble
        self._pause = pause
        self.last_id = after

    def present(self) -> Iterator[FollowedEvent]:
        """The events that exist now, after the last one read.

        Raises:
            CallFailed: the server can't be asked; NOT_FOUND when queue or job set do not exist.
        """
        yield from self._read(watch=False)

    def forever(self) -> Iterator[FollowedEvent]:
        """All events, present and to come. A lost connection is taken up again after the last event read.

        Raises:
            CallFailed: the server refuses (no such queue or set, not allowed), or stays away for too long.
        """
        failures = 0
        while True:
            try:
                for followed in self._read(watch=True):
                    failures = 0
                    yield followed
                failures += 1
            except CallFailed as failure:
                failures += 1
                if failure.status is not ExitStatus.UNREACHABLE and failure.code not in ("UNKNOWN", "INTERNAL"):
                    raise
                if failures >= (RECONNECT_LIMIT if self.last_id else FIRST_LIMIT):
                    raise
                self._on_trouble(f"{failure.message}; trying again")
            self._pause(RECONNECT_PAUSE_S if self.last_id else FIRST_PAUSE_S)

    def _read(self, *, watch: bool) -> Iterator[FollowedEvent]:
        from armada_client.armada import event_pb2

        request = event_pb2.JobSetRequest(
            id=self._job_set, queue=self._queue, from_message_id=self.last_id, watch=watch, errorIfMissing=True
        )
        connection = self._connection
        for message in connection.stream(connection.event_service.GetJobSetEvents, request):
            self.last_id = message.id
            kind = message.message.WhichOneof("events")
            if kind is not None:
                yield FollowedEvent(message.id, kind, getattr(message.message, kind))
