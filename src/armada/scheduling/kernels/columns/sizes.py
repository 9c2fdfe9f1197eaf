"""Sizes: which nodes a rule leaves, and which shapes fit none of them even when nothing runs there.

Nodes of one type that offer the same are one *size*. A fleet of too many sizes keeps one for each type, as large as the
largest of its nodes in every resource: then a shape that fits nowhere may be taken for one that fits, never the other
way round.
"""

from armada.scheduling.kernels.compiled import kernel
from armada.scheduling.snapshot import Amounts, Flags, Rows

SLOTS = 256
"""Places of the hash table of sizes, a power of 2; half of them may be filled."""
_MULTIPLIER = 1_000_003
_MASK = 2**40 - 1


@kernel
def find_sizes(type_of: Rows, allocatable: Amounts, size_type: Rows, size_room: Amounts, slots: Rows) -> int:
    """Find the sizes of nodes [N]; return their number.

    Args:
        type_of: each node's type.
        allocatable: what each node offers [N, R].
        size_type: the type of each size; room for as many as there are types, and half of SLOTS besides.
        size_room: what each size offers [sizes, R].
        slots: scratch [SLOTS], all -1.
    """
    width = allocatable.shape[1]
    count = 0
    for node in range(type_of.shape[0]):
        code = int(type_of[node]) + 1
        for resource in range(width):
            code = ((code * _MULTIPLIER) & _MASK) ^ (allocatable[node, resource] & _MASK)
        slot = (code ^ (code >> 20)) & (SLOTS - 1)
        while slots[slot] >= 0:
            size = slots[slot]
            same = size_type[size] == type_of[node]
            for resource in range(width):
                same = same and size_room[size, resource] == allocatable[node, resource]
            if same:
                break
            slot = (slot + 1) & (SLOTS - 1)
        if slots[slot] >= 0:
            continue
        if 2 * count >= SLOTS:
            return _largest_by_type(type_of, allocatable, size_type, size_room)
        slots[slot] = count
        size_type[count] = type_of[node]
        for resource in range(width):
            size_room[count, resource] = allocatable[node, resource]
        count += 1
    return count


@kernel
def _largest_by_type(type_of: Rows, allocatable: Amounts, size_type: Rows, size_room: Amounts) -> int:
    count = 0
    for node in range(type_of.shape[0]):
        count = max(count, type_of[node] + 1)
    for size in range(count):
        size_type[size] = size
        for resource in range(size_room.shape[1]):
            size_room[size, resource] = -1
    for node in range(type_of.shape[0]):
        for resource in range(size_room.shape[1]):
            room = size_room[type_of[node], resource]
            size_room[type_of[node], resource] = max(room, allocatable[node, resource])
    return count


@kernel
def mark_hopeless(
    wanted: Amounts,
    rule: Rows,
    away_offsets: Rows,
    away_rule: Rows,
    verdict: Rows,
    size_type: Rows,
    size_room: Amounts,
    sizes: int,
    hopeless: Flags,
) -> None:
    """Mark the shapes [S] that fit no size of node at all, neither at home nor away."""
    latest = 0
    for shape in range(rule.shape[0]):
        hopeless[shape] = 1
        for entry in range(away_offsets[shape] - 1, away_offsets[shape + 1]):
            own = rule[shape] if entry < away_offsets[shape] else away_rule[entry]
            for turn in range(sizes):
                # Shapes that follow each other often fit the same nodes.
                size = latest + turn if latest + turn < sizes else latest + turn - sizes
                if verdict[own, size_type[size]] >= 0:
                    continue
                fits = True
                for resource in range(wanted.shape[1]):
                    if wanted[shape, resource] > size_room[size, resource]:
                        fits = False
                        break
                if fits:
                    latest = size
                    hopeless[shape] = 0
                    break
            if not hopeless[shape]:
                break


@kernel
def count_nodes(verdict: Rows, nodes_of_type: Amounts, few: int, counts: Amounts) -> None:
    """Count for each rule the nodes that it accepts, into `counts`; where they are more than `few`, -1."""
    for rule in range(verdict.shape[0]):
        count = 0
        for kind in range(verdict.shape[1]):
            if verdict[rule, kind] < 0:
                count += nodes_of_type[kind]
        counts[rule] = count if count <= few else -1


@kernel
def list_nodes(verdict: Rows, first: Amounts, by_type: Amounts, offsets: Rows, listed: Rows) -> None:
    """List each rule's nodes in `listed` from `offsets[rule]` on, ascending, unless it has no room there.

    `by_type` are all nodes sorted by type, those of type t from `first[t]` to `first[t + 1]`.
    """
    for rule in range(verdict.shape[0]):
        end = offsets[rule]
        if end == offsets[rule + 1]:
            continue
        for kind in range(verdict.shape[1]):
            if verdict[rule, kind] >= 0:
                continue
            for place in range(first[kind], first[kind + 1]):
                goal = end
                while goal > offsets[rule] and listed[goal - 1] > by_type[place]:
                    listed[goal] = listed[goal - 1]
                    goal -= 1
                listed[goal] = by_type[place]
                end += 1
