"""Queues: create, replace, cordon, delete, list."""

import math
from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from armada.control.commands.permissions import CORDON_QUEUE, CREATE_QUEUE, DELETE_QUEUE, VERBS, known_queue, require
from armada.control.commands.situation import Situation
from armada.control.commands.texts import shortened, text_fault
from armada.model.errors import FailedPrecondition, InvalidRequest
from armada.model.events import JobSetEvents, QueueCordoned, QueueCreated, QueueDeleted, QueueUpdated
from armada.model.fleet import Queue, QueuePermission, Subject
from armada.model.lifecycle import JobState
from armada.model.submission import Caller, QueueRequest, SubmissionPolicy
from armada.state.ledger import Ledger

Sequences = tuple[JobSetEvents, ...]

MIN_PRIORITY_FACTOR: Final = 1.0
MAX_PRIORITY_FACTOR: Final = 1e300
"""Beyond it, a queue's weight (one over the factor) and sums of costs would leave the range of numbers."""


def with_owners(request: QueueRequest) -> Queue:
    """Return the queue with its owners as one permission of all verbs, after the permissions given."""
    subjects = tuple(
        Subject(kind, name)
        for kind, names in (("User", request.user_owners), ("Group", request.group_owners))
        for name in names
    )
    if not subjects:
        return request.queue
    owners = QueuePermission(subjects, VERBS)
    return msgspec.structs.replace(request.queue, permissions=(owners, *request.queue.permissions))


def owned_by(caller: Caller, request: QueueRequest) -> QueueRequest:
    """Return the request to create a queue with the caller as owner where it names no user."""
    return request if request.user_owners else msgspec.structs.replace(request, user_owners=(caller.name,))


def may_create(caller: Caller) -> bool:
    """Say if the caller may create queues at all."""
    return CREATE_QUEUE in caller.permissions


def create(at: Situation, request: QueueRequest) -> Sequences:
    """Create a queue, or replace the one of its name; raises PermissionDenied, InvalidRequest."""
    require(at.caller, CREATE_QUEUE, f"create queue {shortened(request.queue.name)}")
    queue = with_owners(owned_by(at.caller, request))
    _check(at, queue)
    return (JobSetEvents("", "", (QueueCreated(at_ms=at.now_ms, queue=queue),)),)


def update(at: Situation, request: QueueRequest) -> Sequences:
    """Replace a queue's settings; an unknown one is created. Raises PermissionDenied, InvalidRequest."""
    require(at.caller, CREATE_QUEUE, f"update queue {shortened(request.queue.name)}")
    queue = with_owners(request)
    _check(at, queue)
    kind = QueueUpdated if queue.name in at.ledger.queues else QueueCreated
    return (JobSetEvents("", "", (kind(at_ms=at.now_ms, queue=queue),)),)


def _check(at: Situation, queue: Queue) -> None:
    unknown = [name for name in queue.retry_policies if name not in at.ledger.retry_policies]
    missing = [f"there is no retry policy {', '.join(map(shortened, unknown))}"] if unknown else []
    if fault := next(chain(_faults(queue, at.submission), missing), ""):
        raise InvalidRequest(f"queue {shortened(queue.name)}: {fault}")


def _faults(queue: Queue, policy: SubmissionPolicy) -> Iterator[str]:
    yield from filter(None, [text_fault("its name", queue.name, policy.max_queue_name_bytes, required=True)])
    factor = queue.priority_factor
    if not (math.isfinite(factor) and MIN_PRIORITY_FACTOR <= factor <= MAX_PRIORITY_FACTOR):
        yield f"priority_factor must be from {MIN_PRIORITY_FACTOR:g} to {MAX_PRIORITY_FACTOR:g}, not {factor:g}"
    for index, permission in enumerate(queue.permissions):
        for subject in permission.subjects:
            if subject.kind not in {"User", "Group"}:
                yield f"permission {index} has a subject of kind {shortened(subject.kind)}: use User or Group"
    for key, value in queue.labels.items():
        if not key or not value:
            yield f"label {shortened(key)} has an empty key or value"
    yield from _size_faults(queue, policy)


def _size_faults(queue: Queue, policy: SubmissionPolicy) -> Iterator[str]:
    for name, limit in queue.limits_by_class.items():
        for fractions in (limit.fractions, *limit.fractions_by_pool.values()):
            if any(math.isnan(fraction) for fraction in fractions.values()):
                yield f"a resource limit of priority class {shortened(name)} is not a number"
    size = sum(map(len, _texts(queue)))
    if size > policy.max_metadata_bytes:
        yield f"its texts have {size} characters, at most {policy.max_metadata_bytes} are allowed"
    for text in _texts(queue):
        yield from filter(None, [text_fault("a text", text, policy.max_metadata_bytes)])


def _texts(queue: Queue) -> list[str]:
    texts = [text for pair in queue.labels.items() for text in pair]
    for permission in queue.permissions:
        texts.extend((*permission.verbs, *(subject.name for subject in permission.subjects)))
    return [*texts, *queue.limits_by_class]


def cordon(at: Situation, name: str, *, cordoned: bool) -> Sequences:
    """Stop or resume the scheduling of a queue's jobs; raises PermissionDenied, InvalidRequest, NotFound."""
    require(at.caller, CORDON_QUEUE, f"{'cordon' if cordoned else 'uncordon'} queue {shortened(name)}")
    if not name:
        raise InvalidRequest("the queue's name is missing")
    if known_queue(at.ledger, name).cordoned is cordoned:
        return ()
    return (JobSetEvents("", "", (QueueCordoned(at_ms=at.now_ms, name=name, cordoned=cordoned),)),)


def delete(at: Situation, name: str) -> Sequences:
    """Delete a queue without live jobs; an unknown one is no error.

    A queue with live jobs stays, so that they keep their weight, their limits and the people who may cancel them.
    Raises PermissionDenied, FailedPrecondition.
    """
    require(at.caller, DELETE_QUEUE, f"delete queue {shortened(name)}")
    if name not in at.ledger.queues:
        return ()
    counts = at.ledger.counts().get(name, ())
    live = sum(count for state, count in enumerate(counts) if not JobState(state).is_terminal)
    if live:
        raise FailedPrecondition(
            f"queue {shortened(name)} has {live} jobs that have not ended: cordon it, then cancel them or let them end"
        )
    return (JobSetEvents("", "", (QueueDeleted(at_ms=at.now_ms, name=name),)),)


def listing(ledger: Ledger, limit: int) -> tuple[Queue, ...]:
    """Return the queues by name, at most `limit` (0 or less: all)."""
    names = sorted(ledger.queues)
    return tuple(ledger.queues[name] for name in (names[:limit] if limit > 0 else names))
