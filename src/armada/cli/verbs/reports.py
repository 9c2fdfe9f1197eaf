"""What the scheduler says about its latest rounds."""

from typing import Annotated

import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.connection import LISTING_DEADLINE_S
from armada.cli.session import Session, verb
from armada.cli.verbs import groups

Verbosity = Annotated[int, typer.Option("--verbose", "-v", count=True, help="More details; may be repeated.")]


@verb(groups.get, "job-report", examples="armadactl get job-report JOB_ID")
def job_report(
    session: Session, job_id: Annotated[str, typer.Argument(metavar="JOB_ID", help="Id of the job.")]
) -> None:
    """Print why a job is, or is not, scheduled."""
    from armada.wire import queries

    _print(session, "GetJobReport", queries.job_report_request(job_id))


@verb(groups.get, "queue-report", examples="armadactl get queue-report research -v")
def queue_report(
    session: Session,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")],
    *,
    verbose: Verbosity = 0,
) -> None:
    """Print what the latest rounds decided for a queue."""
    from armada.wire import queries

    _print(session, "GetQueueReport", queries.queue_report_request(queue, verbose))


@verb(groups.get, "scheduling-report", examples="armadactl get scheduling-report -vv")
def scheduling_report(
    session: Session,
    *,
    queue: Annotated[str, typer.Option("--queue", metavar="QUEUE", help="The latest round of this queue.")] = "",
    job_id: Annotated[str, typer.Option("--job-id", metavar="ID", help="The latest round of this job.")] = "",
    verbose: Verbosity = 0,
) -> None:
    """Print what the latest rounds decided."""
    from armada.wire import queries

    if queue and job_id:
        raise CommandFailed("--queue and --job-id are exclusive", ExitStatus.USAGE)
    _print(session, "GetSchedulingReport", queries.scheduling_report_request(queue, job_id, verbose))


def _print(session: Session, method: str, request: object) -> None:
    connection = session.connection
    answer = connection.call(getattr(connection.report_service, method), request, deadline_s=LISTING_DEADLINE_S)
    render.emit(session.output, {"report": answer.report}, lambda: answer.report.rstrip("\n"))
