"""`logs`: what a job's containers wrote."""

import time
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.connection import LISTING_DEADLINE_S, CallFailed
from armada.cli.session import Session, verb
from armada.cli.verbs import groups

POLL_S: Final = 1.0
FULL_PAGE_BYTES: Final = 1_000_000
"""An answer with this much text may have been cut: servers send up to 2,000,000 bytes of whole lines at once."""
_ENDED: Final = ("SUCCEEDED", "FAILED", "CANCELLED", "PREEMPTED", "REJECTED", "UNKNOWN")


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    verb(
        app,
        "logs",
        panel=groups.JOBS,
        examples="""
        armadactl logs 01k3vq8n4w2h7c5d9e1f3g6j8k
        armadactl logs JOB_ID --follow
        armadactl logs JOB_ID --container main --tail 20 --timestamps
        """,
    )(logs)


def logs(
    session: Session,
    job_id: Annotated[str, typer.Argument(metavar="JOB_ID", help="Id of the job.")],
    *,
    container: Annotated[
        str, typer.Option("--container", metavar="NAME", help="Container, when there are several.")
    ] = "",
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="Only lines after this time (RFC 3339).")] = "",
    tail: Annotated[int | None, typer.Option("--tail", metavar="N", min=0, help="Only the last N lines.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Begin each line with its time.")] = False,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="The pod's namespace.  [dim]\\[default: the job's][/dim]"
        ),
    ] = "",
    pod_number: Annotated[int, typer.Option("--pod", metavar="N", help="Number of the pod.", hidden=True)] = 0,
) -> None:
    """Print what a job's container wrote.

    The server at --armadaUrl must serve logs: `armada up` does; a fleet of clusters has a log server in each cluster.
    """
    reader = _LogReader(session, job_id, container=container, since=since, pod_number=pod_number)
    reader.namespace = namespace or _namespace(session, job_id)
    if not follow:
        documents = []
        for lines in reader.pages(tail=tail):
            if session.is_human:
                _print(lines, timestamps=timestamps)
            else:
                documents += [_line_document(part) for part in lines]
        if not session.is_human:
            render.emit(session.output, {"jobId": job_id, "lines": documents}, str)
        return
    _follow(session, reader, tail=tail, timestamps=timestamps)


def _follow(session: Session, reader: "_LogReader", *, tail: int | None, timestamps: bool) -> None:
    """Print lines as they come, until the job has ended and all of them were read."""
    while True:
        ended = _state(session, reader.job_id) in _ENDED
        try:
            for lines in reader.pages(tail=tail):
                if session.is_human:
                    _print(lines, timestamps=timestamps)
                else:
                    for part in lines:
                        render.line(render.as_json(_line_document(part), indent=None))
        except CallFailed as failure:
            if ended or failure.status is not ExitStatus.NOT_FOUND:
                raise
        tail = None
        if ended:
            return
        time.sleep(POLL_S)


class _LogReader:
    """Reads a pod's log in pieces, each line once."""

    def __init__(self, session: Session, job_id: str, *, container: str, since: str, pod_number: int) -> None:
        self._session = session
        self.job_id = job_id
        self._container = container
        self._pod_number = pod_number
        self._since = since
        self._printed_at_since = 0
        self.namespace = ""

    def pages(self, *, tail: int | None) -> Iterator[list[Any]]:
        """All lines that are there and were not read yet, in as many answers as the server makes of them."""
        lines = self.next_lines(tail=tail)
        yield lines
        while tail is None and sum(len(part.line) for part in lines) >= FULL_PAGE_BYTES:
            lines = self.next_lines(tail=None)
            yield lines

    def next_lines(self, *, tail: int | None) -> list[Any]:
        """The lines that were not read yet (messages with `timestamp` and `line`)."""
        from armada_client.armada import binoculars_pb2
        from armada_client.k8s.io.api.core.v1 import generated_pb2 as core

        options = core.PodLogOptions(container=self._container)
        if tail is not None:
            options.tailLines = tail
        connection = self._session.connection
        answer = connection.call(
            connection.logs_service.Logs,
            binoculars_pb2.LogRequest(
                job_id=self.job_id,
                pod_number=self._pod_number,
                pod_namespace=self.namespace,
                since_time=self._since,
                log_options=options,
            ),
            deadline_s=LISTING_DEADLINE_S,
        )
        lines = list(answer.log)
        # The server answers from `since` on, that moment included: leave out what was printed for it already.
        known = self._printed_at_since
        while lines and known and lines[0].timestamp == self._since:
            del lines[0]
            known -= 1
        if lines:
            last = lines[-1].timestamp
            same = sum(1 for part in lines if part.timestamp == last)
            self._printed_at_since = same + (self._printed_at_since if last == self._since else 0)
            self._since = last
        # Not every server heeds the option.
        return lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]


def _print(lines: list[Any], *, timestamps: bool) -> None:
    for part in lines:
        # A job's own output is its own affair: colours and all come out as they are, as kubectl does it.
        render.line(f"{part.timestamp} {part.line}" if timestamps else part.line)


def _line_document(part: Any) -> dict[str, str]:
    return {"timestamp": part.timestamp, "line": part.line}


def _namespace(session: Session, job_id: str) -> str:
    from armada_client.armada import job_pb2

    connection = session.connection
    answer = connection.call(connection.jobs_service.GetJobDetails, job_pb2.JobDetailsRequest(job_ids=[job_id]))
    if job_id not in answer.job_details:
        raise CommandFailed(f"no such job: {job_id}", ExitStatus.NOT_FOUND)
    return str(answer.job_details[job_id].namespace)


def _state(session: Session, job_id: str) -> str:
    from armada_client.armada import job_pb2, submit_pb2

    connection = session.connection
    answer = connection.call(connection.jobs_service.GetJobStatus, job_pb2.JobStatusRequest(job_ids=[job_id]))
    return str(submit_pb2.JobState.Name(answer.job_states[job_id]))
