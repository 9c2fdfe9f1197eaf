"""Questions to the history, each one short read on a connection that the caller holds."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import json
from sqlalchemy import BindParameter, Connection, RowMapping, Select, bindparam, select

from armada.model.jobs import JobTemplate
from armada.model.lifecycle import JobState, RunState
from armada.views.records import (
    JobDetails,
    RunDetails,
    read_addresses,
    read_failure,
    read_preemption,
    read_template,
    unpack,
)
from armada.views.schema import job, job_set, run, spec

IDS_PER_QUERY: Final = 500
"""How many ids one statement names; longer lists are asked for in parts."""

_NAMED: Final[BindParameter[list[str]]] = bindparam("named", expanding=True)

_JOBS: Final = (
    select(job, job_set.c.queue, job_set.c.name, spec.c.owner, spec.c.groups, spec.c.namespace, spec.c.priority_class)
    .join(job_set, job_set.c.set_id == job.c.set_id)
    .join(spec, (spec.c.position == job.c.spec_position) & (spec.c.spec_index == job.c.spec_index))
    .where(job.c.job_id.in_(_NAMED))
)
_STATES: Final = select(job.c.job_id, job.c.state).where(job.c.job_id.in_(_NAMED))
_RUNS_OF_JOBS: Final = (
    select(run).where(run.c.job_id.in_(_NAMED)).order_by(run.c.attempt.desc(), run.c.leased_ms.desc())
)
_RUNS: Final = select(run).where(run.c.run_id.in_(_NAMED))
_ENDS: Final = (
    select(job.c.job_id, job.c.rejection, run.c.state, run.c.failure, run.c.preemption)
    .outerjoin(run, (run.c.job_id == job.c.job_id) & (run.c.run_id == job.c.latest_run_id))
    .where(job.c.job_id.in_(_NAMED))
)
_BY_URI: Final = (
    select(job.c.job_id, job.c.state)
    .join(job_set, job_set.c.set_id == job.c.set_id)
    .where(
        job.c.external_job_uri == bindparam("uri"),
        job_set.c.queue == bindparam("queue"),
        job_set.c.name == bindparam("name"),
    )
    .order_by(job.c.job_id)
)
_IN_SET: Final = (
    select(job.c.job_id)
    .join(job_set, job_set.c.set_id == job.c.set_id)
    .where(job_set.c.queue == bindparam("queue"), job_set.c.name == bindparam("name"))
    .where(job.c.job_id > bindparam("after"))
    .order_by(job.c.job_id)
    .limit(bindparam("most"))
)
_SPEC: Final = select(spec.c.template).where(
    spec.c.position == bindparam("at"),
    spec.c.spec_index == bindparam("number"),
)

LEASE_EXPIRED_TEXT: Final = "Lease expired"


def jobs(connection: Connection, job_ids: Sequence[str], *, with_runs: bool, with_spec: bool) -> dict[str, JobDetails]:
    """The jobs that are known, in the order asked for."""
    runs: dict[str, list[RunDetails]] = {}
    if with_runs:
        for row in _named(connection, _RUNS_OF_JOBS, job_ids):
            runs.setdefault(row["job_id"], []).append(_run_details(row))
    templates: dict[tuple[int, int], JobTemplate | None] = {}
    found: dict[str, JobDetails] = {}
    for row in _named(connection, _JOBS, job_ids):
        template = None
        if with_spec:
            key = (row["spec_position"], row["spec_index"])
            if key not in templates:
                templates[key] = template_of(connection, *key)
            template = templates[key]
        found[row["job_id"]] = _job_details(row, tuple(runs.get(row["job_id"], ())), template)
    return {job_id: found[job_id] for job_id in dict.fromkeys(job_ids) if job_id in found}


def states(connection: Connection, job_ids: Sequence[str]) -> dict[str, JobState]:
    """The states of those that are known."""
    return {row["job_id"]: JobState(row["state"]) for row in _named(connection, _STATES, job_ids)}


def states_by_uri(connection: Connection, queue: str, job_set_name: str, uri: str) -> dict[str, JobState]:
    """The states of a job set's jobs that were submitted with exactly this external URI."""
    rows = connection.execute(_BY_URI, {"uri": uri, "queue": queue, "name": job_set_name})
    return {row.job_id: JobState(row.state) for row in rows}


def errors(connection: Connection, job_ids: Sequence[str]) -> dict[str, str]:
    """For each known job why it was rejected, else why its latest run ended badly, else ""."""
    return {row["job_id"]: _error(row) for row in _named(connection, _ENDS, job_ids)}


def runs(connection: Connection, run_ids: Sequence[str]) -> dict[str, RunDetails]:
    """The runs that are known."""
    return {row["run_id"]: _run_details(row) for row in _named(connection, _RUNS, run_ids)}


def job_ids_in_set(connection: Connection, queue: str, job_set_name: str, after: str, limit: int) -> list[str]:
    """Ids of a job set's jobs above `after`, in order, at most `limit`."""
    rows = connection.execute(_IN_SET, {"queue": queue, "name": job_set_name, "after": after, "most": limit})
    return [row.job_id for row in rows]


def template_of(connection: Connection, position: int, index: int) -> JobTemplate | None:
    """What event number `index` of the entry at `position` submitted; None when it is not, or no longer, kept."""
    stored = connection.execute(_SPEC, {"at": position, "number": index}).scalar()
    return unpack(stored, read_template)


def _named(connection: Connection, question: Select[Any], ids: Sequence[str]) -> Iterator[RowMapping]:
    """Rows for ids, asked for in parts of `IDS_PER_QUERY`."""
    distinct = list(dict.fromkeys(ids))
    for start in range(0, len(distinct), IDS_PER_QUERY):
        yield from connection.execute(question, {"named": distinct[start : start + IDS_PER_QUERY]}).mappings()


def _job_details(row: RowMapping, its_runs: tuple[RunDetails, ...], template: JobTemplate | None) -> JobDetails:
    return JobDetails(
        job_id=row["job_id"],
        queue=row["queue"],
        job_set=row["name"],
        namespace=row["namespace"],
        owner=row["owner"],
        groups=json.decode(row["groups"], type=tuple[str, ...]),
        priority=row["priority"],
        priority_class=row["priority_class"],
        state=JobState(row["state"]),
        submitted_ms=row["submitted_ms"],
        last_transition_ms=row["changed_ms"],
        spec_position=row["spec_position"],
        spec_index=row["spec_index"],
        external_job_uri=row["external_job_uri"] or "",
        latest_run_id=row["latest_run_id"] or "",
        cancelled_ms=row["cancelled_ms"],
        cancel_reason=row["cancel_reason"] or "",
        cancel_requestor=row["cancel_requestor"] or "",
        preempt_reason=row["preempt_reason"] or "",
        preempt_requestor=row["preempt_requestor"] or "",
        rejection=row["rejection"] or "",
        failure=unpack(row["failure"], read_failure),
        runs=its_runs,
        template=template,
    )


def _run_details(row: RowMapping) -> RunDetails:
    return RunDetails(
        run_id=row["run_id"],
        job_id=row["job_id"],
        attempt=row["attempt"],
        state=RunState(row["state"]),
        executor_id=row["executor_id"],
        node_id=row["node_id"],
        node_name=row["node_name"],
        pool=row["pool"],
        leased_ms=row["leased_ms"],
        pending_ms=row["pending_ms"],
        started_ms=row["started_ms"],
        finished_ms=row["finished_ms"],
        exit_code=row["exit_code"],
        failure=unpack(row["failure"], read_failure),
        preemption=unpack(row["preemption"], read_preemption),
        addresses=unpack(row["addresses"], read_addresses) or {},
    )


def _error(row: RowMapping) -> str:
    """The one text to show for a job's end."""
    if row["rejection"]:
        return str(row["rejection"])
    failure = unpack(row["failure"], read_failure)
    if failure is not None:
        return failure.reason
    preemption = unpack(row["preemption"], read_preemption)
    if preemption is not None:
        return preemption.reason
    return LEASE_EXPIRED_TEXT if row["state"] == RunState.LEASE_EXPIRED else ""
