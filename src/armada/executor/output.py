"""Output of pods for people: found by job, with times as text; and the log service of a separate executor."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from armada.executor.cluster import LogLine, LogRequest
from armada.executor.service import ExecutorService
from armada.model.errors import InvalidRequest, NotFound
from armada.wire.queries import log_response
from armada.wire.services import LogServicer

# ruff: noqa: N802 - methods of a service carry the API's names

NANO_PER_SECOND: Final = 1_000_000_000
ANSWER_LIMIT_BYTES: Final = 2_000_000
"""Text of one answer; what doesn't fit comes with the next request."""
MAX_TAIL_LINES: Final = 1_000_000

_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)")

ExecutorsOf = Callable[[str], Iterable[ExecutorService]]
"""The executors that may have the pod of a job, the likeliest first."""

Admission = Callable[[Any], Awaitable[object]]
"""Called with a call's context before anything is read; raises Unauthenticated or PermissionDenied."""


def instant_ns(text: str) -> int:
    """Unix nanoseconds of a time in RFC 3339; 0 for an empty text. Raises InvalidRequest."""
    if not text:
        return 0
    match = _INSTANT.fullmatch(text)
    wrong = InvalidRequest(f"since_time {text[:40]!r} is not a time such as 2030-01-31T12:00:00.5Z")
    if match is None:
        raise wrong
    zone = "+00:00" if match[3] in "Zz" else match[3]
    try:
        seconds = int(datetime.fromisoformat(match[1].upper() + zone).timestamp())
    except ValueError as error:
        raise wrong from error
    return seconds * NANO_PER_SECOND + int((match[2] or "0").ljust(9, "0"))


def instant_text(time_ns: int) -> str:
    """Time in RFC 3339 with nanoseconds; `instant_ns` reads it back exactly."""
    seconds, fraction = divmod(time_ns, NANO_PER_SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


class PodOutput:
    """Reads the output of jobs' pods from the executors of this process."""

    def __init__(self, executors_of: ExecutorsOf) -> None:
        self._executors_of = executors_of

    async def read(  # noqa: PLR0913 - the fields of the API's request
        self,
        job_id: str,
        number: int = 0,
        namespace: str = "",
        since: str = "",
        container: str = "",
        *,
        tail_lines: int | None = None,
    ) -> list[tuple[str, str]]:
        """Lines as (time, text), of the job's last run here. Raises NotFound, InvalidRequest.

        `namespace` says nothing here: a job's id is enough to find its pod.
        """
        del namespace
        if not job_id:
            raise InvalidRequest("job_id is missing")
        if number != 0:
            raise NotFound(f"job {job_id} has one pod only, number 0")
        if tail_lines is not None and not 0 <= tail_lines <= MAX_TAIL_LINES:
            raise InvalidRequest(f"tail_lines must be from 0 to {MAX_TAIL_LINES}")
        request = LogRequest(job_id=job_id, container=container, since_ns=instant_ns(since), tail_lines=tail_lines)
        for executor in self._executors_of(job_id):
            try:
                lines = await executor.read_log(request)
            except NotFound:
                continue
            return _shown(lines)
        raise NotFound(f"there is no pod of job {job_id} here: not started yet, or finished and cleaned up")


def _shown(lines: Sequence[LogLine]) -> list[tuple[str, str]]:
    shown: list[tuple[str, str]] = []
    room = ANSWER_LIMIT_BYTES
    for line in lines:
        room -= len(line.text) + 1
        if room < 0 and shown:
            break
        shown.append((instant_text(line.time_ns), line.text))
    return shown


class ExecutorLogs(LogServicer):
    """`binoculars.Binoculars` beside an executor that runs apart from the server."""

    def __init__(self, output: PodOutput, admit: Admission) -> None:
        self._output = output
        self._admit = admit

    async def Logs(self, request: Any, context: Any) -> Any:
        """Lines of a pod's output; the next page begins after the time of the last line."""
        await self._admit(context)
        options = request.log_options
        if options.previous:
            raise NotFound(f"the pod of job {request.job_id} was never restarted: it has no previous output")
        lines = await self._output.read(
            request.job_id,
            request.pod_number,
            request.pod_namespace,
            request.since_time,
            options.container,
            tail_lines=options.tailLines if options.HasField("tailLines") else None,
        )
        return log_response(lines)
