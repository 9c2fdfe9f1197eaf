"""Submission: which jobs of a request are new, and the facts that put them into the queue.

Nothing of a request is stored unless all of it is right. A job whose client id its queue has seen before (in the last
seven days, or earlier in the same request) is not stored again: the answer repeats the first one's id.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from armada.control.commands.permissions import SUBMIT_ANY, require_on_queue
from armada.control.commands.situation import Situation
from armada.control.commands.submission.defaults import clamped_priority, template_of
from armada.control.commands.submission.exposure import Owner
from armada.control.commands.submission.gangs import GangClaim, disagreement, gang_claim
from armada.control.commands.submission.validation import item_fault, refusal
from armada.control.commands.texts import shortened, text_fault
from armada.model.errors import InvalidRequest, PermissionDenied, Unavailable
from armada.model.events import Event, JobRejected, JobSetEvents, JobsSubmitted, Position
from armada.model.jobs import JobTemplate, NewJob
from armada.model.submission import Submission, SubmissionPolicy, SubmittedItem, SubmittedJob
from armada.state.ledger import Ledger

DrawIds = Callable[[int], Sequence[str]]
"""Draws that many new job ids, in order."""

MAX_ITEMS_REMEMBERED: Final = 4_096


class SubmitDecision(msgspec.Struct, frozen=True):
    """What to append (nothing when every job is a repeat) and the ids to answer, one per job of the request.

    Should another request with one of the client ids have been stored just before, that row will be void, and
    `settled_ids` finds the id that counts.
    """

    job_ids: tuple[str, ...]
    sequences: tuple[JobSetEvents, ...]


class _Known(msgspec.Struct):
    """What was found out about an item. It holds the item, so that its identity can't be taken by another."""

    item: SubmittedItem
    fault: str
    claim: GangClaim | None
    templates: dict[Owner | None, JobTemplate]


class Submitting:
    """Decides submissions. It remembers what it found out about items (a bounded number, by identity)."""

    def __init__(self, policy: SubmissionPolicy) -> None:
        self._policy = policy
        self._known: dict[int, _Known] = {}

    def decide(self, at: Situation, request: Submission, draw_ids: DrawIds) -> SubmitDecision:
        """Return the decision; raises PermissionDenied (also for an unknown queue) or InvalidRequest."""
        queue = at.ledger.queues.get(request.queue)
        if queue is None:
            raise PermissionDenied(f"could not find queue {shortened(request.queue)}")
        require_on_queue(at.caller, queue, SUBMIT_ANY, "submit")
        if fault := text_fault("job_set_id", request.job_set, self._policy.max_job_set_bytes, required=True):
            raise InvalidRequest(fault)
        known = self._checked(request.jobs)
        job_ids, fresh = self._identified(at.ledger, request, draw_ids)
        if not fresh:
            return SubmitDecision(tuple(job_ids), ())
        gangs = [(index, claim) for index in fresh if (claim := known[index].claim) is not None]
        rejected = _misfits(at.ledger, request.queue, gangs, self._policy)
        owner = Owner(request.queue, request.job_set, at.caller.name)
        rows = [
            (known[index], index in rejected, NewJob(job_ids[index], clamped_priority(job.priority), job.client_id))
            for index in fresh
            for job in (request.jobs[index],)
        ]
        events: list[Event] = []
        for template, jobs in self._stretches(rows, owner):
            events.append(
                JobsSubmitted(
                    at_ms=at.now_ms, template=template, jobs=jobs, owner=at.caller.name, groups=at.caller.groups
                )
            )
        events.extend(
            JobRejected(at_ms=at.now_ms, job_id=job_ids[index], reason=reason) for index, reason in rejected.items()
        )
        sequence = JobSetEvents(request.queue, request.job_set, tuple(events))
        return SubmitDecision(tuple(job_ids), (sequence,))

    def _checked(self, jobs: Sequence[SubmittedJob]) -> list[_Known]:
        known: list[_Known] = []
        faults: dict[int, str] = {}
        claims: dict[str, GangClaim] = {}
        limit = self._policy.max_client_id_bytes
        item: SubmittedItem | None = None
        entry: _Known | None = None
        for index, job in enumerate(jobs):
            if job.item is not item or entry is None:
                item, entry = job.item, self._examined(job.item)
            known.append(entry)
            fault = entry.fault
            if not fault and job.client_id:
                fault = text_fault("client_id", job.client_id, limit)
            if not fault and entry.claim is not None:
                fault = disagreement(claims.setdefault(entry.claim.spec.id, entry.claim), entry.claim)
            if fault:
                faults[index] = fault
        if faults:
            raise refusal(faults, len(jobs), self._policy)
        return known

    def _examined(self, item: SubmittedItem) -> _Known:
        entry = self._known.get(id(item))
        if entry is None:
            claim, gang_fault = gang_claim(item, self._policy)
            entry = _Known(item, gang_fault or item_fault(item, self._policy), claim, {})
            while len(self._known) >= MAX_ITEMS_REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[id(item)] = entry
        return entry

    def _identified(self, ledger: Ledger, request: Submission, draw_ids: DrawIds) -> tuple[list[str], list[int]]:
        """Give every job an id: an earlier one where its client id was seen, else a new one."""
        seen: dict[str, int] = {}
        fresh: list[int] = []
        repeats: list[tuple[int, int]] = []
        job_ids = [""] * len(request.jobs)
        for index, job in enumerate(request.jobs):
            if job.client_id:
                first = seen.get(job.client_id)
                if first is not None:
                    repeats.append((index, first))
                    continue
                seen[job.client_id] = index
                earlier = ledger.client_job(request.queue, job.client_id)
                if earlier is not None:
                    job_ids[index] = earlier
                    continue
            fresh.append(index)
        for index, job_id in zip(fresh, draw_ids(len(fresh)), strict=True):
            job_ids[index] = job_id
        for index, first in repeats:
            job_ids[index] = job_ids[first]
        return job_ids, fresh

    def _template(self, known: _Known, owner: Owner, *, without_gang: bool) -> JobTemplate:
        key = owner if known.item.services or known.item.ingresses else None
        template = known.templates.get(key)
        if template is None:
            template = template_of(known.item, known.claim, owner, self._policy)
            if len(known.templates) >= MAX_ITEMS_REMEMBERED:
                known.templates.clear()
            known.templates[key] = template
        return msgspec.structs.replace(template, gang=None) if without_gang else template

    def _stretches(
        self, rows: Iterable[tuple[_Known, bool, NewJob]], owner: Owner
    ) -> Iterator[tuple[JobTemplate, tuple[NewJob, ...]]]:
        """Group rows that follow each other and share one template; the flag takes its gang away."""
        for (_, without_gang), stretch in groupby(rows, key=lambda row: (id(row[0]), row[1])):
            same = list(stretch)
            template = self._template(same[0][0], owner, without_gang=without_gang)
            yield template, tuple(row[2] for row in same)


def _misfits(
    ledger: Ledger, queue: str, gangs: Sequence[tuple[int, GangClaim]], policy: SubmissionPolicy
) -> dict[int, str]:
    """Find new gang members that can't belong to their gang: it is complete, or differs from what they say.

    They are accepted and rejected at once, each with the reason; the members that fit are not touched.
    """
    sizes: dict[str, int] = {}
    for _, claim in gangs:
        sizes[claim.spec.id] = sizes.get(claim.spec.id, 0) + 1
    rejected: dict[int, str] = {}
    for index, claim in gangs:
        gang, size = claim.spec, sizes[claim.spec.id]
        named = f"gang {shortened(gang.id)}"
        record = ledger.gang(queue, gang.id)
        present = 0
        if record is not None:
            present = record.submitted
            first = GangClaim(record.gang, record.priority_class)
            mine = GangClaim(gang, claim.priority_class or policy.default_priority_class_name)
            if reason := disagreement(first, mine):
                rejected[index] = reason
                continue
        if present + size > gang.cardinality:
            had = f", {present} of them submitted before" if present else ""
            rejected[index] = f"{named} has a cardinality of {gang.cardinality}, but {present + size} members{had}"
    return rejected


def settled_ids(ledger: Ledger, request: Submission, decision: SubmitDecision, position: Position) -> tuple[str, ...]:
    """Return the ids to answer once the ledger has folded the append that ended at `position`.

    A row is void when another request with its client id was stored first: that one's id is the answer. Raises
    Unavailable where a row is void for any other reason (a gang that changed in between): the call may be repeated.
    """
    void = ledger.void_rows(position)
    if not void:
        return decision.job_ids
    lost: list[str] = []
    for event_index, event in enumerate(decision.sequences[0].events):
        if isinstance(event, JobsSubmitted):
            whole = (event_index, -1) in void
            lost.extend(job.job_id for row, job in enumerate(event.jobs) if whole or (event_index, row) in void)
    answers: dict[str, str] = {}
    for job_id, job in zip(decision.job_ids, request.jobs, strict=True):
        if job_id in lost:
            earlier = ledger.client_job(request.queue, job.client_id) if job.client_id else None
            if earlier is None:
                raise Unavailable("another request changed the same gang at the same moment: try again")
            answers[job_id] = earlier
    return tuple(answers.get(job_id, job_id) for job_id in decision.job_ids)
