"""Who may do what: a global permission, or a queue's verb, suffices."""

from typing import Final

from armada.control.commands.texts import shortened
from armada.model.errors import NotFound, PermissionDenied
from armada.model.fleet import Queue
from armada.model.submission import Caller
from armada.state.ledger import Ledger

SUBMIT_ANY: Final = "submit_any_jobs"
CANCEL_ANY: Final = "cancel_any_jobs"
PREEMPT_ANY: Final = "preempt_any_jobs"
REPRIORITISE_ANY: Final = "reprioritize_any_jobs"
WATCH_ALL: Final = "watch_all_events"
CREATE_QUEUE: Final = "create_queue"
DELETE_QUEUE: Final = "delete_queue"
CORDON_QUEUE: Final = "cordon_queue"
CORDON_NODES: Final = "cordon_nodes"
EXECUTE_JOBS: Final = "execute_jobs"
UPDATE_EXECUTOR_SETTINGS: Final = "update_executor_settings"

CREATE_RETRY_POLICY: Final = "create_retry_policy"
UPDATE_RETRY_POLICY: Final = "update_retry_policy"
DELETE_RETRY_POLICY: Final = "delete_retry_policy"
ALL_PERMISSIONS: Final = frozenset(
    {
        SUBMIT_ANY,
        CANCEL_ANY,
        PREEMPT_ANY,
        REPRIORITISE_ANY,
        WATCH_ALL,
        CREATE_QUEUE,
        DELETE_QUEUE,
        CORDON_QUEUE,
        CORDON_NODES,
        EXECUTE_JOBS,
        UPDATE_EXECUTOR_SETTINGS,
        CREATE_RETRY_POLICY,
        UPDATE_RETRY_POLICY,
        DELETE_RETRY_POLICY,
    }
)

VERBS: Final = ("submit", "cancel", "preempt", "reprioritize", "watch")
"""All that an owner of a queue may do with its jobs."""


def require(caller: Caller, permission: str, action: str) -> None:
    """Raise PermissionDenied unless the caller holds a global permission."""
    if permission not in caller.permissions:
        raise PermissionDenied(f"{caller.name} may not {action}: permission {permission} is missing")


def require_on_queue(caller: Caller, queue: Queue, permission: str, verb: str) -> None:
    """Raise PermissionDenied unless the caller holds the global permission or the queue grants the verb."""
    if permission in caller.permissions:
        return
    for entry in queue.permissions:
        if verb in entry.verbs and any(
            subject.name == caller.name if subject.kind == "User" else subject.name in caller.groups
            for subject in entry.subjects
        ):
            return
    raise PermissionDenied(
        f"{caller.name} may not {verb} in queue {shortened(queue.name)}:"
        f" neither permission {permission} nor the queue's verb {verb} is held"
    )


def known_queue(ledger: Ledger, name: str) -> Queue:
    """Return a queue by name; raises NotFound."""
    queue = ledger.queues.get(name)
    if queue is None:
        raise NotFound(f"could not find queue {shortened(name)}")
    return queue
