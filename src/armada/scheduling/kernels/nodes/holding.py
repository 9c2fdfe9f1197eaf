"""Holding room: what is free of a node is kept for one gang, until it has a place or the round is over.

What is held is free beside everything that runs, evicted jobs too, so that whoever was evicted can still return.
"""

from typing import NamedTuple

from armada.scheduling.kernels.compiled import kernel, part
from armada.scheduling.kernels.nodes.room import Nodes, change
from armada.scheduling.snapshot import Amounts, Rows


class Holds(NamedTuple):
    """Room held for gangs that have waited long (H holds): queue q's are `offsets[q]` to `offsets[q + 1]`.

    `job` [Q] is the first member of the gang that the queue's room is held for, or -1. `room` [H, R] is how much of
    `node` [H].
    """

    job: Rows
    offsets: Rows
    node: Rows
    room: Amounts


@kernel
def hold(nodes: Nodes, offered: Amounts, verdict: Rows, wanted: Amounts, room: Amounts) -> int:
    """Hold what is free, up to `wanted` [R], of the node that is nearest to having it all.

    Nodes are those that offer enough when empty (`offered` [N, R]) and whose type's `verdict` is negative; near is the
    scarcest resource's free part of what is wanted, and among equals the first. Returns the node, and writes how much
    is held to `room` [R]; -1 where no node has anything to hold.
    """
    best, nearest = -1, 0.0
    for node in range(nodes.type.shape[0]):
        if verdict[nodes.type[node]] >= 0 or nodes.overfull[node]:
            continue
        near = 1.0
        for resource in range(wanted.shape[0]):
            if wanted[resource] > offered[node, resource]:
                near = 0.0
            elif wanted[resource] > 0:
                near = min(near, float(nodes.free[0, node, resource]) / float(wanted[resource]))
        if near > nearest:
            best, nearest = node, near
    if best >= 0:
        for resource in range(wanted.shape[0]):
            room[resource] = max(0, min(wanted[resource], nodes.free[0, best, resource]))
        change(nodes, best, room, -1, 0, nodes.free.shape[0] - 1)
    return best


@part
def shift(nodes: Nodes, holds: Holds, queue: int, sign: int) -> None:
    """Give a queue's held room free (1), or hold it again (-1)."""
    for index in range(holds.offsets[queue], holds.offsets[queue + 1]):
        change(nodes, holds.node[index], holds.room[index], sign, 0, nodes.free.shape[0] - 1)
