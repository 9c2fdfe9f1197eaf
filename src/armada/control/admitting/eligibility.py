"""Can a job ever run, and in which pools? Asked once for each job, on the fleet as if it were empty.

A no is given only by known capacity: all nodes of a pool count, also those that are cordoned, busy, or of an executor
that is silent just now. A pool without any node is not known yet, so a job that could only go there waits.

Pools are asked in order. One is passed over when a pool whose nodes it may use said yes already. A yes of one pool is
the yes of its whole submission group. Where a job fits only as a guest on special nodes, that counts in pools that
have away pools, and in no other.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from armada.model.fleet import Node, Queue
from armada.model.jobs import GangSpec, JobShape
from armada.model.policy import NO_LIMIT, PoolPolicy, RateLimit, SchedulingPolicy
from armada.model.resources import NANO_PER_UNIT
from armada.scheduling.decisions import Method
from armada.scheduling.intake import build_snapshot
from armada.scheduling.matching import FITS
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import UNLIMITED, Amounts, PoolSnapshot
from armada.scheduling.tables import FleetTable, GangRows, QueuedJobs, QueueLine, RunningJobs, ShapeTable
from armada.state.holdings.jobs import avoiding
from armada.state.ledger import Ledger

MAX_ANSWERS_KEPT: Final = 10_000
_CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"
_BINARY_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class Verdict(msgspec.Struct, frozen=True):
    """The answer for a job or gang: pools it can run in, else what speaks against each.

    `is_final` is False where the answer is no only because the capacity of a pool is not known yet; `reason` then says
    what is being waited for. `refused` are the pools that said no or were passed over, where others said yes.
    """

    pools: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    is_final: bool = True
    reason: str = ""

    @property
    def is_possible(self) -> bool:
        """True when the job can run somewhere."""
        return bool(self.pools)


Members = Sequence[tuple[JobShape, GangSpec]]
"""A gang's members, each with what it says about the gang."""


class Eligibility:
    """Answers for shapes in queues, remembered until the fleet or the queue's limits change."""

    def __init__(self, policy: SchedulingPolicy) -> None:
        self._policy = _unhindered(policy)
        self._kinds = policy.kinds()
        self._fleet_version = -1
        self._nodes: dict[str, list[Node]] = {}
        self._tables: dict[str, FleetTable] = {}
        self._answers: dict[tuple[object, ...], tuple[Queue, Verdict]] = {}
        self._shapes = ShapeTable(policy)
        self._shape_ids: dict[JobShape, int] = {}

    def refresh(self, ledger: Ledger) -> None:
        """Look at the fleet again where it has changed."""
        if ledger.fleet_version == self._fleet_version:
            return
        self._fleet_version = ledger.fleet_version
        self._tables.clear()
        self._answers.clear()
        self._nodes = {}
        for record in ledger.executors.values():
            for node in record.nodes:
                self._nodes.setdefault(node.pool, []).append(_as_if_free(node))

    def judge(self, queue: Queue, shape: JobShape, pools: tuple[str, ...] | None = None) -> Verdict:
        """Answer for one job of this shape (after `refresh`); `pools` restricts it, None means all."""
        return self._remembered((queue.name, shape, pools), queue, [shape], pools)

    def judged_pools(self, queue: str, shape: JobShape, pools: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Return the pools that jobs were last judged to be able to run in; None where they were not judged lately."""
        known = self._answers.get((queue, shape, pools))
        return known[1].pools if known is not None else None

    def judge_gang(self, queue: Queue, shapes: Sequence[JobShape], pools: tuple[str, ...] | None = None) -> Verdict:
        """Answer for a complete gang, whose members have to run at the same time in one pool."""
        counts: dict[JobShape, int] = {}
        for shape in shapes:
            counts[shape] = counts.get(shape, 0) + 1
        key = (queue.name, tuple(counts.items()), pools)
        return self._remembered(key, queue, list(shapes), pools)

    def judge_members(self, queue: Queue, members: Members, pools: tuple[str, ...] | None = None) -> Verdict:
        """Answer for the members that a gang has so far: each has to fit alone, and all of them at the same time."""
        if fault := _disagreement(members):
            return Verdict(reason=fault)
        for shape, _ in members:
            verdict = self.judge(queue, shape, pools)
            if not verdict.is_possible:
                return verdict
        return self.judge_gang(queue, [shape for shape, _ in members], pools)

    def can_run(self, queue: Queue, shape: JobShape, pools: tuple[str, ...] | None, avoid: tuple[str, ...]) -> bool:
        """Say if a job can run on a node other than these (values of the node id label), or may do so in future."""
        elsewhere = avoiding(shape, avoid, self._policy.node_id_label) if avoid else shape
        verdict = self.judge(queue, elsewhere, pools)
        return verdict.is_possible or not verdict.is_final

    def _remembered(
        self, key: tuple[object, ...], queue: Queue, shapes: list[JobShape], pools: tuple[str, ...] | None
    ) -> Verdict:
        """Return the answer for a key, found out when it is new or the queue is another object than it was."""
        asked_for, answer = self._answers.get(key, (None, None))
        if answer is None or asked_for is not queue:
            if len(self._answers) >= MAX_ANSWERS_KEPT:
                self._answers.clear()
                # What the fleet's tables remember of shapes goes by their numbers.
                self._tables.clear()
                self._shapes, self._shape_ids = ShapeTable(self._policy), {}
            answer = self._judged(queue, shapes, pools)
            self._answers[key] = (queue, answer)
        return answer

    def _judged(self, queue: Queue, shapes: list[JobShape], pools: tuple[str, ...] | None) -> Verdict:
        unknown = self._kinds.unknown({name: quantity for shape in shapes for name, quantity in shape.requests})
        if unknown:
            return Verdict(reason=f"there is no resource {', '.join(unknown)}: no node can ever offer it")
        configured = [pool.name for pool in self._policy.pools]
        wanted = pools if pools is not None else tuple(dict.fromkeys([*configured, *self._nodes]))
        possible: list[str] = []
        objections: list[str] = []
        unseen: list[str] = []
        refused: list[str] = []
        for name in wanted:
            pool = self._policy.pool(name) or PoolPolicy(name=name)
            table = self._table(pool)
            if name in possible:
                continue
            if any(other in possible for other in pool.away_pools):
                refused.append(name)
            elif not len(table):
                unseen.append(name)
            elif objection := self._objection(pool, table, queue, shapes):
                objections.append(f"pool {name}: {objection}")
                refused.append(name)
            else:
                possible += [other for other in self._group(pool) if other in wanted and other not in possible]
        if possible:
            return Verdict(pools=tuple(possible), refused=tuple(name for name in refused if name not in possible))
        if unseen or not wanted:
            names = ", ".join(unseen)
            objections.append(f"no capacity of pool {names} is known yet" if unseen else "no pool is known yet")
        return Verdict(is_final=not unseen and bool(wanted), reason="\n".join(objections))

    def _group(self, pool: PoolPolicy) -> list[str]:
        """Return the pool and those that share its verdicts."""
        group = pool.submission_group or pool.name
        others = [one.name for one in self._policy.pools if (one.submission_group or one.name) == group]
        return [pool.name, *(name for name in others if name != pool.name)]

    def _table(self, pool: PoolPolicy) -> FleetTable:
        table = self._tables.get(pool.name)
        if table is None:
            nodes = [node for name in (pool.name, *pool.away_pools) for node in self._nodes.get(name, ())]
            table = self._tables[pool.name] = FleetTable(self._policy, pool.name, nodes)
        return table

    def _objection(self, pool: PoolPolicy, table: FleetTable, queue: Queue, shapes: list[JobShape]) -> str:
        """Say why these jobs, together, can't run in a pool of empty nodes; empty when they can."""
        snapshot = self._empty_pool(table, queue, shapes)
        if objection := self._over_limit(snapshot):
            return objection
        for row in range(len(set(shapes))):
            if objection := self._fits_nowhere(snapshot, row, allows_away=bool(pool.away_pools)):
                return objection
        if len(shapes) == 1:
            return ""
        leases = schedule(snapshot).leases
        if len(leases.row) < len(shapes):
            return f"the {len(shapes)} members of the gang don't fit at the same time"
        if Method.AWAY in leases.method and not pool.away_pools:
            return f"the {len(shapes)} members of the gang fit at the same time only as guests on special nodes"
        return ""

    def _empty_pool(self, table: FleetTable, queue: Queue, shapes: Sequence[JobShape]) -> PoolSnapshot:
        """A round in which nothing runs and only these jobs wait, as one gang without a uniformity label."""
        for shape in shapes:
            if shape not in self._shape_ids:
                self._shape_ids[shape] = len(self._shapes)
                self._shapes.extend([shape])
        count = len(shapes)
        queued = QueuedJobs(
            offsets=np.array([0, count], np.int64),
            row=np.arange(count, dtype=np.int32),
            shape=np.array([self._shape_ids[shape] for shape in shapes], np.int32),
            gang=np.full(count, 0 if count > 1 else -1, np.int32),
        )
        return build_snapshot(
            self._policy,
            table.pool,
            fleet=table,
            shapes=self._shapes,
            queues=[QueueLine(queue=msgspec.structs.replace(queue, cordoned=False))],
            queued=queued,
            running=_nothing_runs(),
            gangs=GangRows(cardinality=np.array([count], np.int32), label=np.array([-1], np.int32)),
        )

    def _over_limit(self, snapshot: PoolSnapshot) -> str:
        request = snapshot.shapes.request[snapshot.queued.shape].sum(axis=0)
        limit = snapshot.queues.limit[0, int(snapshot.shapes.class_row[0])]
        for column, name in enumerate(snapshot.rules.resources):
            asked = int(request[column])
            if snapshot.rules.floating[column] and asked > snapshot.rules.total[column]:
                return self._text(
                    f"{{}} {name} asked for, the pool has {{}}", column, asked, snapshot.rules.total[column]
                )
            if asked > int(limit[column]):
                text = f"{{}} {name} asked for, the queue may hold {{}} in this priority class"
                return self._text(text, column, asked, int(limit[column]))
            if asked and snapshot.rules.unscheduled[column]:
                return f"{name} can't be scheduled in this pool"
        return ""

    def _text(self, text: str, column: int, *amounts: int) -> str:
        name, unit = self._kinds.names[column], 10 ** self._kinds.exponents[column]
        return text.format(*(readable(name, amount * unit) for amount in amounts))

    def _fits_nowhere(self, snapshot: PoolSnapshot, row: int, *, allows_away: bool) -> str:
        """Say why one shape fits no empty node, counting nodes by reason; empty when it fits one."""
        shapes, nodes = snapshot.shapes, snapshot.nodes
        rules = [int(shapes.rule[row])] if snapshot.rules.home_scheduling else []
        if allows_away and snapshot.rules.away_scheduling:
            rules += shapes.away_rule[shapes.away_offsets[row] : shapes.away_offsets[row + 1]].tolist()
        request = shapes.request[row] * ~np.array(snapshot.rules.floating)
        has_room = (nodes.allocatable >= request).all(axis=1)
        if any(bool((has_room & (shapes.verdict[rule][nodes.type] == FITS)).any()) for rule in rules):
            return ""
        verdicts = shapes.verdict[int(shapes.rule[row])][nodes.type]
        reasons = [
            (int((verdicts == code).sum()), shapes.texts[int(code)]) for code in np.unique(verdicts) if code != FITS
        ]
        open_nodes = nodes.allocatable[verdicts == FITS]
        if len(open_nodes):
            reasons.append((len(open_nodes), self._shortage(request, open_nodes)))
        return "; ".join(
            f"{count} of {len(nodes.ids)} nodes: {reason}" for count, reason in sorted(reasons, reverse=True)
        )

    def _shortage(
        self,
        request: Amounts,
        offered: Amounts,
    ) -> str:
        largest = offered.max(axis=0)
        short = [
            self._text(
                f"{{}} {name} asked for, the largest node offers {{}}",
                column,
                int(request[column]),
                int(largest[column]),
            )
            for column, name in enumerate(self._kinds.names)
            if request[column] > largest[column]
        ]
        return " and ".join(short) or "none offers all that is asked for at once"


def _as_if_free(node: Node) -> Node:
    taints = tuple(taint for taint in node.taints if taint.key != _CORDON_TAINT)
    return msgspec.structs.replace(node, unschedulable=False, taints=taints)


def _unhindered(policy: SchedulingPolicy) -> SchedulingPolicy:
    """Return the policy without what may hold a job back for a while, and without prices: trials have none."""
    pools = tuple(
        msgspec.structs.replace(pool, market=None, optimiser=None, preemption_limit=None) for pool in policy.pools
    )
    return msgspec.structs.replace(
        policy,
        pools=pools,
        rate=RateLimit(),
        max_queue_lookback=NO_LIMIT,
        max_round_fractions={},
        max_round_fractions_by_pool={},
    )


def _disagreement(members: Members) -> str:
    """Say what members of one gang tell differently; empty when they agree."""
    _, gang = members[0]
    classes = dict.fromkeys(shape.priority_class for shape, _ in members)
    if len(classes) > 1:
        return f"the members of gang {gang.id} have different priority classes: {', '.join(classes)}"
    if any(other != gang for _, other in members):
        return f"the members of gang {gang.id} differ in its cardinality or its node uniformity label"
    if len(members) > gang.cardinality:
        return f"gang {gang.id} has {len(members)} members, more than its cardinality {gang.cardinality}"
    return ""


def _nothing_runs() -> RunningJobs:
    small, large = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return RunningJobs(
        row=small,
        shape=small,
        queue=small,
        gang=small,
        node=small,
        priority=large,
        job_priority=large,
        leased_ms=large,
        submitted=large,
        kind=np.zeros(0, np.uint8),
    )


def readable(resource: str, nano: int) -> str:
    """Write an amount for people: memory and storage in binary units, others as plain numbers of up to 3 decimals."""
    if nano >= UNLIMITED * NANO_PER_UNIT:
        return "any amount of"
    value = nano / NANO_PER_UNIT
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        unit = 0
        while value >= 1024 and unit < len(_BINARY_UNITS) - 1:
            value, unit = value / 1024, unit + 1
        return f"{value:.4g}{_BINARY_UNITS[unit]}"
    return f"{value:.3f}".rstrip("0").rstrip(".")
