"""A run ended badly: try the job again, and where, or let it fail.

Only a lease that its executor gave back is tried again here: the job's own failures are its owner's to look at. Retry
policies of queues will be asked first, at the same two places, once they exist.
"""

from collections.abc import Callable

from armada.model.events import Failure, JobFailed, JobRequeued, RunFailed, RunLeaseExpired, RunReturned
from armada.model.policy import SchedulingPolicy
from armada.state.records import JobRecord

CanRun = Callable[[JobRecord, tuple[str, ...]], bool]
"""Says if a job can ever run on a node other than the ones named (values of the node id label)."""


def after_failure(job: JobRecord, fact: RunFailed) -> JobFailed:
    """Return what a failed run means for its job: it fails, with the run's own failure."""
    del job
    return JobFailed(at_ms=fact.at_ms, job_id=fact.job_id, failure=fact.failure)


def after_expiry(fact: RunLeaseExpired) -> JobFailed:
    """Return what the silence of an executor means for the job of one of its runs: it fails."""
    failure = Failure(
        reason="Lease expired: its executor has been silent for too long",
        kind="lease_expired",
        category="internal",
        subcategory="lease-expired",
    )
    return JobFailed(at_ms=fact.at_ms, job_id=fact.job_id, failure=failure)


def after_return(
    job: JobRecord, fact: RunReturned, node_label: str, policy: SchedulingPolicy, can_run: CanRun
) -> JobRequeued | JobFailed:
    """Return what a lease given back means for its job.

    The job waits again, away from the nodes it was tried on, unless it is marked as fail-fast, has no attempt left,
    or has been tried on every node that it could run on. A lease that never reached a node costs no attempt.
    """
    attempts = job.runs_attempted + int(fact.attempted)
    tried = (node_label,) if fact.attempted and node_label not in job.avoid_nodes else ()
    refused = ""
    if job.fail_fast:
        refused = "The job is marked as fail-fast"
    elif attempts > policy.max_retries:
        refused = f"The job was attempted {attempts} times, the most that is allowed"
    elif tried and not can_run(job, (*job.avoid_nodes, *tried)):
        refused = f"The job was attempted {attempts} times, once on every node that it can run on"
    if not refused:
        return JobRequeued(at_ms=fact.at_ms, job_id=fact.job_id, avoid_nodes=tried)
    failure = Failure(
        reason=f"{refused}: it is not retried any more\n\nThe last run ended with:\n{fact.failure.reason}",
        kind="max_runs_exceeded",
        category="internal",
        subcategory="max-runs-exceeded",
    )
    return JobFailed(at_ms=fact.at_ms, job_id=fact.job_id, failure=failure)
