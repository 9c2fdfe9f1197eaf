"""Reads: event streams of job sets, jobs and runs by id, queues at work, reports of rounds, output of pods."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from armada.control.commands.permissions import WATCH_ALL, known_queue, require_on_queue
from armada.control.explaining import Explaining
from armada.model.errors import InvalidRequest, NotFound
from armada.model.lifecycle import JobState
from armada.server.authentication import Authenticator
from armada.server.following import Followers
from armada.server.replica import Replica
from armada.views.history import History
from armada.wire import queries as wire
from armada.wire.events import parse_message_id, stream_messages
from armada.wire.services import EventServicer, JobsServicer, LogServicer, ReportingServicer, healthy

# ruff: noqa: N802, D102 - methods carry the API's names, and the API says what they do

MAX_IDS: Final = 500
MAX_LOG_BYTES: Final = 2_000_000

Context = Any
"""A gRPC call's context (grpc.aio.ServicerContext of whatever messages)."""


class _Following(msgspec.Struct, frozen=True):
    """What a caller wants to follow, from where on, and how."""

    queue: str
    job_set: str
    from_id: str
    watch: bool
    must_exist: bool


class EventService(EventServicer):
    """`api.Event`."""

    def __init__(self, replica: Replica, followers: Followers, authenticator: Authenticator) -> None:
        self._replica = replica
        self._followers = followers
        self._authenticator = authenticator

    async def GetJobSetEvents(self, request: Any, context: Context) -> AsyncIterator[Any]:
        asked = _Following(
            request.queue, request.id, request.from_message_id, request.watch, must_exist=request.errorIfMissing
        )
        async for message in self._stream(asked, context):
            yield message

    async def Watch(self, request: Any, context: Context) -> AsyncIterator[Any]:
        asked = _Following(request.queue, request.job_set_id, request.from_id, watch=True, must_exist=True)
        async for message in self._stream(asked, context):
            yield message

    async def _stream(self, asked: "_Following", context: Context) -> AsyncIterator[Any]:
        caller = await self._authenticator.caller(context)
        queue, job_set = asked.queue, asked.job_set
        require_on_queue(caller, known_queue(self._replica.ledger, queue), WATCH_ALL, "watch")
        cursor = parse_message_id(asked.from_id)
        if asked.must_exist and not await self._followers.exists(queue, job_set):
            raise NotFound(f"job set {job_set!r} of queue {queue!r} does not exist")
        if asked.watch:
            # Let the caller know at once that the stream is open, though nothing may come for long.
            await context.send_initial_metadata(())
        async for entries in self._followers.entries(queue, job_set, cursor.read_after, watch=asked.watch):
            for entry in entries:
                for message in stream_messages(entry, cursor):
                    yield message

    async def Health(self, request: Any, context: Context) -> Any:
        del request
        await self._authenticator.caller(context)
        return healthy()


class JobsService(JobsServicer):
    """`api.Jobs`."""

    def __init__(self, replica: Replica, history: History, authenticator: Authenticator) -> None:
        self._replica = replica
        self._history = history
        self._authenticator = authenticator

    async def GetJobStatus(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        job_ids = _asked(request.job_ids)
        ledger = self._replica.ledger
        states: dict[str, JobState | None] = {job_id: ledger.job_state(job_id) for job_id in job_ids}
        gone = [job_id for job_id, state in states.items() if state is None]
        if gone:
            await self._caught_up()
            states.update(await self._history.states(gone))
        return wire.status_response(states)

    async def GetJobStatusUsingExternalJobUri(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        if not request.external_job_uri:
            raise InvalidRequest("external_job_uri is missing")
        await self._caught_up()
        found = await self._history.states_by_uri(request.queue, request.jobset, request.external_job_uri)
        return wire.status_response(found)

    async def GetJobDetails(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        job_ids = _asked(request.job_ids)
        await self._caught_up()
        jobs = await self._history.jobs(job_ids, with_runs=request.expand_job_run, with_spec=request.expand_job_spec)
        return wire.details_response(jobs.values())

    async def GetJobErrors(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        job_ids = _asked(request.job_ids)
        await self._caught_up()
        return wire.errors_response(await self._history.errors(job_ids))

    async def GetJobRunDetails(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        run_ids = _asked(request.run_ids)
        await self._caught_up()
        return wire.run_details_response((await self._history.runs(run_ids)).values())

    async def GetActiveQueues(self, request: Any, context: Context) -> Any:
        del request
        await self._authenticator.caller(context)
        return wire.active_queues_response(self._replica.ledger.active_queues())

    async def _caught_up(self) -> None:
        """Let the history see all that this replica has folded: callers read what they wrote."""
        await self._history.caught_up(self._replica.ledger.position)


def _asked(ids: Sequence[str]) -> tuple[str, ...]:
    if len(ids) > MAX_IDS:
        raise InvalidRequest(f"{len(ids)} ids are asked for, at most {MAX_IDS} are allowed in a call")
    return wire.asked_ids(ids)


class ReportingService(ReportingServicer):
    """`schedulerobjects.SchedulerReporting`: what the latest rounds decided, in words."""

    def __init__(self, explaining: Explaining, replica: Replica, authenticator: Authenticator) -> None:
        self._explaining = explaining
        self._replica = replica
        self._authenticator = authenticator

    async def GetSchedulingReport(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        ledger, verbosity = self._replica.ledger, request.verbosity
        match request.WhichOneof("filter"):
            case "most_recent_for_queue":
                text = self._explaining.queue(ledger, request.most_recent_for_queue.queue_name, verbosity)
            case "most_recent_for_job":
                text = self._explaining.job(ledger, request.most_recent_for_job.job_id)
            case _:
                text = self._explaining.pools(ledger, verbosity)
        return wire.scheduling_report(text)

    async def GetQueueReport(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        return wire.queue_report(self._explaining.queue(self._replica.ledger, request.queue_name, request.verbosity))

    async def GetJobReport(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        return wire.job_report(self._explaining.job(self._replica.ledger, request.job_id))


class LogSource(Protocol):
    """Reads the output of a job's pod."""

    async def __call__(  # noqa: PLR0913 - the fields of the API's request
        self,
        job_id: str,
        number: int = 0,
        namespace: str = "",
        since: str = "",
        container: str = "",
        *,
        tail_lines: int | None = None,
    ) -> Sequence[tuple[str, str]]:
        """Return (RFC 3339 time, line) pairs. Raises NotFound when the pod is gone, InvalidRequest."""
        ...


class LogService(LogServicer):
    """`binoculars.Binoculars`, for pods that this process can reach."""

    def __init__(self, read: LogSource, authenticator: Authenticator) -> None:
        self._read = read
        self._authenticator = authenticator

    async def Logs(self, request: Any, context: Context) -> Any:
        await self._authenticator.caller(context)
        options = request.log_options
        if options.previous:
            raise NotFound(f"the pod of job {request.job_id} was never restarted: it has no previous output")
        lines = await self._read(
            request.job_id,
            request.pod_number,
            request.pod_namespace or "default",
            request.since_time,
            options.container,
            tail_lines=options.tailLines if options.HasField("tailLines") else None,
        )
        return wire.log_response(bounded_lines(lines))


def bounded_lines(lines: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Whole lines from the first on, up to the size that one answer may have; a longer first line is cut.

    Without the cut a reader could never get past such a line.
    """
    kept: list[tuple[str, str]] = []
    size = 0
    for time, line in lines:
        size += len(time) + len(line) + 2
        if size > MAX_LOG_BYTES:
            break
        kept.append((time, line))
    if lines and not kept:
        time, line = lines[0]
        kept.append((time, line[: MAX_LOG_BYTES - len(time) - 2]))
    return kept
