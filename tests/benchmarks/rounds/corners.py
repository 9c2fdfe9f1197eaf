"""Rounds that are large in one way only: nothing to do, a gang that must agree, one preemption, an impossible queue."""

from typing import Final

import msgspec
import numpy as np

from armada.model.events import JobReprioritised
from armada.model.jobs import GangSpec, JobShape
from armada.state.ledger import Ledger
from armada.state.table import NONE
from tests.benchmarks.rounds import problems
from tests.benchmarks.rounds.columns import NOW_MS, Pool, entry, job_id, joined, work_of
from tests.benchmarks.rounds.pools import CLASS, SLOTS, UNIT, fleet, policy, shape

QUEUES: Final = tuple(f"q{number}" for number in range(10))
GANG: Final = 512
RACK: Final = 100
"""Nodes of one value of the label."""


def nothing_to_do(nodes: int, queued: int, shapes: int = 50) -> Pool:
    """A full even fleet that ten queues share evenly; what waits is of 50 shapes and finds no room."""
    running, waiting = np.arange(nodes * SLOTS), np.arange(queued)
    return Pool(
        name="nothing to do",
        policy=policy(),
        nodes=fleet(problems.even_fleet(nodes)),
        queues=QUEUES,
        shapes=(UNIT, *(shape(cpu=f"{100 + number}m", memory="1Gi") for number in range(shapes))),
        work=joined(
            work_of(running % 10, 0 * running, node=running // SLOTS),
            work_of(waiting % 10, 1 + waiting // 10 % shapes),
        ),
    )


class Changes:
    """A hundred queued jobs get another priority, each time other ones."""

    def __init__(self, ledger: Ledger, pool: Pool, count: int = 100) -> None:
        self._ledger = ledger
        self._count = count
        queue = np.sort(pool.work.queue, kind="stable")
        order = np.argsort(pool.work.queue, kind="stable")
        self._queued = np.flatnonzero(pool.work.node[order] == NONE)
        self._queue = queue
        self._names = pool.queues
        self._turn = 0

    def make(self) -> None:
        """Apply the changes to the ledger."""
        self._turn += 1
        step = len(self._queued) // self._count
        chosen = self._queued[self._turn % step :: step][: self._count]
        for number in chosen.tolist():
            event = JobReprioritised(at_ms=NOW_MS, job_id=job_id(number), priority=self._turn % 7)
            queue = self._names[self._queue[number]]
            self._ledger.apply(entry(self._ledger.position + 1, event, queue=queue))


def uniform_gang(nodes: int) -> Pool:
    """A gang of 512 whose members must be in one rack; half of every rack is taken, except in the last one by name."""
    machines = problems.accelerators(nodes)
    racks = sorted({one["labels"]["rack"] for one in machines})
    taken = [
        place for place, one in enumerate(machines) if one["labels"]["rack"] != racks[-1] and place % RACK < RACK // 2
    ]
    whole = shape(cpu="96", memory="700Gi", gpu="8")
    member = shape(cpu="12", memory="90Gi", gpu="1")
    held, members = np.array(taken, np.int32), np.zeros(GANG, np.int32)
    return Pool(
        name="gang of 512",
        policy=policy(),
        nodes=fleet(machines),
        queues=QUEUES,
        shapes=(
            msgspec.structs.replace(whole, priority_class="top400"),
            member,
        ),
        gangs=(GangSpec("g", GANG, "rack"),),
        work=joined(work_of(0 * held, 0 * held, node=held), work_of(members + 1, members + 1, gang=members)),
        priority=400,
    )


def one_preempts(nodes: int, jobs_a_node: int = 1) -> Pool:
    """One queue holds the whole fleet; one job of another needs as much as one of its jobs has."""
    running, one = np.arange(nodes * jobs_a_node), np.zeros(1, np.int32)
    piece = shape(cpu=str(SLOTS // jobs_a_node), memory="1Gi")
    return Pool(
        name="one preempts",
        policy=policy(),
        nodes=fleet(problems.even_fleet(nodes)),
        queues=QUEUES[:2],
        shapes=(piece,),
        work=joined(work_of(0 * running, 0 * running, node=running // jobs_a_node), work_of(one + 1, one)),
    )


def with_impossible_queue(pool: Pool, count: int, *, by_selector: bool) -> Pool:
    """The pool and one more queue, first by name, at whose head are so many shapes that no node can ever hold.

    They ask for too much, each for another amount; or, `by_selector`, for nodes that do not exist, each for another.
    """
    if by_selector:
        impossible = tuple(
            JobShape(UNIT.requests, CLASS, node_selector=(("rack", f"gone-{number}"),)) for number in range(count)
        )
    else:
        impossible = tuple(shape(cpu=f"{1_000_000 + number}m", memory="1Gi") for number in range(count))
    numbers = np.arange(count)
    return msgspec.structs.replace(
        pool,
        queues=("a", *pool.queues),
        shapes=(*pool.shapes, *impossible),
        work=joined(
            work_of(0 * numbers, len(pool.shapes) + numbers),
            pool.work._replace(queue=pool.work.queue + 1),
        ),
    )
