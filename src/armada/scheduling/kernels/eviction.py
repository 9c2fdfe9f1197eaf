"""Eviction: taking running jobs off their nodes for the time of the round, gangs whole."""

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import Books, enter, share
from armada.scheduling.kernels.compiled import kernel
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.kernels.nodes.room import Nodes, change
from armada.scheduling.snapshot import Amounts, Flags, Floats


@kernel
def bind_running(jobs: Jobs, shapes: Shapes, nodes: Nodes) -> None:
    """Take the room of every running job: buckets up to its own, all of them when it can never be displaced."""
    highest = nodes.free.shape[0] - 1
    for job in range(jobs.running):
        if jobs.node[job] >= 0:
            shape = jobs.shape[job]
            solid = not shapes.preemptible[shapes.class_row[shape]]
            change(nodes, jobs.node[job], shapes.wanted[shape], -1, 0, highest if solid else jobs.bucket[job])


@kernel
def mark_unprotected(jobs: Jobs, shapes: Shapes, protected: Flags, can_evict: Flags, marked: Flags) -> None:
    """Mark preemptible running jobs of queues that are not protected."""
    for job in range(jobs.running):
        if jobs.node[job] >= 0 and can_evict[job] and not protected[jobs.queue[job]]:
            marked[job] = shapes.preemptible[shapes.class_row[jobs.shape[job]]]


@kernel
def mark_excess(
    jobs: Jobs,
    shapes: Shapes,
    books: Books,
    offsets: Amounts,
    protected: Flags,
    kept: Floats,
    left: Amounts,
    can_evict: Flags,
    marked: Flags,
) -> None:
    """Mark preemptible running jobs of queues that are not protected, until what is left is worth `kept` [Q] or less.

    Each queue gives the jobs that it would serve last; its running jobs are `offsets[q]` to `offsets[q + 1]`. `left`
    [Q, R] comes as what the queues hold.
    """
    for queue in range(offsets.shape[0] - 1):
        if protected[queue]:
            continue
        for job in range(offsets[queue + 1] - 1, offsets[queue] - 1, -1):
            if share(books.total, books.multiplier, left[queue]) <= kept[queue]:
                break
            shape = jobs.shape[job]
            if jobs.node[job] >= 0 and can_evict[job] and shapes.preemptible[shapes.class_row[shape]]:
                marked[job] = 1
                for resource in range(left.shape[1]):
                    left[queue, resource] -= shapes.request[shape, resource]


@kernel
def mark_oversubscribed(
    jobs: Jobs, shapes: Shapes, nodes: Nodes, can_evict: Flags, marked: Flags, spares_overfull: bool
) -> bool:
    """Mark jobs bound at exactly a bucket of which their node has given out more than it has. Say if there are any.

    `spares_overfull` leaves nodes alone that were overfull before the round: they stay so, whoever returns.
    """
    any_marked = False
    for job in range(jobs.node.shape[0]):
        node = jobs.node[job]
        if node < 0 or jobs.state[job] != codes.RUNS or not can_evict[job]:
            continue
        if spares_overfull and nodes.overfull[node]:
            continue
        if not shapes.preemptible[shapes.class_row[jobs.shape[job]]]:
            continue
        for resource in range(nodes.free.shape[2]):
            if nodes.free[jobs.bucket[job], node, resource] < 0:
                marked[job] = 1
                any_marked = True
                break
    return any_marked


@kernel
def mark_gangs(jobs: Jobs, can_evict: Flags, in_gang: Flags, marked: Flags) -> None:
    """Mark the other members of every gang that has one marked; `in_gang` [G] is scratch, all zero."""
    for job in range(jobs.node.shape[0]):
        if marked[job] and jobs.gang[job] >= 0:
            in_gang[jobs.gang[job]] = 1
    for job in range(jobs.node.shape[0]):
        sits = jobs.node[job] >= 0 and jobs.state[job] == codes.RUNS and can_evict[job]
        if sits and jobs.gang[job] >= 0 and in_gang[jobs.gang[job]]:
            marked[job] = 1


@kernel
def evict(jobs: Jobs, shapes: Shapes, nodes: Nodes, books: Books, marked: Flags) -> None:
    """Evict the marked jobs: their room is free again in every bucket but the lowest.

    What can't be preempted keeps its room: it takes part only to have its turn.
    """
    for job in range(jobs.node.shape[0]):
        if not marked[job]:
            continue
        shape = jobs.shape[job]
        class_row = shapes.class_row[shape]
        jobs.state[job] = codes.EVICTED
        if shapes.preemptible[class_row]:
            change(nodes, jobs.node[job], shapes.wanted[shape], 1, 1, jobs.bucket[job])
        enter(books, jobs.queue[job], class_row, shapes.request[shape], -1)
