"""`watch`: the events of a job set as they happen."""

import datetime as dt
from typing import Annotated, Any, Final

import typer

from armada.cli import manifests, render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.connection import CallFailed
from armada.cli.remote.following import FollowedEvent, FollowedJob, Follower, JobSetTally
from armada.cli.session import Session, verb
from armada.cli.verbs import groups

_COLUMNS: Final = ("queued", "leased", "pending", "running", "succeeded", "failed", "cancelled")
_HIDDEN: Final = frozenset({"utilisation"})


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    verb(
        app,
        "watch",
        panel=groups.JOBS,
        examples="""
        armadactl watch research hello --exit-if-inactive
        armadactl watch research hello --exit-if-inactive --exit-on-failure && echo all good
        armadactl watch research hello -o json | jq .kind
        """,
    )(watch)


def watch(
    session: Session,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")],
    job_set: Annotated[str, typer.Argument(metavar="JOB_SET", help="The job set.")],
    *,
    raw: Annotated[bool, typer.Option("--raw", help="Print each event's type and its JSON.")] = False,
    exit_if_inactive: Annotated[
        bool, typer.Option("--exit-if-inactive", help="Stop when every job of the set has ended.")
    ] = False,
    exit_on_failure: Annotated[
        bool, typer.Option("--exit-on-failure", help="Stop with a failure status as soon as a job fails.")
    ] = False,
    from_id: Annotated[
        str, typer.Option("--from", metavar="ID", help="Start after the event with this id (from -o json).")
    ] = "",
    force_new_events: Annotated[bool, typer.Option("--force-new-events", help="Has no effect.")] = False,
    force_legacy_events: Annotated[bool, typer.Option("--force-legacy-events", help="Has no effect.")] = False,
) -> None:
    """Follow the events of a job set.

    First comes what has happened, then what happens, until Ctrl-C. Each line has the time (UTC), how many jobs are in
    which state, and the event. A lost connection is taken up again without gaps. With -o json each event is one line,
    with the id to resume from.
    """
    if force_new_events and force_legacy_events:
        raise CommandFailed("--force-new-events and --force-legacy-events are exclusive", ExitStatus.USAGE)
    follower = Follower(session.connection, queue, job_set, after=from_id, on_trouble=render.warning)
    tally = JobSetTally()
    printer = _Printer(session, raw=raw)
    if session.is_human:
        render.line(f"Watching job set {render.printable(job_set, one_line=True)}")
    try:
        for followed in follower.forever():
            job = tally.take(followed)
            if followed.kind not in _HIDDEN:
                printer.show(followed, job, tally)
            if exit_on_failure and job.state == "failed":
                raise CommandFailed(f"job {job.job_id} failed", ExitStatus.JOB_FAILED)
            if exit_if_inactive and tally.is_inactive and not _drain(follower, tally, printer):
                return
    except CallFailed as failure:
        # As Armada's own command line: a set that is not there is said, and is no failure of the command.
        if session.is_detailed or failure.code not in ("NOT_FOUND", "PERMISSION_DENIED"):
            raise
        render.line(render.printable(failure.message))


def _drain(follower: Follower, tally: JobSetTally, printer: "_Printer") -> bool:
    """Read what else has happened by now: a replay may have shown some jobs' end before others' beginning.

    True when there was more to read.
    """
    found = False
    for followed in follower.present():
        found = True
        job = tally.take(followed)
        if followed.kind not in _HIDDEN:
            printer.show(followed, job, tally)
    return found and not tally.is_inactive


class _Printer:
    """Prints events in the form that was asked for."""

    def __init__(self, session: Session, *, raw: bool) -> None:
        self._session = session
        self._raw = raw

    def show(self, followed: FollowedEvent, job: FollowedJob, tally: JobSetTally) -> None:
        """Print one event, after it was counted."""
        if self._raw:
            body = render.as_json(manifests.document(followed.event), indent=None)
            render.line(f"*api.{type(followed.event).__name__} {body}")
        elif self._session.is_human:
            self._show_line(followed, job, tally)
        else:
            document = {
                "id": followed.id,
                "kind": followed.kind,
                "state": job.state,
                "event": manifests.document(followed.event) | {"created": timestamp(followed.event.created)},
            }
            if self._session.output is render.OutputFormat.JSON:
                render.line(render.as_json(document, indent=None))
            else:
                render.line("---\n" + render.as_yaml(document))

    def _show_line(self, followed: FollowedEvent, job: FollowedJob, tally: JobSetTally) -> None:
        event = followed.event
        created = event.created.ToDatetime(dt.UTC)
        counts = ", ".join(f"{state.capitalize()}: {tally[state]:3d}" for state in _COLUMNS)
        text = f"{created:%b %d %H:%M:%S} | {counts} | {type(event).__name__}, job id: {event.job_id}"
        if hasattr(event, "pod_number"):
            text += f" pod: {event.pod_number}"
        if getattr(event, "requestor", ""):
            text += f", user: {event.requestor}"
        render.line(render.printable(text, one_line=True))
        if followed.kind == "failed":
            self._explain(event, job)

    def _explain(self, event: Any, job: FollowedJob) -> None:
        render.line(f"Job failed: {render.printable(event.reason)}")
        if event.pod_name and not job.is_rejected:
            render.line(f"Its output: armadactl logs {job.job_id}{self._log_command(event)}")

    def _log_command(self, event: Any) -> str:
        template = self._session.target.log_command
        if not template or not event.cluster_id:
            return ""
        pieces = {
            "{{cluster}}": event.cluster_id,
            "{{namespace}}": event.pod_namespace,
            "{{cmd}}": "logs",
            "{{pod}}": event.pod_name,
        }
        for placeholder, value in pieces.items():
            template = template.replace(placeholder, value)
        return f" (or: {render.printable(template, one_line=True)})"


def timestamp(moment: Any) -> str:
    """A protobuf timestamp as RFC 3339 with milliseconds, in UTC; empty when it is not set."""
    if not moment.seconds and not moment.nanos:
        return ""
    shown: dt.datetime = moment.ToDatetime(dt.UTC)
    return shown.isoformat(timespec="milliseconds").replace("+00:00", "Z")
