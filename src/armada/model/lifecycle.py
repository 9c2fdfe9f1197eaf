"""States of jobs and runs, and the one table that says which fact may follow which state."""

import enum
from collections.abc import Mapping
from typing import Final


class JobState(enum.IntEnum):
    """Where a job stands. `PREEMPTED` and `REJECTED` are ways to have failed that users are told apart."""

    QUEUED = 0
    LEASED = 1
    PENDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    PREEMPTED = 6
    CANCELLED = 7
    REJECTED = 8

    @property
    def is_terminal(self) -> bool:
        """True when nothing can change the job any more."""
        return self >= JobState.SUCCEEDED

    @property
    def is_active(self) -> bool:
        """True when the job has a live run."""
        return JobState.LEASED <= self <= JobState.RUNNING


class RunState(enum.IntEnum):
    """Where one attempt at a job stands."""

    LEASED = 0
    PENDING = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    PREEMPTED = 5
    CANCELLED = 6
    LEASE_EXPIRED = 7
    LEASE_RETURNED = 8

    @property
    def is_terminal(self) -> bool:
        """True when the attempt has ended (its pod may still be going away)."""
        return self >= RunState.SUCCEEDED


_Q, _L, _P, _R = JobState.QUEUED, JobState.LEASED, JobState.PENDING, JobState.RUNNING
_ACTIVE: Final = (_L, _P, _R)
_LIVE: Final = (_Q, *_ACTIVE)

TRANSITIONS: Final[Mapping[str, tuple[tuple[JobState, ...], JobState | None]]] = {
    # event kind: (states it may meet, state it leads to; None: it stays)
    "JobReprioritisationRequested": (_LIVE, None),
    "JobReprioritised": (_LIVE, None),
    "JobCancelRequested": (_LIVE, None),
    "JobCancelled": (_LIVE, JobState.CANCELLED),
    "JobPreemptRequested": (_ACTIVE, None),
    "JobRejected": ((_Q,), JobState.REJECTED),
    "RunLeased": ((_Q,), _L),
    "RunPending": ((_L,), _P),
    "RunStarted": ((_L, _P), _R),
    "RunAddressed": (_ACTIVE, None),
    "RunUsageReported": (_ACTIVE, None),
    "RunSucceeded": (_ACTIVE, None),
    "RunFailed": (_ACTIVE, None),
    "RunReturned": (_ACTIVE, None),
    "RunLeaseExpired": (_ACTIVE, None),
    "RunPreempted": (_ACTIVE, None),
    "JobRequeued": (_ACTIVE, _Q),
    "JobSucceeded": (_ACTIVE, JobState.SUCCEEDED),
    "JobFailed": (_LIVE, JobState.FAILED),
    "JobPreempted": (_ACTIVE, JobState.PREEMPTED),
}
"""For every fact about one existing job: the states it may meet and the state it leads to.

A fact that meets another state is void: it is dropped by every reader (`state.ledger`). Facts about a run are
void as well when the run is not the job's current one, or when the run has ended already.
"""

RUN_TRANSITIONS: Final[Mapping[str, tuple[tuple[RunState, ...], RunState | None]]] = {
    "RunPending": ((RunState.LEASED,), RunState.PENDING),
    "RunStarted": ((RunState.LEASED, RunState.PENDING), RunState.RUNNING),
    "RunAddressed": ((RunState.LEASED, RunState.PENDING, RunState.RUNNING), None),
    "RunUsageReported": ((RunState.LEASED, RunState.PENDING, RunState.RUNNING), None),
    "RunSucceeded": ((RunState.LEASED, RunState.PENDING, RunState.RUNNING), RunState.SUCCEEDED),
    "RunFailed": ((RunState.LEASED, RunState.PENDING, RunState.RUNNING), RunState.FAILED),
    "RunReturned": ((RunState.LEASED, RunState.PENDING, RunState.RUNNING), RunState.LEASE_RETURNED),
    "RunLeaseExpired": ((RunState.LEASED, RunState.PENDING, RunState.RUNNING), RunState.LEASE_EXPIRED),
    "RunPreempted": ((RunState.LEASED, RunState.PENDING, RunState.RUNNING), RunState.PREEMPTED),
}
"""The same for runs. A job's cancellation ends its current run as `CANCELLED` (when that has not ended yet)."""
