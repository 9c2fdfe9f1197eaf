"""The port to whatever runs pods: what every cluster must do, and nothing about how.

The contract (one numbered test each in tests/contract/test_cluster.py, run against every cluster):

1. The pod of a created run shows up, under its run id, with the names, the node and the labels of its order.
2. A run has at most one pod. Creating it again answers `ALREADY_THERE` and starts nothing.
3. A pod's phase only moves forward (pending, running, then succeeded or failed), and each change carries the whole pod.
4. Nothing is lost between `list` and `changes`: what the list doesn't show comes as a change.
5. A pod that ended keeps its end (phase, exit codes, times) until it is deleted.
6. A deletion ends what runs, waits at most the grace time, and is over when the pod is reported gone, once. Deleting
   an unknown run is no error; a repeat with a shorter grace hurries the first.
7. A pod that is gone never changes again.
8. One bad order is refused with a reason, fatal or not, and doesn't harm the other orders of its batch.
9. Logs of a pod can be read until it is deleted; afterwards, and for a run never seen, `NotFound` says so.
10. A pod that runs past its `activeDeadlineSeconds` fails with reason `DeadlineExceeded`.
11. Nodes are listed with their totals and labels; an order for a node that isn't there is answered `NO_NODE`.
12. Without anything new, `changes` waits and costs nothing.
13. Exit codes of all containers are reported; a pod succeeds only if all of its main containers ended with 0.

The module knows no event loop, no clock and no files, so that simulated clusters can import it.
"""

import enum
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from armada.executor.pods import Pod, PodOrder
from armada.model.errors import ArmadaError
from armada.model.fleet import Node

LOG_PAGE_LIMIT_BYTES: Final = 2_000_000
"""A page of a log is never longer than this."""


class Outcome(enum.IntEnum):
    """What became of an order."""

    CREATED = 0
    ALREADY_THERE = 1
    NAME_TAKEN = 2
    """Another run's pod has the name: a retry may work once that one is gone."""
    REFUSED = 3
    """The cluster will never take this order."""
    NO_NODE = 4
    """The node of the order is not there (any more): the lease should go elsewhere."""
    FAILED = 5
    """Not this time: trying again may help. The pod may nevertheless exist."""


class Creation(msgspec.Struct, frozen=True):
    """Answer to one order; `message` says why it was not carried out, `other_run_id` who has the name."""

    run_id: str
    outcome: Outcome
    message: str = ""
    other_run_id: str = ""


class PodDeletion(msgspec.Struct, frozen=True):
    """A pod to delete. `grace_ms` None means the pod's own; `only_pending` leaves a pod that has started alone."""

    run_id: str
    grace_ms: int | None = None
    only_pending: bool = False


class PodGone(msgspec.Struct, frozen=True):
    """The pod of a run does not exist any more."""

    run_id: str
    reason: str = ""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What changed, in this order: nodes (new or different), nodes gone, pods (as they are now), pods gone."""

    nodes: tuple[Node, ...] = ()
    nodes_gone: tuple[str, ...] = ()
    pods: tuple[Pod, ...] = ()
    gone: tuple[PodGone, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.nodes_gone or self.pods or self.gone)


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes and all pods of ours, as of one moment."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which log, and from where: by run or, without one, the last run of the job. `since_ns` is a Unix time."""

    run_id: str = ""
    job_id: str = ""
    container: str = ""
    since_ns: int = 0
    tail_lines: int | None = None
    limit_bytes: int = LOG_PAGE_LIMIT_BYTES


class LogLine(msgspec.Struct, frozen=True):
    """A line without its line end. Times grow strictly inside a pod's log, so that the last one is where to go on."""

    time_ns: int
    text: str


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster can and can't: `survives_agent` means that pods go on and are found again after a restart."""

    runs_images: bool
    survives_agent: bool
    enforces_resources: bool
    has_logs: bool
    has_services: bool = False


class ClusterUnavailable(ArmadaError):
    """The cluster can't be reached now; what was asked may have happened."""

    code = "UNAVAILABLE"
    retryable = True


class WatchLost(ClusterUnavailable):
    """Changes may have been missed: list again."""


class Cluster(Protocol):
    """A cluster behind an event loop. Methods may raise ClusterUnavailable; one task calls `list` and `changes`."""

    @property
    def capabilities(self) -> Capabilities:
        """What this cluster can."""
        ...

    async def list(self) -> Listing:
        """Everything as it is now. Changes from before are dropped, later ones come from `changes`."""
        ...

    async def changes(self) -> Changes:
        """Wait until something changed since the list or the last call, and return all of it. Raises WatchLost."""
        ...

    async def create(self, orders: Sequence[PodOrder]) -> Sequence[Creation]:
        """Create pods; one answer for each order, in order."""
        ...

    async def delete(self, deletions: Sequence[PodDeletion]) -> None:
        """Ask for deletions; they are over when `changes` says `gone`."""
        ...

    async def proceed(self) -> None:
        """Let pods from before the first list start what is left of them: those that must not have been deleted."""
        ...

    async def read_log(self, request: LogRequest) -> Sequence[LogLine]:
        """Lines of one container's output in order. Raises model.errors.NotFound, InvalidRequest."""
        ...

    async def close(self) -> None:
        """Let go of the cluster; pods go on."""
        ...


class SteppedCluster(Protocol):
    """A cluster that stands still between calls and is told the time: the simulator's kind. No call waits."""

    @property
    def capabilities(self) -> Capabilities:
        """What this cluster can."""
        ...

    def listing(self, now_ms: int) -> Listing:
        """Everything as of `now_ms`; changes up to then are dropped."""
        ...

    def advance(self, now_ms: int) -> Changes:
        """Let time pass until `now_ms` and return what changed since the last call or listing."""
        ...

    def next_wake_ms(self) -> int | None:
        """When something will happen by itself, None when nothing will."""
        ...

    def create(self, orders: Sequence[PodOrder], now_ms: int) -> Sequence[Creation]:
        """As `Cluster.create`. Raises ClusterUnavailable."""
        ...

    def delete(self, deletions: Sequence[PodDeletion], now_ms: int) -> None:
        """As `Cluster.delete`. Raises ClusterUnavailable."""
        ...

    def read_log(self, request: LogRequest, now_ms: int) -> Sequence[LogLine]:
        """As `Cluster.read_log`."""
        ...
