"""What an executor and the control plane say to each other.

One exchange: the executor sends a `LeaseRequest` (its heartbeat: all nodes, all runs it holds) and gets a `LeaseReply`
(runs to end, runs to start). Facts about runs travel apart, as sequences of events (`model.events.JobSetEvents`).
"""

import msgspec

from armada.model.fleet import Node
from armada.model.jobs import JobTemplate, Toleration


class HeldRun(msgspec.Struct, frozen=True):
    """A run that the executor holds on a node; `phase` is pending, running, succeeded, failed or unknown."""

    run_id: str
    phase: str


class NodeReport(msgspec.Struct, frozen=True):
    """A node and the runs on it."""

    node: Node
    runs: tuple[HeldRun, ...] = ()


class NodeUsage(msgspec.Struct, frozen=True):
    """What a queue's jobs in a pool use on a node just now: amounts by resource name, in whole units."""

    node_name: str
    pool: str
    queue: str
    amounts: tuple[tuple[str, float], ...]


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All an executor has. `unassigned_run_ids` are held but on no node yet; `max_leases` bounds the answer.

    `usage` is there where the executor measures it.

    An agent in the same process repeats the very same `NodeReport` object while nothing on that node changed, so that
    the reader may skip it by identity.
    """

    executor_id: str
    pool: str
    nodes: tuple[NodeReport, ...]
    unassigned_run_ids: tuple[str, ...] = ()
    max_leases: int = 100
    usage: tuple[NodeUsage, ...] = ()


class RunLease(msgspec.Struct, frozen=True, kw_only=True):
    """A run to start: the job and where it goes."""

    run_id: str
    job_id: str
    queue: str
    job_set: str
    owner: str
    groups: tuple[str, ...]
    template: JobTemplate
    node_name: str
    pool: str
    preemptible: bool
    tolerations: tuple[Toleration, ...] = ()
    overlay: dict[str, str] = {}


class LeaseReply(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that the executor must end or may forget, and runs to start."""

    cancel_run_ids: tuple[str, ...] = ()
    leases: tuple[RunLease, ...] = ()
