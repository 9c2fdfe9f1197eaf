"""The model turned into columns, from which `intake.build_snapshot` makes a round's input.

Work on Python objects is done once a node (`FleetTable`) and once a shape (`ShapeTable`); what is done for every round
is array work only. Arrays are copied on the way, so that their owner may go on changing them while a round runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.fleet import AwayNodeType, Node, PriorityClass, Queue, Taint
from armada.model.jobs import JobShape, Toleration
from armada.model.policy import PODS, SchedulingPolicy
from armada.model.resources import Vector, parse_quantity
from armada.scheduling.matching import NAME_FIELD, UNSCHEDULABLE, LabelColumn, PlacementRule
from armada.scheduling.snapshot import UNLIMITED, Amounts, Flags, Rows

Value = TypeVar("Value")

MAX_AMOUNT: Final = 2**55
"""No amount of a job goes beyond, so that sums of many stay within int64; none of a node reaches it, so that a job
whose request is held here fits nowhere."""


class QueueLine(msgspec.Struct, frozen=True, kw_only=True):
    """A queue and what the round must know of it: tokens left, a weight from elsewhere, short jobs' penalty.

    `holds`: its first queued job has waited so long that free room is held for it.
    """

    queue: Queue
    tokens: float = UNLIMITED
    burst: int = UNLIMITED
    weight_override: float | None = None
    penalty: Vector | None = None
    holds: bool = False


class QueuedJobs(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Queued jobs, queue by queue (`offsets`, in the order of the queues given), each queue's in serving order.

    Serving order: class priority descending, job priority ascending, submit order, id. `row` is the caller's own name
    for the job, `shape` an id of the `ShapeTable`, `gang` a row of `GangRows` or -1.
    """

    offsets: Amounts
    row: Rows
    shape: Rows
    gang: Rows


class RunningJobs(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Jobs that hold room or whose run belongs to the pool, in any order.

    `queue` is the place among the queues given; `node` the place in the fleet, or -1 for a node that takes no part.
    `priority` is the one scheduled at. `submitted` sorts by submit order. `kind` is HOME, AWAY, FOREIGN or ELSEWHERE
    (the last with node -1).
    """

    row: Rows
    shape: Rows
    queue: Rows
    gang: Rows
    node: Rows
    priority: Amounts
    job_priority: Amounts
    leased_ms: Amounts
    submitted: Amounts
    kind: Flags


class GangRows(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Gangs by row: how many members they have in all, and the label (a place in `labels`, or -1) that must agree."""

    cardinality: Rows
    label: Rows
    labels: tuple[str, ...] = ()


class OptimiserTurn(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """That the fairness optimiser takes part in a round: the time, and the submit order by the caller's rows."""

    now_ms: int
    submitted: Amounts


class FleetTable:
    """Nodes that may take part in a pool's rounds, as columns. Make a new one whenever one of the nodes changes.

    `total` and `allocatable` are [N, R]. A node's place in the table is its index order. `is_own` [N] marks the pool's
    own nodes; the others are borrowed.
    """

    def __init__(self, policy: SchedulingPolicy, pool: str, nodes: Sequence[Node]) -> None:
        self.pool = pool
        self.nodes = tuple(nodes)
        self.ids = tuple(node.node_id for node in self.nodes)
        kinds = policy.kinds()
        floating = {kind.name for kind in policy.floating_resources}
        self.on_nodes = np.array([name not in floating for name in kinds.names], np.bool_)
        on_nodes = self.on_nodes.astype(np.int64)
        self.total = _table((kinds.vector_down(node.total) for node in self.nodes), len(kinds)) * on_nodes
        taken = np.zeros_like(self.total)
        for index, node in enumerate(self.nodes):
            for quantities in node.unallocatable.values():
                taken[index] += np.minimum(np.array(kinds.vector_up(quantities), np.int64), MAX_AMOUNT) * on_nodes
        self.allocatable = self.total - taken
        self.rank = np.empty(len(self.nodes), np.int32)
        self.rank[sorted(range(len(self.ids)), key=self.ids.__getitem__)] = np.arange(len(self.nodes), dtype=np.int32)
        self.unschedulable = np.array([node.unschedulable for node in self.nodes], np.bool_)
        self.is_own = np.array([node.pool == pool for node in self.nodes], np.bool_)
        self.taint_sets: list[tuple[Taint, ...]] = []
        self.taint_set = self._interned_taints()
        self.lane = self._lanes(policy)
        self._labels: dict[str, LabelColumn] = {}
        self.verdicts: dict[Any, Any] = {}
        self.judgements: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def label(self, key: str) -> LabelColumn:
        """Return a label's column; values are sorted. A key of NUL and NAME_FIELD stands for the nodes' names."""
        column = self._labels.get(key)
        if column is None:
            if key == f"\0{NAME_FIELD}":
                texts: list[str | None] = [node.name for node in self.nodes]
            else:
                texts = [node.labels.get(key) for node in self.nodes]
            values = tuple(sorted({text for text in texts if text is not None}))
            places = {value: index for index, value in enumerate(values)}
            code = np.array([-1 if text is None else places[text] for text in texts], np.int32)
            column = self._labels[key] = LabelColumn(code, values, places)
        return column

    def taint_sets_with(self, shut: Flags) -> tuple[list[tuple[Taint, ...]], Rows]:
        """Return the taint lists and each node's, when nodes marked in `shut` take no new work besides those marked."""
        sets, own = list(self.taint_sets), self.taint_set
        if not shut.any():
            return sets, own
        places = {taints: index for index, taints in enumerate(sets)}
        shifted = own.copy()
        for index in np.flatnonzero(shut):
            taints = sets[own[index]]
            if UNSCHEDULABLE not in taints:
                taints = (*taints, UNSCHEDULABLE)
            place = places.setdefault(taints, len(sets))
            if place == len(sets):
                sets.append(taints)
            shifted[index] = place
        return sets, shifted

    def _interned_taints(self) -> Rows:
        places: dict[tuple[Taint, ...], int] = {}
        rows = np.empty(len(self.nodes), np.int32)
        for index, node in enumerate(self.nodes):
            taints = (*node.taints, UNSCHEDULABLE) if node.unschedulable else node.taints
            rows[index] = places.setdefault(taints, len(places))
        self.taint_sets = list(places)
        return rows

    def _lanes(self, policy: SchedulingPolicy) -> Rows:
        places: dict[Any, int] = {}
        rows = np.empty(len(self.nodes), np.int32)
        wanted = policy.indexed_taints
        kept = [
            tuple(sorted(taint for taint in taints if wanted is None or taint.key in wanted))
            for taints in self.taint_sets
        ]
        for index, node in enumerate(self.nodes):
            labels = tuple(node.labels.get(key) for key in policy.indexed_node_labels)
            rows[index] = places.setdefault((kept[self.taint_set[index]], labels), len(places))
        return rows


class _Slots(Generic[Value]):
    """Equal values share a slot; a slot is used again when its last holder has let go. `epoch` counts such changes."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.epoch = 0
        self._slots: dict[Value, int] = {}
        self._holders: list[int] = []
        self._free: list[int] = []

    def hold(self, value: Value) -> int:
        slot = self._slots.get(value)
        if slot is None:
            if self._free:
                slot = self._free.pop()
                self.values[slot] = value
                self.epoch += 1
            else:
                slot = len(self.values)
                self.values.append(value)
                self._holders.append(0)
            self._slots[value] = slot
        self._holders[slot] += 1
        return slot

    def release(self, slot: int) -> bool:
        """Let go of a slot; say whether nobody holds it any more."""
        self._holders[slot] -= 1
        if self._holders[slot]:
            return False
        del self._slots[self.values[slot]]
        self._free.append(slot)
        return True


class _Kind(msgspec.Struct, frozen=True):
    """What the scheduler sees of a shape: amounts in column units, the class's row, the rule's slot, away entries."""

    request: Vector
    class_row: int
    rule: int
    away: tuple[tuple[int, int, int], ...]


class ShapeTable:
    """Shapes as columns, by the ids that their owner gives them: append-only but for `replace`. It serves all rounds.

    Shapes that say the same in other words (`1` and `1000m`, tolerations in another order) are one *kind*: a round
    knows kinds only. The pool's default tolerations are not in here: `build_snapshot` adds them, once for each rule.
    """

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._policy = policy
        self._resources = policy.kinds()
        self._classes = {kind.name: row for row, kind in enumerate(policy.priority_classes)}
        self._default_class = self._classes[policy.default_priority_class]
        self._taints = {kind.name: kind.taints for kind in policy.well_known_node_types}
        self._pods = self._resources.index(PODS) if policy.respects_node_pod_limits else None
        self._count = 0
        self._kind = np.zeros(64, np.int32)
        self._kinds: _Slots[_Kind] = _Slots()
        self._rules: _Slots[PlacementRule] = _Slots()
        self._request = np.zeros((64, len(self._resources)), np.int64)
        self._class_row = np.zeros(64, np.int32)
        self._rule = np.zeros(64, np.int32)
        self.away: dict[int, tuple[tuple[int, int, int], ...]] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def kind(self) -> Rows:
        """Each shape's kind, by id of the shape."""
        return self._kind[: self._count]

    @property
    def request(self) -> Amounts:
        """What each kind asks for [kinds, R]."""
        return self._request[: len(self._kinds.values)]

    @property
    def class_row(self) -> Rows:
        """Each kind's priority class, as a place in the policy's list."""
        return self._class_row[: len(self._kinds.values)]

    @property
    def rule(self) -> Rows:
        """Each kind's placement rule, a place in `rules`."""
        return self._rule[: len(self._kinds.values)]

    @property
    def rules(self) -> list[PlacementRule]:
        """The distinct rules; some may be out of use."""
        return self._rules.values

    @property
    def rules_epoch(self) -> int:
        """A number that changes when a place in `rules` gets another rule."""
        return self._rules.epoch

    def extend(self, shapes: Iterable[JobShape]) -> None:
        """Add shapes; the first gets the id `len(self)`."""
        for shape in shapes:
            if self._count == len(self._kind):
                self._kind = _doubled(self._kind)
            self._kind[self._count] = self._hold(shape)
            self._count += 1

    def replace(self, row: int, shape: JobShape) -> None:
        """Put another shape in the place of one that no job has any more."""
        former = int(self._kind[row])
        self._kind[row] = self._hold(shape)
        kind = self._kinds.values[former]
        if self._kinds.release(former):
            self.away.pop(former, None)
            for rule in (kind.rule, *(entry[0] for entry in kind.away)):
                self._rules.release(rule)

    def _hold(self, shape: JobShape) -> int:
        kind = self._read(shape)
        before = len(self._kinds.values), self._kinds.epoch
        slot = self._kinds.hold(kind)
        if before == (len(self._kinds.values), self._kinds.epoch):
            for rule in (kind.rule, *(entry[0] for entry in kind.away)):
                self._rules.release(rule)
            return slot
        if slot == len(self._rule):
            self._request = _doubled(self._request)
            self._class_row = _doubled(self._class_row)
            self._rule = _doubled(self._rule)
        self._request[slot] = kind.request
        self._class_row[slot] = kind.class_row
        self._rule[slot] = kind.rule
        if kind.away:
            self.away[slot] = kind.away
        return slot

    def _read(self, shape: JobShape) -> _Kind:
        """Return the kind of a shape; its rules are held once more."""
        request = [max(0, min(MAX_AMOUNT, amount)) for amount in self._resources.vector_up(shape.requests)]
        if self._pods is not None:
            request[self._pods] = 1
        class_row = self._classes.get(shape.priority_class, self._default_class)
        unknown = self._resources.unknown(shape.requests)
        rule = PlacementRule(
            tolerations=tuple(sorted(set(shape.tolerations))),
            node_selector=shape.node_selector,
            affinity=shape.affinity,
            impossible=f"there is no resource {', '.join(unknown)}" if unknown else "",
        )
        own = self._rules.hold(rule)
        priority_class = self._policy.priority_classes[class_row]
        away = self._away_entries(priority_class, shape, rule) if priority_class.away_node_types else ()
        return _Kind(tuple(request), class_row, own, away)

    def _away_entries(
        self,
        priority_class: PriorityClass,
        shape: JobShape,
        rule: PlacementRule,
    ) -> tuple[tuple[int, int, int], ...]:
        """Return (rule, priority, entry) for each fall-back that is open to the shape, in order."""
        requests = dict(shape.requests)
        entries = []
        for index, entry in enumerate(priority_class.away_node_types):
            added = away_tolerations(entry, requests, self._taints)
            if added:
                widened = msgspec.structs.replace(rule, tolerations=tuple(sorted({*rule.tolerations, *added})))
                entries.append((self._rules.hold(widened), entry.priority, index))
        return tuple(entries)


def away_tolerations(
    entry: AwayNodeType, requests: Mapping[str, str], taints: Mapping[str, tuple[Taint, ...]]
) -> tuple[Toleration, ...]:
    """Return what a job with these requests tolerates besides its own where it goes by this entry; () if it may not.

    `taints` are those of the well-known node types, by name.
    """
    added = {
        Toleration(taint.key, "Exists" if taint.value == "*" else "Equal", _plain(taint.value), taint.effect)
        for reference in entry.node_types
        if all(_holds(requests, one.resource, one.operator, one.value) for one in reference.conditions)
        for taint in taints[reference.name]
    }
    return tuple(sorted(added))


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((column, np.zeros_like(column)))


def _plain(value: str) -> str:
    return "" if value == "*" else value


def _holds(requests: Mapping[str, str], resource: str, operator: str, value: str) -> bool:
    """Evaluate one condition of an away node type, exactly (defect 2 of the reference is not repeated)."""
    amount = parse_quantity(requests.get(resource, "0"))
    bound = parse_quantity(value)
    if operator == "==":
        return amount == bound
    return amount > bound if operator == ">" else amount < bound


def _table(vectors: Iterable[Vector], width: int) -> Amounts:
    rows = [tuple(max(-MAX_AMOUNT, min(MAX_AMOUNT - 1, amount)) for amount in vector) for vector in vectors]
    return np.array(rows, np.int64).reshape(len(rows), width)
