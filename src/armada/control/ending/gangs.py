"""Gangs that never became whole: after a time, where one is set, their waiting members fail with the reason.

Everything follows from the ledger: a leader that has just begun looks at all gangs and judges by when their members
were submitted, so that nothing is forgotten with a restart.
"""

from typing import Final

from armada.control.sequences import merged_sequences
from armada.model.events import Entry, Failure, JobFailed, JobSetEvents, JobsSubmitted
from armada.model.lifecycle import JobState
from armada.state.ledger import Ledger
from armada.state.records import JobRecord

CATEGORY: Final = "internal"
SUBCATEGORY: Final = "gang-incomplete"

_LOOKS_AGAIN_MS: Final = 60_000
"""A gang that was whole may lose a member: all are looked at this often."""


class IncompleteGangs:
    """Ends gangs that nobody joined for `limit_ms` (0: never) though members are missing, and of which none runs."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._due_ms: int | None = 0 if limit_ms else None

    def begin_again(self) -> None:
        """Look at all gangs anew."""
        self._due_ms = 0 if self._limit_ms else None

    def notice(self, entry: Entry, now_ms: int) -> None:
        """Look when a gang that is new may have waited too long."""
        if self._limit_ms and any(isinstance(event, JobsSubmitted) and event.template.gang for event in entry.events):
            due_ms = now_ms + self._limit_ms
            self._due_ms = due_ms if self._due_ms is None else min(self._due_ms, due_ms)

    def due_ms(self) -> int | None:
        """Return when there may be something to end; None where there is not."""
        return self._due_ms

    def ended(self, ledger: Ledger, now_ms: int) -> tuple[JobSetEvents, ...]:
        """Return the ends of those members whose gang has waited too long."""
        if self._due_ms is None or self._due_ms > now_ms:
            return ()
        gangs = ledger.queued_gangs()
        self._due_ms = now_ms + _LOOKS_AGAIN_MS if gangs else None
        sequences: list[JobSetEvents] = []
        for queue, gang_id in gangs:
            waiting = _missing_some(ledger, queue, gang_id)
            if not waiting:
                continue
            expires_ms = max(job.submitted_ms for job in waiting) + self._limit_ms
            if expires_ms > now_ms:
                self._due_ms = min(self._due_ms or expires_ms, expires_ms)
                continue
            sequences += [self._failed(job, len(waiting), now_ms) for job in waiting]
        return merged_sequences(sequences)

    def _failed(self, job: JobRecord, members: int, now_ms: int) -> JobSetEvents:
        size = job.gang.cardinality if job.gang is not None else 0
        reason = (
            f"its gang has {members} of {size} members, and no other came within"
            f" {self._limit_ms / 1_000:g} s (incompleteGangTimeout)"
        )
        failure = Failure(reason=reason, kind="gang_unschedulable", category=CATEGORY, subcategory=SUBCATEGORY)
        fact = JobFailed(at_ms=now_ms, job_id=job.job_id, failure=failure)
        return JobSetEvents(job.queue, job.job_set, (fact,))


def _missing_some(ledger: Ledger, queue: str, gang_id: str) -> list[JobRecord]:
    """Return a gang's members if all that live wait and others are missing; else nothing."""
    found = [ledger.job(job_id) for job_id in ledger.gang_members(queue, gang_id)]
    live = [job for job in found if job is not None and not job.state.is_terminal]
    if not live or live[0].gang is None or len(live) >= live[0].gang.cardinality:
        return []
    waits = all(job.state is JobState.QUEUED and not job.cancel_requested for job in live)
    return live if waits else []
