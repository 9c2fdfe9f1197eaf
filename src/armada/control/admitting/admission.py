"""New jobs are looked at once: one that can never run anywhere is rejected, with what speaks against it in each pool.

What can't be told yet (the capacity of a pool is unknown, the queue is cordoned, a gang lacks members) is kept as kinds
of jobs, not as jobs, and looked at again when the fleet or the queue has changed.
"""

import msgspec

from armada.control.admitting.eligibility import Eligibility, Verdict
from armada.control.sequences import merged_sequences
from armada.model.events import Entry, Event, JobRejected, JobSetEvents, JobsSubmitted, QueueCordoned, QueueUpdated
from armada.model.jobs import JobShape
from armada.model.lifecycle import JobState
from armada.state.ledger import Ledger


class _Kind(msgspec.Struct, frozen=True):
    """Plain jobs that are all answered alike."""

    queue: str
    shape: JobShape
    pools: tuple[str, ...] | None


class _Gang(msgspec.Struct, frozen=True):
    queue: str
    gang_id: str


class Admission:
    """Kinds of jobs that nobody has looked at yet, and those that could not be told."""

    def __init__(self, eligibility: Eligibility) -> None:
        self._eligibility = eligibility
        self._new: dict[_Kind | _Gang, None] = {}
        self._waiting: dict[_Kind | _Gang, str] = {}
        self._fleet_version = -1
        self._queues_changed = False
        self._looked_at: dict[str, int] = {}

    def notice(self, entry: Entry) -> None:
        """Remember what an entry (its void parts left out) brings to look at."""
        for event in entry.events:
            if isinstance(event, JobsSubmitted):
                template = event.template
                if template.gang is None:
                    self._new[_Kind(entry.queue, template.shape, template.pools)] = None
                else:
                    self._new[_Gang(entry.queue, template.gang.id)] = None
            elif isinstance(event, QueueCordoned | QueueUpdated):
                self._queues_changed = True

    def reconsider(self, ledger: Ledger) -> None:
        """Look at all queued jobs again: at the beginning of a leadership nobody knows what was looked at."""
        for kind in ledger.queued_kinds():
            self._new[_Kind(kind.queue, kind.shape, kind.pools)] = None
        for queue, gang_id in ledger.queued_gangs():
            self._new[_Gang(queue, gang_id)] = None

    def has_work(self, ledger: Ledger) -> bool:
        """Say if there is anything to look at, or to look at again."""
        return bool(self._new) or (
            bool(self._waiting) and (self._queues_changed or ledger.fleet_version != self._fleet_version)
        )

    def reason(self, queue: str, shape: JobShape, pools: tuple[str, ...] | None, gang_id: str = "") -> str:
        """Say why a job has not been admitted to rounds; empty when it has."""
        return self._waiting.get(_Gang(queue, gang_id) if gang_id else _Kind(queue, shape, pools), "")

    def looked_at(self) -> dict[str, int]:
        """Return how many kinds were looked at by queue since this was asked last."""
        found, self._looked_at = self._looked_at, {}
        return found

    def decide(self, ledger: Ledger, now_ms: int) -> tuple[JobSetEvents, ...]:
        """Look at everything new, and at what waits if the fleet or a queue has changed; return the rejections."""
        pending = dict.fromkeys(self._new)
        self._new.clear()
        if self._queues_changed or ledger.fleet_version != self._fleet_version:
            pending.update(dict.fromkeys(self._waiting))
            self._waiting.clear()
        self._fleet_version, self._queues_changed = ledger.fleet_version, False
        self._eligibility.refresh(ledger)
        rejected: list[JobSetEvents] = []
        for key in pending:
            queue = ledger.queues.get(key.queue)
            if queue is None:
                continue
            if queue.cordoned:
                self._waiting[key] = f"queue {key.queue} is cordoned"
                continue
            self._looked_at[key.queue] = self._looked_at.get(key.queue, 0) + 1
            if isinstance(key, _Kind):
                verdict = self._eligibility.judge(queue, key.shape, key.pools)
            else:
                verdict = self._judge_gang(ledger, key)
            if not verdict.is_possible and not verdict.is_final:
                self._waiting[key] = verdict.reason
            elif not verdict.is_possible:
                rejected.extend(_rejections(ledger, key, verdict.reason, now_ms))
        return merged_sequences(rejected)

    def _judge_gang(self, ledger: Ledger, key: _Gang) -> Verdict:
        """Each member has to fit alone, and all that are there at once. One that runs already is as it is."""
        queue, record = ledger.queues[key.queue], ledger.gang(key.queue, key.gang_id)
        jobs = [job for job_id in (record.member_ids if record else ()) if (job := ledger.job(job_id)) is not None]
        queued = [job for job in jobs if job.state is JobState.QUEUED]
        if record is None or not queued or len(queued) < len(jobs):
            return Verdict(pools=("",))
        return self._eligibility.judge_members(queue, [(job.shape, record.gang) for job in queued], queued[0].pools)


def _rejections(ledger: Ledger, key: _Kind | _Gang, reason: str, now_ms: int) -> list[JobSetEvents]:
    if isinstance(key, _Gang):
        job_ids = ledger.gang_members(key.queue, key.gang_id)
    else:
        job_ids = ledger.queued_jobs_of(key.queue, key.shape, key.pools)
    sequences: list[JobSetEvents] = []
    for job_id in job_ids:
        job = ledger.job(job_id)
        if job is not None and job.state is JobState.QUEUED and not job.runs_leased:
            events: tuple[Event, ...] = (JobRejected(at_ms=now_ms, job_id=job_id, reason=reason),)
            sequences.append(JobSetEvents(job.queue, job.job_set, events))
    return sequences
