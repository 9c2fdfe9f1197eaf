"""The jobs of the ledger as columns: about 140 bytes a job, its id included.

A row holds numbers only; texts and everything that many jobs share (queue, job set, shape, owner, gang) are interned.
Each queue keeps its queued jobs in serving order (spec section 11.1).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.growth import MemoryGrowth, grown
from armada.model.jobs import REQUEUE_PREEMPTED, JobShape, JobTemplate, NewJob, SelectorRequirement
from armada.model.lifecycle import JobState
from armada.model.resources import saturated
from armada.state.holdings.gangs import Gangs
from armada.state.ids import IdIndex
from armada.state.table import NONE, Interner, Order, Rows, Table, ensure

CANCEL_REQUESTED: Final = 1
PREEMPT_REQUESTED: Final = 2

_SWITCH: Final[Mapping[str, bool]] = {"true": True, "false": False}
_QUEUED: Final = int(JobState.QUEUED)
_SUCCEEDED: Final = int(JobState.SUCCEEDED)


class JobKind(msgspec.Struct, frozen=True):
    """What templates say besides the shape (here a number) that decides where, when and how often a job may run."""

    shape: int
    fail_fast: bool = False
    price_band: int = 0
    pools: tuple[str, ...] | None = None
    requeues_preempted: bool | None = None


class JobOrigin(msgspec.Struct, frozen=True):
    """Who sent a job, and what it carries that no decision looks at."""

    owner: str
    groups: tuple[str, ...]
    namespace: str
    external_job_uri: str


class Submission(msgspec.Struct, frozen=True):
    """What the jobs of one `JobsSubmitted` share, as numbers; `gang` is NONE for plain jobs."""

    queue: int
    job_set: int
    kind: int
    shape: int
    origin: int
    gang: int
    class_priority: int
    at_ms: int
    position: int
    index: int


class Jobs(Table):
    """All jobs the ledger holds."""

    COLUMNS: ClassVar[Mapping[str, type[np.integer[Any]]]] = {
        "state": np.uint8,
        "flags": np.uint8,
        "runs_leased": np.int32,
        "runs_attempted": np.int32,
        "runs_failed": np.int32,
        "runs_held": np.int32,
        "queue": np.int32,
        "job_set": np.int32,
        "kind": np.int32,
        "shape": np.int32,
        "origin": np.int32,
        "gang": np.int32,
        "class_priority": np.int32,
        "run": np.int32,
        "place": np.int32,
        "spec_index": np.int32,
        "spec_position": np.int64,
        "priority": np.int64,
        "submitted_ms": np.int64,
        "queued_ms": np.int64,
        "sequence": np.int64,
    }

    state: memoryview
    flags: memoryview
    runs_leased: memoryview
    runs_attempted: memoryview
    runs_failed: memoryview
    runs_held: memoryview
    queue: memoryview
    job_set: memoryview
    kind: memoryview
    shape: memoryview
    origin: memoryview
    gang: memoryview
    class_priority: memoryview
    run: memoryview
    place: memoryview
    spec_index: memoryview
    spec_position: memoryview
    priority: memoryview
    submitted_ms: memoryview
    queued_ms: memoryview
    sequence: memoryview

    def __init__(self) -> None:
        super().__init__()
        self.ids = IdIndex()
        self.queues: Interner[str] = Interner()
        self.sets: Interner[tuple[str, str]] = Interner()
        self.shapes: Interner[JobShape] = Interner()
        self.fresh_shapes: dict[int, None] = {}
        """Numbers of shapes that came since the reader of shapes last emptied this."""
        self.kinds: Interner[JobKind] = Interner()
        self.origins: Interner[JobOrigin] = Interner()
        self.gangs = Gangs()
        self.restricted_kinds: dict[int, tuple[str, ...]] = {}
        self.banded_kinds: dict[int, int] = {}
        """Price bands of the kinds that name one."""
        """The pools of kinds that may not run in all pools."""
        self.avoid_nodes: dict[int, tuple[str, ...]] = {}
        self.growth: dict[int, MemoryGrowth] = {}
        self.next_sequence = 1
        self._orders: list[Order] = []
        self._counts: list[list[int]] = []

    # -- queues -------------------------------------------------------------------------------------------------------

    def hold_queue(self, name: str) -> int:
        """Take a reference to a queue's number, making its order and counts when it is new."""
        number = self.queues.hold(name)
        if number == len(self._counts):
            self._counts.append([0] * len(JobState))
            self._orders.append(Order(number + 1, self._serving_keys, self._places))
        return number

    def queued_order(self, queue: int) -> Order:
        """Return the serving order of a queue's queued jobs."""
        return self._orders[queue]

    def counts(self, queue: int) -> list[int]:
        """Return the number of a queue's jobs by state. Not to be changed by the caller."""
        return self._counts[queue]

    def _places(self) -> NDArray[np.int32]:
        return self.column("place")

    def _serving_keys(self, rows: Rows) -> tuple[NDArray[np.int64], ...]:
        urgency = -self.column("class_priority")[rows].astype(np.int64)
        return urgency, self.column("priority")[rows], self.column("sequence")[rows]

    # -- coming and going ---------------------------------------------------------------------------------------------

    def hold_shape(self, shape: JobShape) -> int:
        """Take a reference to a shape's number."""
        number = self.shapes.hold(shape)
        if self.shapes.count(number) == 1:
            self.fresh_shapes[number] = None
        return number

    def hold_kind(self, template: JobTemplate) -> int:
        """Take a reference to the number of the template's kind. A kind in use holds its shape."""
        shape = self.hold_shape(template.shape)
        requeues = _SWITCH.get(template.annotations.get(REQUEUE_PREEMPTED, ""))
        kind = self.kinds.hold(JobKind(shape, template.fail_fast, template.price_band, template.pools, requeues))
        if self.kinds.count(kind) > 1:
            self.shapes.release(shape)
            return kind
        if template.pools is not None:
            self.restricted_kinds[kind] = template.pools
        if template.price_band:
            self.banded_kinds[kind] = template.price_band
        return kind

    def release_kind(self, kind: int) -> None:
        """Give a reference to a kind back."""
        shape = self.kinds[kind].shape
        if self.kinds.release(kind):
            self.shapes.release(shape)
            self.restricted_kinds.pop(kind, None)
            self.banded_kinds.pop(kind, None)

    def submit(self, job: NewJob, shared: Submission) -> int:
        """Put a queued job in, after all others; return its row. The references in `shared` are taken here."""
        row = self.allocate()
        self.ids.add(job.job_id, row)
        self.queue[row] = shared.queue
        self.job_set[row] = shared.job_set
        self.kind[row] = shared.kind
        self.shape[row] = shared.shape
        self.origin[row] = shared.origin
        self.gang[row] = shared.gang
        self.class_priority[row] = shared.class_priority
        self.spec_position[row] = shared.position
        self.spec_index[row] = shared.index
        self.submitted_ms[row] = self.queued_ms[row] = shared.at_ms
        self.priority[row] = saturated(job.priority)
        self.run[row] = NONE
        self.sequence[row] = self.next_sequence
        self.next_sequence += 1
        if shared.gang != NONE:
            gang = self.gangs[shared.gang]
            gang.rows[row] = None
            gang.submitted += 1
        self._counts[shared.queue][_QUEUED] += 1
        self._orders[shared.queue].add(row, self.place)
        return row

    def hold_shared(self, shared: Submission, count: int) -> None:
        """Take the references of `count` more jobs of a submission."""
        self.queues.hold_number(shared.queue, count)
        self.sets.hold_number(shared.job_set, count)
        self.kinds.hold_number(shared.kind, count)
        self.shapes.hold_number(shared.shape, count)
        self.origins.hold_number(shared.origin, count)
        if shared.gang != NONE:
            self.gangs.numbers.hold_number(shared.gang, count)

    def release_shared(self, shared: Submission) -> None:
        """Give back one reference to everything that a submission's jobs share."""
        self.sets.release(shared.job_set)
        self.shapes.release(shared.shape)
        self.release_kind(shared.kind)
        self.origins.release(shared.origin)
        if shared.gang != NONE:
            self.gangs.release(shared.gang)
        self.queues.release(shared.queue)

    def drop(self, row: int) -> None:
        """Forget an ended job that holds no run."""
        state, queue, gang = self.state[row], self.queue[row], self.gang[row]
        self._counts[queue][state] -= 1
        if gang != NONE:
            del self.gangs[gang].rows[row]
            self.gangs.release(gang)
        self.avoid_nodes.pop(row, None)
        self.growth.pop(row, None)
        self.ids.remove(row)
        self.shapes.release(self.shape[row])
        self.release_kind(self.kind[row])
        self.origins.release(self.origin[row])
        self.sets.release(self.job_set[row])
        self.queues.release(queue)
        self.free(row)
        self.job_set[row] = NONE

    # -- changes ------------------------------------------------------------------------------------------------------

    def move(self, row: int, state: int) -> None:
        """Lead a job that has not ended to another state, in counts and serving order too."""
        before, queue = self.state[row], self.queue[row]
        if before == state:
            return
        counts = self._counts[queue]
        counts[before] -= 1
        counts[state] += 1
        if before == _QUEUED:
            self._orders[queue].remove(row, self.place)
        self.state[row] = state
        if state == _QUEUED:
            self._orders[queue].add(row, self.place)

    def reprioritise(self, row: int, priority: int) -> None:
        """Give a job that has not ended another priority inside its queue."""
        if self.state[row] != _QUEUED:
            self.priority[row] = priority
            return
        order = self._orders[self.queue[row]]
        order.remove(row, self.place)
        self.priority[row] = priority
        order.add(row, self.place)

    def change(self, row: int, nodes: tuple[str, ...], growth: MemoryGrowth | None, label: str) -> None:
        """Keep a job away from more nodes, and set how its memory has grown where that is given.

        `label` is the label of nodes' names.
        """
        known = self.avoid_nodes.get(row, ())
        more = tuple(dict.fromkeys(node for node in nodes if node not in known))
        if more:
            self.avoid_nodes[row] = known + more
        if growth is not None:
            self.growth[row] = growth
        if more or growth is not None:
            self.set_changed_shape(row, label)

    def set_changed_shape(self, row: int, label: str) -> None:
        """Bring a job's shape in line with its `avoid_nodes` and `growth`."""
        shape = grown(self.shapes[self.kinds[self.kind[row]].shape], self.growth.get(row))
        if row in self.avoid_nodes:
            shape = avoiding(shape, self.avoid_nodes[row], label)
        number = self.hold_shape(shape)
        self.shapes.release(self.shape[row])
        self.shape[row] = number

    # -- reading ------------------------------------------------------------------------------------------------------

    def rows_in_set(self, queue: str, job_set: str) -> list[int]:
        """Return a job set's rows in submit order. A pass over one column."""
        number = self.sets.find((queue, job_set))
        if number == NONE:
            return []
        rows = np.flatnonzero(self.column("job_set") == number).astype(np.int32)
        found: list[int] = self.in_submit_order(rows).tolist()
        return found

    def rows_in_queue(self, name: str) -> Rows:
        """Return a queue's rows in submit order."""
        rows = self.used_rows()
        rows = rows[self.column("queue")[rows] == self.queues.find(name)]
        return self.in_submit_order(rows)

    def in_submit_order(self, rows: Rows) -> Rows:
        """Return the rows sorted by submit order."""
        return rows[np.argsort(self.column("sequence")[rows], kind="stable")]

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def restore_marked_kinds(self) -> None:
        """Find the kinds that may not run in all pools, and those that name a price band."""
        self.restricted_kinds = {number: kind.pools for number, kind in self.kinds if kind.pools is not None}
        self.banded_kinds = {number: kind.price_band for number, kind in self.kinds if kind.price_band}

    def restore_links(self) -> None:
        """Rebuild everything that follows from ids and filled columns; rows must stand in submit order."""
        gangs = self.column("gang")
        for row in np.flatnonzero(gangs != NONE).tolist():
            self.gangs[self.gang[row]].rows[row] = None
        queues, states = self.column("queue"), self.column("state")
        high = self.queues.high
        counts = np.bincount(queues * np.int64(len(JobState)) + states, minlength=high * len(JobState))
        for queue, own in enumerate(counts.reshape(high, len(JobState)).tolist()):
            self._counts[queue][:] = own
        queued = np.flatnonzero(states == _QUEUED).astype(np.int32)
        queued = queued[np.argsort(queues[queued], kind="stable")]
        ends = np.cumsum(counts.reshape(high, len(JobState))[:, _QUEUED])
        for order, rows in zip(self._orders, np.split(queued, ends[:-1]), strict=False):  # no queue: one empty piece
            order.replace(rows)

    def validate(self) -> None:
        """Check that ids, chains, gangs, counts, orders and references all tell the same story.

        Raises:
            AssertionError: they do not.
        """
        used = self.used_rows()
        self.ids.validate(used)
        ensure(bool((self.column("job_set")[self.free_rows()] == NONE).all()), "a free row is in a job set")
        for interner in (self.queues, self.sets, self.shapes, self.kinds, self.origins):
            interner.validate()
        self._validate_references(used)
        states, queues = self.column("state")[used], self.column("queue")[used]
        for number, name in self.queues:
            here = queues == number
            found = np.bincount(states[here], minlength=len(JobState)).tolist()
            ensure(found == self._counts[number], f"counts of queue {name}")
            self._validate_order(self.queued_order(number), used[here & (states == _QUEUED)])
        self.gangs.validate(self.column("gang"), self.in_submit_order(used))

    def _validate_references(self, used: Rows) -> None:
        for column, interner in (("job_set", self.sets), ("kind", self.kinds), ("origin", self.origins)):
            found = np.bincount(self.column(column)[used], minlength=interner.high)
            for number, value in interner:
                ensure(found[number] == interner.count(number), f"references to {column} {value}")
        found = np.bincount(self.column("shape")[used], minlength=self.shapes.high)
        for _, kind in self.kinds:
            found[kind.shape] += 1
        for number, shape in self.shapes:
            ensure(found[number] == self.shapes.count(number), f"references to shape {shape}")
        restricted = {number: kind.pools for number, kind in self.kinds if kind.pools is not None}
        ensure(self.restricted_kinds == restricted, "kinds that may not run in all pools")
        banded = {number: kind.price_band for number, kind in self.kinds if kind.price_band}
        ensure(self.banded_kinds == banded, "kinds that name a price band")
        ensure(self.avoid_nodes.keys() | self.growth.keys() <= set(used.tolist()), "retry changes of no job")

    def _validate_order(self, order: Order, expected: Rows) -> None:
        if len(expected):
            expected = expected[np.lexsort(self._serving_keys(expected)[::-1])]
        ensure(len(order) == len(expected), f"order {order.number} has another length")
        ensure(order.rows().tolist() == expected.tolist(), f"order {order.number} is out of order")


def avoiding(shape: JobShape, nodes: tuple[str, ...], label: str) -> JobShape:
    """Return a shape that stays off some nodes: the requirement is added to every term, or stands alone."""
    requirement = SelectorRequirement(key=label, operator="NotIn", values=tuple(sorted(nodes)))
    terms = shape.affinity if shape.affinity is not None else ((),)
    return msgspec.structs.replace(shape, affinity=tuple((*term, requirement) for term in terms))
