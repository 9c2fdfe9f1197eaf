"""New jobs are looked at once: one that can never run anywhere is rejected, with what speaks against it in each pool.

What can't be told yet (the capacity of a pool is unknown, the queue is cordoned, a gang lacks members) is kept as kinds
of jobs, not as jobs, and looked at again when the fleet or the queue has changed. So is which pools refused a kind that
others took: those pools' rounds leave it out, until they are asked again because the fleet has changed. Only so many
kinds are looked at in one step, so that many new ones do not hold up the leader.
"""

from itertools import islice
from typing import Final

import msgspec

from armada.control.admitting.eligibility import Eligibility, Verdict
from armada.control.sequences import merged_sequences
from armada.model.events import Entry, Event, JobRejected, JobSetEvents, JobsSubmitted, QueueCordoned, QueueUpdated
from armada.model.fleet import Queue
from armada.model.jobs import JobShape
from armada.model.lifecycle import JobState
from armada.state.ledger import Ledger
from armada.state.pools import Excluded

LOOKS: Final = 32
"""So many kinds are looked at in one step of the leader."""


class _Kind(msgspec.Struct, frozen=True):
    """Plain jobs that are all answered alike."""

    queue: str
    shape: JobShape
    pools: tuple[str, ...] | None


class _Gang(msgspec.Struct, frozen=True):
    queue: str
    gang_id: str


class Admission:
    """Kinds of jobs that nobody has looked at yet, those that could not be told, and who refused which.

    Pools that refused a kind are asked again at most every `review_ms`.
    """

    def __init__(self, eligibility: Eligibility, review_ms: int) -> None:
        self._eligibility = eligibility
        self._review_ms = review_ms
        self._new: dict[_Kind | _Gang, None] = {}
        self._again: dict[_Kind | _Gang, None] = {}
        self._waiting: dict[_Kind | _Gang, str] = {}
        self._refused: dict[_Kind | _Gang, tuple[str, ...]] = {}
        self._excluded: dict[str, Excluded] = {}
        self._reviewed: tuple[int, int] = (-1, 0)
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

    def has_work(self, ledger: Ledger, now_ms: int) -> bool:
        """Say if there is anything to look at, or to look at again."""
        review_ms = self.review_due_ms(ledger)
        return (
            bool(self._new)
            or bool(self._again)
            or (bool(self._waiting) and (self._queues_changed or ledger.fleet_version != self._fleet_version))
            or (review_ms is not None and review_ms <= now_ms)
        )

    def review_due_ms(self, ledger: Ledger) -> int | None:
        """Return when pools that refused are to be asked again; None while the fleet is as it was."""
        version, at_ms = self._reviewed
        return at_ms + self._review_ms if self._refused and version != ledger.fleet_version else None

    def excluded(self, pool: str) -> Excluded:
        """Return the queued jobs that this pool's rounds leave out."""
        known = self._excluded.get(pool)
        if known is None:
            shapes: dict[str, list[JobShape]] = {}
            gangs: dict[str, list[str]] = {}
            for key, pools in self._refused.items():
                if pool not in pools:
                    continue
                if isinstance(key, _Gang):
                    gangs.setdefault(key.queue, []).append(key.gang_id)
                elif key.pools is None:
                    shapes.setdefault(key.queue, []).append(key.shape)
            known = self._excluded[pool] = Excluded(
                shapes={queue: tuple(found) for queue, found in shapes.items()},
                gangs={queue: tuple(found) for queue, found in gangs.items()},
            )
        return known

    def reason(self, queue: str, shape: JobShape, pools: tuple[str, ...] | None, gang_id: str = "") -> str:
        """Say why a job has not been admitted to rounds; empty when it has."""
        return self._waiting.get(_Gang(queue, gang_id) if gang_id else _Kind(queue, shape, pools), "")

    def looked_at(self) -> dict[str, int]:
        """Return how many kinds were looked at by queue since this was asked last."""
        found, self._looked_at = self._looked_at, {}
        return found

    def decide(self, ledger: Ledger, now_ms: int) -> tuple[JobSetEvents, ...]:
        """Look at what is new, and at what has to be looked at again; return the rejections."""
        if self._queues_changed or ledger.fleet_version != self._fleet_version:
            self._new.update(dict.fromkeys(self._waiting))
        self._fleet_version, self._queues_changed = ledger.fleet_version, False
        review_ms = self.review_due_ms(ledger)
        if review_ms is not None and review_ms <= now_ms:
            self._again.update(dict.fromkeys(self._refused))
            self._reviewed = (ledger.fleet_version, now_ms)
        self._eligibility.refresh(ledger)
        rejected: list[JobSetEvents] = []
        for key in _taken(self._new):
            rejected.extend(self._look(ledger, key, now_ms))
        for key in _taken(self._again):
            self._look_again(ledger, key)
        return merged_sequences(rejected)

    def _look(self, ledger: Ledger, key: _Kind | _Gang, now_ms: int) -> list[JobSetEvents]:
        """Look at a kind that was not told yet; return its rejections, if it can never run."""
        self._waiting.pop(key, None)
        queue = ledger.queues.get(key.queue)
        if queue is None:
            return []
        if queue.cordoned:
            self._waiting[key] = f"queue {key.queue} is cordoned"
            return []
        self._looked_at[key.queue] = self._looked_at.get(key.queue, 0) + 1
        verdict = self._judge(ledger, queue, key)
        if verdict.is_possible:
            self._note_refusals(key, verdict.refused)
        elif verdict.is_final:
            return _rejections(ledger, key, verdict.reason, now_ms)
        else:
            self._waiting[key] = verdict.reason
        return []

    def _look_again(self, ledger: Ledger, key: _Kind | _Gang) -> None:
        """Ask the pools that refused a kind once more. One that fits nowhere now was admitted and goes on waiting."""
        queue = ledger.queues.get(key.queue)
        is_here = ledger.holds_shape(key.shape) if isinstance(key, _Kind) else ledger.gang(key.queue, key.gang_id)
        if queue is None or not is_here:
            self._note_refusals(key, ())
            return
        verdict = self._judge(ledger, queue, key)
        if verdict.is_possible:
            self._note_refusals(key, verdict.refused)

    def _note_refusals(self, key: _Kind | _Gang, pools: tuple[str, ...]) -> None:
        if self._refused.get(key, ()) != pools:
            self._excluded.clear()
        self._refused.pop(key, None)
        if pools:
            self._refused[key] = pools

    def _judge(self, ledger: Ledger, queue: Queue, key: _Kind | _Gang) -> Verdict:
        if isinstance(key, _Kind):
            return self._eligibility.judge(queue, key.shape, key.pools)
        return self._judge_gang(ledger, key)

    def _judge_gang(self, ledger: Ledger, key: _Gang) -> Verdict:
        """Each member has to fit alone, and all that are there at once. One that runs already is as it is."""
        queue, record = ledger.queues[key.queue], ledger.gang(key.queue, key.gang_id)
        jobs = [job for job_id in (record.member_ids if record else ()) if (job := ledger.job(job_id)) is not None]
        queued = [job for job in jobs if job.state is JobState.QUEUED]
        if record is None or not queued or len(queued) < len(jobs):
            return Verdict(pools=("",))
        return self._eligibility.judge_members(queue, [(job.shape, record.gang) for job in queued], queued[0].pools)


def _taken(keys: dict[_Kind | _Gang, None]) -> list[_Kind | _Gang]:
    """Take out the first keys, as many as are looked at in one step."""
    first = list(islice(keys, LOOKS))
    for key in first:
        del keys[key]
    return first


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
