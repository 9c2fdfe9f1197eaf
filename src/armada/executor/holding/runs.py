"""A record for each run that the agent holds, the journal's marks, and the nodes with the runs on them.

Pure, and only bookkeeping: what to do about it is `agent.py`'s business.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from armada.executor.pods import FAILED, PENDING, RUNNING, SUCCEEDED, Pod, PodOrder, Problem
from armada.model.events import Event, PodIdentity
from armada.model.fleet import Node
from armada.model.leases import HeldRun, NodeReport

TOLD_NOTHING: Final = 0
TOLD_PENDING: Final = 1
TOLD_STARTED: Final = 2
TOLD_END: Final = 3

LEVEL_OF_PHASE: Final[Mapping[str, int]] = {
    PENDING: TOLD_PENDING,
    RUNNING: TOLD_STARTED,
    SUCCEEDED: TOLD_END,
    FAILED: TOLD_END,
}
"""How much there is to tell about a pod in a phase; a phase that isn't here says nothing."""


class Stage(enum.IntEnum):
    """How far a held run got with the cluster."""

    WAITING = 0
    """Leased; its pod is not ordered yet."""
    CREATING = 1
    """The order is with the cluster."""
    CREATED = 2
    """The cluster took the order; the pod was not seen yet."""
    SEEN = 3
    """The pod was seen."""
    PODLESS = 4
    """There is no pod (any more) and there will be none: refused, given up, or gone."""


class RunEntry:
    """A run that the agent holds, until the control plane says to forget it."""

    __slots__ = (
        "deletion_asked_ms",
        "end",
        "end_acknowledged_ms",
        "is_cancelled",
        "job_id",
        "job_set",
        "order",
        "pod",
        "problem",
        "queue",
        "run_id",
        "since_ms",
        "stage",
        "told",
        "tries",
        "who",
    )

    def __init__(self, run_id: str, job_id: str, queue: str, job_set: str, now_ms: int) -> None:
        """A run of a job; nothing is known of its pod yet."""
        self.run_id = run_id
        self.job_id = job_id
        self.queue = queue
        self.job_set = job_set
        self.stage = Stage.WAITING
        self.since_ms = now_ms
        self.order: PodOrder | None = None
        self.pod: Pod | None = None
        self.who: PodIdentity | None = None
        self.problem: Problem | None = None
        self.told = TOLD_NOTHING
        self.end: Event | None = None
        self.tries = 0
        self.is_cancelled = False
        self.deletion_asked_ms = 0
        self.end_acknowledged_ms = 0

    @property
    def has_live_pod(self) -> bool:
        """True when something of this run may still execute."""
        if self.stage == Stage.SEEN:
            return self.pod is not None and not self.pod.has_ended
        return self.stage in (Stage.CREATING, Stage.CREATED)


class Mark(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A line of the journal: what must not be forgotten over a restart, about one run.

    `kind` is `c` (the cluster took its order; with the names), `t` (`level` of its facts was acknowledged), `x`
    (the control plane ended it) or `f` (nothing of it is left).
    """

    kind: str
    run_id: str
    level: int = 0
    job_id: str = ""
    queue: str = ""
    job_set: str = ""


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal says about one run."""

    job_id: str
    queue: str
    job_set: str
    told: int = TOLD_NOTHING
    is_cancelled: bool = False


def remember(marks: Iterable[Mark], runs: dict[str, Remembered]) -> dict[str, Remembered]:
    """Fold marks into `runs` (run id -> what is known) and return it. Marks of runs that are not there are skipped."""
    for mark in marks:
        if mark.kind == "c":
            known = runs.get(mark.run_id)
            told = known.told if known else TOLD_NOTHING
            runs[mark.run_id] = Remembered(job_id=mark.job_id, queue=mark.queue, job_set=mark.job_set, told=told)
        elif mark.kind == "f":
            runs.pop(mark.run_id, None)
        elif mark.run_id in runs:
            known = runs[mark.run_id]
            if mark.kind == "t":
                runs[mark.run_id] = msgspec.structs.replace(known, told=max(known.told, mark.level))
            elif mark.kind == "x":
                runs[mark.run_id] = msgspec.structs.replace(known, is_cancelled=True)
    return runs


def marks_of(runs: Mapping[str, Remembered]) -> list[Mark]:
    """The shortest journal that says the same: `remember(marks_of(runs), {}) == runs`."""
    marks: list[Mark] = []
    for run_id, known in runs.items():
        marks.append(Mark("c", run_id, 0, known.job_id, known.queue, known.job_set))
        if known.told:
            marks.append(Mark("t", run_id, known.told))
        if known.is_cancelled:
            marks.append(Mark("x", run_id))
    return marks


class NodeBook:
    """The nodes and which runs are on each, as the control plane wants to hear it.

    The report of a node is the same object as long as nothing on that node changed.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._runs: dict[str, dict[str, HeldRun]] = {}
        self._place: dict[str, str] = {}
        self._unassigned: dict[str, None] = {}
        self._reports: dict[str, NodeReport] = {}
        self._stale: dict[str, None] = {}
        self._all: tuple[NodeReport, ...] = ()

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    def set_node(self, node: Node) -> bool:
        """Add or replace a node; False when nothing changed."""
        if self._nodes.get(node.name) == node:
            return False
        self._nodes[node.name] = node
        self._runs.setdefault(node.name, {})
        self._stale[node.name] = None
        return True

    def drop_node(self, name: str) -> bool:
        """Forget a node; its runs are on no node from now on. False when it was not there."""
        if self._nodes.pop(name, None) is None:
            return False
        for run_id in self._runs.pop(name):
            del self._place[run_id]
            self._unassigned[run_id] = None
        self._reports.pop(name, None)
        self._stale[name] = None
        return True

    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes."""
        return tuple(self._nodes)

    def hold(self, run_id: str, node_name: str = "", phase: str = "") -> None:
        """A run is held: on a node in a phase, or (without a known node) on none."""
        place = self._place.get(run_id)
        runs = self._runs.get(node_name)
        if runs is None:
            if place is not None:
                del self._runs[place][run_id]
                del self._place[run_id]
                self._stale[place] = None
            self._unassigned[run_id] = None
            return
        if place != node_name:
            if place is not None:
                del self._runs[place][run_id]
                self._stale[place] = None
            else:
                self._unassigned.pop(run_id, None)
            self._place[run_id] = node_name
        runs[run_id] = HeldRun(run_id, phase)
        self._stale[node_name] = None

    def release(self, run_id: str) -> None:
        """The run is not held any more."""
        place = self._place.pop(run_id, None)
        if place is None:
            self._unassigned.pop(run_id, None)
        else:
            del self._runs[place][run_id]
            self._stale[place] = None

    def unassigned(self) -> tuple[str, ...]:
        """Held runs that are on no node."""
        return tuple(self._unassigned)

    def reports(self) -> tuple[NodeReport, ...]:
        """All nodes with their runs."""
        if self._stale:
            for name in self._stale:
                node = self._nodes.get(name)
                if node is not None:
                    self._reports[name] = NodeReport(node, tuple(self._runs[name].values()))
            self._stale.clear()
            self._all = tuple(self._reports.values())
        return self._all
