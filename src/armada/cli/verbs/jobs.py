"""Jobs: cancel, preempt, reprioritize, and what is known about them."""

from typing import Annotated, Any, Final

import typer

from armada.cli import manifests, render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.connection import LISTING_DEADLINE_S, CallFailed
from armada.cli.remote.following import FollowedJob, Follower, JobSetTally
from armada.cli.session import Session, verb
from armada.cli.verbs import groups, selection
from armada.cli.verbs.watch import timestamp

QUERY_IDS: Final = 500
"""Job ids per query, the server's limit."""

Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="The jobs' queue.")]
JobSet = Annotated[str, typer.Argument(metavar="JOB_SET", help="The jobs' job set.")]
JobIds = Annotated[list[str], typer.Argument(metavar="JOB_ID...", help="Ids of jobs.")]
JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="Id of the job.")]
Priority = Annotated[float, typer.Argument(metavar="PRIORITY", help="The new priority; smaller goes first.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, in at most 50 bytes.")]


@verb(
    groups.cancel,
    "job",
    examples="""
    armadactl cancel job research hello 01k3vq8n4w2h7c5d9e1f3g6j8k
    armadactl cancel job research hello ID ID --reason "bad input"
    """,
)
def cancel_job(session: Session, queue: Queue, job_set: JobSet, job_ids: JobIds, *, reason: Reason = "") -> None:
    """Cancel jobs by their ids."""
    from armada_client.armada import submit_pb2

    _check_ids(job_ids)
    shown = ", ".join(job_ids)
    _say(session, f"Requesting cancellation of jobs matching queue: {queue}, job set: {job_set}, and job ID: {shown}")
    request = submit_pb2.JobCancelRequest(queue=queue, job_set_id=job_set, job_ids=job_ids, reason=reason)
    answer = session.connection.call(session.connection.submit_service.CancelJobs, request)
    cancelled = list(answer.cancelled_ids)
    render.emit(
        session.output, {"cancelledIds": cancelled}, lambda: f"Requested cancellation for jobs {', '.join(cancelled)}"
    )


@verb(
    groups.cancel,
    "job-set",
    examples="""
    armadactl cancel job-set research hello
    armadactl cancel job-set research hello --states queued
    """,
)
def cancel_job_set(
    session: Session,
    queue: Queue,
    job_set: JobSet,
    *,
    states: Annotated[
        list[str] | None,
        typer.Option("--states", metavar="STATE,...", help="Only jobs that are queued, or that are pending,running."),
    ] = None,
    reason: Reason = "",
) -> None:
    """Cancel every unfinished job of a job set."""
    from armada_client.armada import submit_pb2

    wanted = [state.upper() for state in selection.parts(states)]
    unknown = [state for state in wanted if state not in ("QUEUED", "PENDING", "RUNNING")]
    if unknown:
        raise CommandFailed(f"--states takes queued, pending and running, not {unknown[0].lower()}", ExitStatus.USAGE)
    _say(session, f"Requesting cancellation of job set matching queue: {queue}, job set: {job_set}")
    request = submit_pb2.JobSetCancelRequest(queue=queue, job_set_id=job_set, reason=reason)
    if wanted:
        request.filter.states.extend(submit_pb2.JobState.Value(state) for state in wanted)
    session.connection.call(session.connection.submit_service.CancelJobSet, request)
    render.emit(
        session.output,
        {"cancelledJobSet": {"queue": queue, "jobSetId": job_set}},
        lambda: f"Requested cancellation for job set {job_set}",
    )


@verb(groups.preempt, "job", examples='armadactl preempt job research hello JOB_ID "node maintenance"')
def preempt_job(
    session: Session,
    queue: Queue,
    job_set: JobSet,
    job_id: JobId,
    reason: Annotated[str, typer.Argument(metavar="REASON", help="Why, in at most 50 bytes.")],
) -> None:
    """Preempt a running job of a preemptible priority class. It ends; it does not run again."""
    from armada_client.armada import submit_pb2

    _check_ids([job_id])
    _say(session, f"Requesting preemption of job matching queue: {queue}, job set: {job_set}, and job Id: {job_id}")
    request = submit_pb2.JobPreemptRequest(queue=queue, job_set_id=job_set, job_ids=[job_id], reason=reason)
    session.connection.call(session.connection.submit_service.PreemptJobs, request)
    render.emit(session.output, {"preemptedIds": [job_id]}, lambda: f"Requested preemption for job {job_id}")


@verb(
    groups.reprioritize,
    "job",
    takes_negative_numbers=True,
    examples="armadactl reprioritize job research hello JOB_ID 5",
)
def reprioritize_job(session: Session, queue: Queue, job_set: JobSet, job_id: JobId, priority: Priority) -> None:
    """Change one job's priority."""
    _check_ids([job_id])
    _reprioritize(session, queue, job_set, [job_id], priority)


@verb(
    groups.reprioritize,
    "job-set",
    takes_negative_numbers=True,
    examples="armadactl reprioritize job-set research hello 5",
)
def reprioritize_job_set(session: Session, queue: Queue, job_set: JobSet, priority: Priority) -> None:
    """Change the priority of every unfinished job of a job set."""
    _reprioritize(session, queue, job_set, [], priority)


def _reprioritize(session: Session, queue: str, job_set: str, job_ids: list[str], priority: float) -> None:
    from armada_client.armada import submit_pb2

    request = submit_pb2.JobReprioritizeRequest(queue=queue, job_set_id=job_set, job_ids=job_ids, new_priority=priority)
    answer = session.connection.call(session.connection.submit_service.ReprioritizeJobs, request)
    results = dict(sorted(answer.reprioritization_results.items()))
    failed = {job_id: text for job_id, text in results.items() if text}
    render.emit(
        session.output,
        {"reprioritized": results},
        lambda: "\n".join(("Reprioritized jobs with ID:", *(job_id for job_id in results if job_id not in failed))),
    )
    if failed:
        raise CommandFailed("\n".join(f"{job_id}: {text}" for job_id, text in failed.items()))


@verb(
    groups.get,
    "job",
    examples="""
    armadactl get job 01k3vq8n4w2h7c5d9e1f3g6j8k
    armadactl get job ID ID -o json
    armadactl get job ID --spec -o yaml
    """,
)
def get_job(
    session: Session,
    job_ids: JobIds,
    *,
    spec: Annotated[
        bool, typer.Option("--spec", help="Also the job as it was submitted (with -o json or yaml).")
    ] = False,
) -> None:
    """Show jobs: state, runs, what went wrong, and why one waits."""
    _check_ids(job_ids)
    wanted = list(dict.fromkeys(job_ids))
    details, errors = _queried(session, wanted, spec=spec)
    waiting = {
        job_id: text
        for job_id, found in details.items()
        if _state(found) == "QUEUED" and (text := _waiting_reason(session, job_id))
    }
    found = [job_document(details[job_id], errors, waiting) for job_id in wanted if job_id in details]
    missing = [job_id for job_id in wanted if job_id not in details]
    if found:
        one = len(wanted) == 1
        render.emit(
            session.output,
            found[0] if one else {"jobs": found},
            lambda: _job_details(found[0]) if one else _job_listing(found),
        )
    if missing:
        raise CommandFailed(f"no such job: {', '.join(missing)}", ExitStatus.NOT_FOUND)


@verb(
    groups.get,
    "job-set",
    names=("jobs",),
    examples="armadactl get job-set research hello\narmadactl get job-set research hello --states failed",
)
def get_job_set(
    session: Session,
    queue: Queue,
    job_set: JobSet,
    *,
    states: Annotated[
        list[str] | None, typer.Option("--states", metavar="STATE,...", help="Only jobs in these states.")
    ] = None,
) -> None:
    """List the jobs of a job set, in the order of their submission."""
    tally = JobSetTally()
    for followed in Follower(session.connection, queue, job_set).present():
        tally.take(followed)
    wanted = selection.parts(states)
    jobs = [job for job in tally.jobs.values() if not wanted or job.state in wanted]
    documents = [
        {"jobId": job.job_id, "state": job.state, "node": job.node, "cluster": job.cluster, "reason": job.reason}
        for job in jobs
    ]
    counts = {state: tally[state] for state in sorted({job.state for job in tally.jobs.values()}) if state}
    render.emit(
        session.output,
        {"queue": queue, "jobSetId": job_set, "counts": counts, "jobs": documents},
        lambda: _job_set_listing(jobs),
    )


def _check_ids(job_ids: list[str]) -> None:
    """An empty id never stands for a whole set: it is most often a script's empty variable."""
    if not all(job_id.strip() for job_id in job_ids):
        raise CommandFailed("a job id is empty; to address a whole set use job-set", ExitStatus.USAGE)


def _say(session: Session, text: str) -> None:
    if session.is_human:
        render.line(render.printable(text, one_line=True))


def _queried(session: Session, job_ids: list[str], *, spec: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The details and error texts of the jobs that exist."""
    from armada_client.armada import job_pb2

    connection = session.connection
    details: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for start in range(0, len(job_ids), QUERY_IDS):
        part = job_ids[start : start + QUERY_IDS]
        request = job_pb2.JobDetailsRequest(job_ids=part, expand_job_run=True, expand_job_spec=spec)
        answer = connection.call(connection.jobs_service.GetJobDetails, request, deadline_s=LISTING_DEADLINE_S)
        details.update(answer.job_details)
        asked = job_pb2.JobErrorsRequest(job_ids=part)
        errors.update(connection.call(connection.jobs_service.GetJobErrors, asked).job_errors)
    return details, errors


def _waiting_reason(session: Session, job_id: str) -> str:
    """Why the scheduler has not placed the job, where the server can tell; empty otherwise."""
    from armada.wire import queries

    connection = session.connection
    try:
        answer = connection.call(connection.report_service.GetJobReport, queries.job_report_request(job_id))
    except CallFailed:
        return ""
    return str(answer.report).strip()


def _state(details: Any) -> str:
    from armada_client.armada import submit_pb2

    return str(submit_pb2.JobState.Name(details.state))


def _run_state(run: Any) -> str:
    from armada_client.armada import job_pb2

    return str(job_pb2.JobRunState.Name(run.state)).removeprefix("RUN_STATE_").removeprefix("RUNS_STATE_")


def job_document(details: Any, errors: dict[str, str], waiting: dict[str, str]) -> dict[str, Any]:
    """What is known about a job, as `-o json` prints it; what is unknown is left out."""
    document: dict[str, Any] = {
        "jobId": details.job_id,
        "queue": details.queue,
        "jobSetId": details.jobset,
        "namespace": details.namespace,
        "state": _state(details),
        "submitted": timestamp(details.submitted_ts),
        "lastTransition": timestamp(details.last_transition_ts),
        "cancelled": timestamp(details.cancel_ts),
        "cancelReason": details.cancel_reason,
        "cancelUser": details.cancel_user,
        "waiting": waiting.get(details.job_id, ""),
        "error": errors.get(details.job_id, ""),
        "runs": [_run_document(run) for run in details.job_runs],
    }
    if details.HasField("job_spec"):
        document["job"] = manifests.document(details.job_spec)
    return {key: value for key, value in document.items() if value}


def _run_document(run: Any) -> dict[str, Any]:
    document = {
        "runId": run.run_id,
        "state": _run_state(run),
        "cluster": run.cluster,
        "node": run.node,
        "leased": timestamp(run.leased_ts),
        "pending": timestamp(run.pending_ts),
        "started": timestamp(run.started_ts),
        "finished": timestamp(run.finished_ts),
        "addresses": {str(port): address for port, address in run.ingress_addresses.items()},
    }
    return {key: value for key, value in document.items() if value}


def _job_details(job: dict[str, Any]) -> Any:
    from rich.console import Group

    shown = [
        ("Job", job["jobId"]),
        ("State", render.state_text(job["state"])),
        ("Queue", job["queue"]),
        ("Job set", job["jobSetId"]),
        ("Namespace", job.get("namespace", "")),
        ("Submitted", job.get("submitted", "")),
        ("Last change", job.get("lastTransition", "")),
    ]
    for title, key in (
        ("Cancelled", "cancelled"),
        ("Cancelled by", "cancelUser"),
        ("Cancel reason", "cancelReason"),
        ("Waits because", "waiting"),
        ("Error", "error"),
    ):
        if job.get(key):
            shown.append((title, job[key]))
    runs = job.get("runs", [])
    if not runs:
        return render.fields(shown)
    rows = [
        (
            run["runId"],
            render.state_text(run["state"]),
            run.get("cluster", ""),
            run.get("node", ""),
            run.get("leased", ""),
            run.get("started", ""),
            run.get("finished", ""),
        )
        for run in runs
    ]
    headings = ("run", "state", "cluster", "node", "leased", "started", "finished")
    return Group(render.fields(shown), "", render.table(headings, rows))


def _job_listing(jobs: list[dict[str, Any]]) -> Any:
    rows = []
    for job in jobs:
        node = next((run["node"] for run in job.get("runs", []) if run.get("node")), "")
        text = job.get("error") or job.get("waiting") or ""
        rows.append(
            (job["jobId"], render.state_text(job["state"]), job["queue"], job["jobSetId"], node, _first_line(text))
        )
    return render.table(("job", "state", "queue", "job set", "node", "why"), rows)


def _job_set_listing(jobs: list[FollowedJob]) -> Any:
    if not jobs:
        return "No jobs."
    rows = [
        (job.job_id, render.state_text(_shown_state(job)), job.cluster, job.node, _first_line(job.reason))
        for job in jobs
    ]
    return render.table(("job", "state", "cluster", "node", "why"), rows)


def _shown_state(job: FollowedJob) -> str:
    if job.state == "failed":
        return "rejected" if job.is_rejected else "preempted" if job.was_preempted else "failed"
    return job.state


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
