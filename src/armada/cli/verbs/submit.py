"""`submit`: jobs from a file to the server, in requests that fit, safe to repeat."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from armada.cli import manifests, render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.connection import SUBMIT_DEADLINE_S
from armada.cli.session import Session, verb
from armada.cli.verbs import groups

CHUNK_JOBS: Final = 200
"""Jobs per request, as Armada's own command line sends them."""

CHUNK_BYTES: Final = 3 * 1024 * 1024
"""Bytes per request; servers take 4 MiB."""

_FIELDS: Final = ("queue", "jobSetId", "jobs")
_CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"


class Submission:
    """What a file asks for: jobs (as API messages) for one job set of one queue."""

    def __init__(self, queue: str, job_set: str, jobs: list[Any]) -> None:
        self.queue = queue
        self.job_set = job_set
        self.jobs = jobs


_FILE_FORMAT: Final = """Submit the jobs of a file.

The file names the queue, the job set, and the jobs with their pods:

\b
  queue: research
  jobSetId: hello
  jobs:
  - namespace: default
    priority: 0
    podSpec:
      containers:
      - name: main
        image: busybox:1.36
        command: \\[sh, -c, "echo hello from $ARMADA_JOB_ID"]
        resources:
          requests: {cpu: 100m, memory: 64Mi}
          limits: {cpu: 100m, memory: 64Mi}

A field that does not exist is refused with its place in the file. The server takes each request of up to 200 jobs
as a whole or not at all. Repeating a request after a lost answer makes no second job.
"""


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    verb(
        app,
        "submit",
        panel=groups.JOBS,
        purpose=_FILE_FORMAT,
        examples="""
        armadactl submit jobs.yaml
        armadactl submit jobs.yaml --dry-run
        armadactl submit - -o json < jobs.json
        """,
    )(submit)


def submit(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML or JSON file of jobs; - reads stdin.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check the file, submit nothing.")] = False,
) -> None:
    """Submit the jobs of a file."""
    submission = read(file)
    if dry_run:
        _report(session, submission, [], dry_run=True)
        return
    from armada_client.armada import submit_pb2

    connection = session.connection
    ids: list[str] = []
    try:
        for chunk in chunks(submission.jobs):
            request = submit_pb2.JobSubmitRequest(
                queue=submission.queue, job_set_id=submission.job_set, job_request_items=chunk
            )
            answer = connection.call(connection.submit_service.SubmitJobs, request, deadline_s=SUBMIT_DEADLINE_S)
            answered = [item.job_id for item in answer.job_response_items]
            ids.extend(answered)
            if session.is_human:
                for job_id in answered:
                    render.line(f"Submitted job with id {job_id} to job set {render.printable(submission.job_set)}")
    except CommandFailed as failure:
        render.emit(
            session.output,
            {**_document(submission, ids), "error": failure.message},
            lambda: f"Submitted {len(ids)} of {len(submission.jobs)} jobs",
        )
        raise
    if not session.is_human:
        _report(session, submission, ids, dry_run=False)


def read(path: Path) -> Submission:
    """The submission that a file describes, every job with a client id.

    Raises:
        CommandFailed: the file is broken, asks for nothing, or says what can't be said; one line with the place.
    """
    from armada_client.armada import submit_pb2

    from armada.cli import documents

    source = documents.source_name(path)
    document, count = documents.read_document(path)
    if count > 1:
        render.warning(f"{source} holds {count} documents; only the first is read")
    unknown = [key for key in document if key not in _FIELDS]
    if unknown:
        raise CommandFailed(f"{source}: {_unknown_field(unknown[0])}", ExitStatus.USAGE)
    jobs = document.get("jobs")
    if jobs is not None and not isinstance(jobs, list):
        raise CommandFailed(f"{source}: jobs: a list is wanted", ExitStatus.USAGE)
    if not jobs:
        raise CommandFailed(f"{source}: there are no jobs to submit (`jobs` is missing or empty)", ExitStatus.USAGE)
    header = {key: document[key] for key in ("queue", "jobSetId") if key in document}
    names: Any = manifests.message(header, submit_pb2.JobSubmitRequest, source=source)
    for field, value in (("queue", names.queue), ("jobSetId", names.job_set_id)):
        if not value:
            raise CommandFailed(f"{source}: {field} is missing or empty", ExitStatus.USAGE)
    items: list[Any] = []
    for index, job in enumerate(jobs):
        item: Any = manifests.message(job, submit_pb2.JobSubmitRequestItem, source=source, path=f"jobs[{index}]")
        if not item.client_id:
            item.client_id = fresh_client_id()
        items.append(item)
    return Submission(names.queue, names.job_set_id, items)


def _unknown_field(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, _FIELDS, n=1)
    return f"{key}: unknown field" + (f", did you mean {near[0]}?" if near else f" (known: {', '.join(_FIELDS)})")


def chunks(jobs: list[Any]) -> Iterator[list[Any]]:
    """The jobs in their order, in pieces that one request can carry."""
    piece: list[Any] = []
    size_bytes = 0
    for job in jobs:
        job_bytes = job.ByteSize() + 8
        if piece and (len(piece) == CHUNK_JOBS or size_bytes + job_bytes > CHUNK_BYTES):
            yield piece
            piece, size_bytes = [], 0
        piece.append(job)
        size_bytes += job_bytes
    if piece:
        yield piece


def fresh_client_id() -> str:
    """A new ULID: it makes repeating this submission safe, and sorts by time."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -5, -5))


def _document(submission: Submission, ids: list[str]) -> dict[str, Any]:
    return {
        "queue": submission.queue,
        "jobSetId": submission.job_set,
        "jobs": [
            {"jobId": job_id, "clientId": job.client_id} for job_id, job in zip(ids, submission.jobs, strict=False)
        ],
    }


def _report(session: Session, submission: Submission, ids: list[str], *, dry_run: bool) -> None:
    document = _document(submission, ids)
    if dry_run:
        document |= {"dryRun": True, "count": len(submission.jobs)}
    noun = "job" if len(submission.jobs) == 1 else "jobs"
    where = f"queue {submission.queue}, job set {submission.job_set}"
    render.emit(session.output, document, lambda: f"Would submit {len(submission.jobs)} {noun} to {where} (dry run)")
