"""Victims: evicted jobs that have not returned, and which of them make room at the least regret.

Evicted jobs are numbered in the order in which they are expected to return (their *place*). A job that finds no free
room takes it from those that would return last: walking the places from the end, room adds up node by node until the
job fits on one. A walk that gets long is replaced by a heap that one kind of request keeps: for every node the place
at which the walk would stop there. Such a place can only fall while room shrinks, so that stale entries are corrected
when they reach the top; where room may have grown, the node is logged as `freed` and entered anew.
"""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.compiled import kernel, part
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.kernels.nodes.room import Nodes, change
from armada.scheduling.snapshot import Amounts, Flags, Rows


class Victims(NamedTuple):
    """Evicted jobs (E) by place. `before` and `after` link those that are still out; place E is both ends.

    `offsets[node]` to `offsets[node + 1]` are a node's places in `on_node`, last expected first. `sibling` chains the
    members of a gang from `gang_start`. `freed` is a ring of nodes whose room may have grown. `heap_*` [H, ...]:
    the kept heaps, each for one (shape, rule, bucket).
    """

    job: Rows
    place_of: Rows
    is_out: Flags
    before: Rows
    after: Rows
    offsets: Rows
    on_node: Rows
    sibling: Rows
    gang_start: Rows
    stamp: Amounts
    gathered: Amounts
    clock: Amounts
    freed: Rows
    freed_count: Amounts
    heap_place: Rows
    heap_node: Rows
    heap_size: Amounts
    heap_kind: Amounts
    heap_cursor: Amounts
    heap_used: Amounts
    longest_walk: int


@kernel
def link(jobs: Jobs, victims: Victims) -> None:
    """Link all places, and the members of every gang."""
    end = victims.job.shape[0]
    for place in range(end + 1):
        victims.before[place] = place - 1 if place > 0 else end
        victims.after[place] = place + 1 if place < end else 0
    for place in range(end):
        job = victims.job[place]
        victims.place_of[job] = place
        gang = jobs.gang[job]
        if gang >= 0:
            victims.sibling[place] = victims.gang_start[gang]
            victims.gang_start[gang] = place


@part
def unlink(victims: Victims, place: int) -> None:
    """Take a place out of the walk."""
    before, after = victims.before[place], victims.after[place]
    victims.after[before] = after
    victims.before[after] = before
    victims.is_out[place] = 0


@part
def relink(victims: Victims, place: int) -> None:
    """Put a place back into the walk; undoes the latest `unlink` that was not undone."""
    victims.after[victims.before[place]] = place
    victims.before[victims.after[place]] = place
    victims.is_out[place] = 1


@part
def log_freed(victims: Victims, node: int) -> None:
    """Note that room on the node may have grown."""
    victims.freed[victims.freed_count[0] % victims.freed.shape[0]] = node
    victims.freed_count[0] += 1


@part
def stop_on_node(jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, node: int, shape: int, bucket: int) -> int:
    """Return the place at which the walk would have room enough on this node, or -1."""
    room = victims.gathered[node]
    width = room.shape[0]
    for resource in range(width):
        room[resource] = nodes.free[0, node, resource]
    for index in range(victims.offsets[node], victims.offsets[node + 1]):
        place = victims.on_node[index]
        job = victims.job[place]
        if not victims.is_out[place] or jobs.bucket[job] > bucket:
            continue
        enough = True
        for resource in range(width):
            room[resource] += shapes.wanted[jobs.shape[job], resource]
            if shapes.wanted[shape, resource] > room[resource]:
                enough = False
        if enough:
            return int(place)
    return -1


@part
def sift_down(places: Rows, nodes: Rows, size: int, index: int) -> None:
    """Restore the heap (greatest place on top) below an entry that may be too small for where it stands."""
    place, node = places[index], nodes[index]
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and places[child + 1] > places[child]:
            child += 1
        if places[child] <= place:
            break
        places[index], nodes[index] = places[child], nodes[child]
        index = child
    places[index], nodes[index] = place, node


@part
def sift_up(places: Rows, nodes: Rows, index: int) -> None:
    """Restore the heap above an entry that may be too great for where it stands."""
    place, node = places[index], nodes[index]
    while index > 0:
        parent = (index - 1) // 2
        if places[parent] >= place:
            break
        places[index], nodes[index] = places[parent], nodes[parent]
        index = parent
    places[index], nodes[index] = place, node


@part
def fill_heap(
    jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, slot: int, shape: int, rule: int, bucket: int
) -> None:
    """Enter every node that has victims for this kind of request."""
    places, rows = victims.heap_place[slot], victims.heap_node[slot]
    size = 0
    for node in range(nodes.type.shape[0]):
        if victims.offsets[node] == victims.offsets[node + 1] or shapes.verdict[rule, nodes.type[node]] >= 0:
            continue
        place = stop_on_node(jobs, shapes, nodes, victims, node, shape, bucket)
        if place >= 0:
            places[size], rows[size] = place, node
            size += 1
    for index in range(size // 2 - 1, -1, -1):
        sift_down(places, rows, size, index)
    victims.heap_size[slot] = size
    victims.heap_kind[slot, 0], victims.heap_kind[slot, 1], victims.heap_kind[slot, 2] = shape, rule, bucket
    victims.heap_cursor[slot] = victims.freed_count[0]


@part
def heap_for(
    jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, shape: int, rule: int, bucket: int, makes: bool
) -> int:
    """Return the slot of the heap for this kind of request, up to date for freed nodes.

    Where there is none, the heap least recently used makes room for it if `makes`, else -1 is returned.
    """
    oldest = 0
    slot = -1
    for index in range(victims.heap_size.shape[0]):
        kind = victims.heap_kind[index]
        if kind[0] == shape and kind[1] == rule and kind[2] == bucket:
            slot = index
            break
        if victims.heap_used[index] < victims.heap_used[oldest]:
            oldest = index
    if slot < 0 and not makes:
        return -1
    victims.clock[0] += 1
    missed = 0
    is_fresh = slot < 0
    if is_fresh:
        slot = oldest
    else:
        missed = victims.freed_count[0] - victims.heap_cursor[slot]
        if missed > victims.freed.shape[0] or victims.heap_size[slot] + missed > victims.heap_place.shape[1]:
            is_fresh = True
    if is_fresh:
        fill_heap(jobs, shapes, nodes, victims, slot, shape, rule, bucket)
        missed = 0
    places, rows = victims.heap_place[slot], victims.heap_node[slot]
    for index in range(victims.freed_count[0] - missed, victims.freed_count[0]):
        node = victims.freed[index % victims.freed.shape[0]]
        if shapes.verdict[rule, nodes.type[node]] >= 0:
            continue
        place = stop_on_node(jobs, shapes, nodes, victims, node, shape, bucket)
        if place >= 0:
            size = victims.heap_size[slot]
            places[size], rows[size] = place, node
            sift_up(places, rows, size)
            victims.heap_size[slot] = size + 1
    victims.heap_cursor[slot] = victims.freed_count[0]
    victims.heap_used[slot] = victims.clock[0]
    return slot


@part
def top_of_heap(
    jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, slot: int, shape: int, bucket: int
) -> tuple[int, int]:
    """Return (node, place) of the best entry that still holds, or (-1, -1)."""
    places, rows = victims.heap_place[slot], victims.heap_node[slot]
    while victims.heap_size[slot] > 0:
        node = int(rows[0])
        place = stop_on_node(jobs, shapes, nodes, victims, node, shape, bucket)
        if place >= 0 and place == places[0]:
            return node, place
        if place < 0:
            size = victims.heap_size[slot] - 1
            places[0], rows[0] = places[size], rows[size]
            victims.heap_size[slot] = size
        else:
            places[0] = place
        sift_down(places, rows, victims.heap_size[slot], 0)
    return -1, -1


@part
def find(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    victims: Victims,
    shape: int,
    rule: int,
    bucket: int,
    domain: Rows,
    value: int,
) -> tuple[int, int]:
    """Return (node, place): where the walk would stop first for this request, or (-1, -1).

    `value` >= 0 restricts the nodes to those of types whose entry in `domain` is that value.
    """
    end = victims.job.shape[0]
    if victims.before[end] == end:
        return -1, -1
    if value < 0:
        slot = heap_for(jobs, shapes, nodes, victims, shape, rule, bucket, False)
        if slot >= 0:
            return top_of_heap(jobs, shapes, nodes, victims, slot, shape, bucket)
    victims.clock[0] += 1
    now = victims.clock[0]
    wanted, verdict = shapes.wanted[shape], shapes.verdict[rule]
    steps = 0
    place = victims.before[end]
    while place != end:
        steps += 1
        if steps > victims.longest_walk and value < 0:
            slot = heap_for(jobs, shapes, nodes, victims, shape, rule, bucket, True)
            return top_of_heap(jobs, shapes, nodes, victims, slot, shape, bucket)
        job = victims.job[place]
        node = jobs.node[job]
        suits = verdict[nodes.type[node]] < 0 and (value < 0 or domain[nodes.type[node]] == value)
        if suits and jobs.bucket[job] <= bucket:
            room = victims.gathered[node]
            if victims.stamp[node] != now:
                victims.stamp[node] = now
                for resource in range(room.shape[0]):
                    room[resource] = nodes.free[0, node, resource]
            enough = True
            for resource in range(room.shape[0]):
                room[resource] += shapes.wanted[jobs.shape[job], resource]
                if wanted[resource] > room[resource]:
                    enough = False
            if enough:
                return int(node), int(place)
        place = victims.before[place]
    return -1, -1


@part
def lose(jobs: Jobs, shapes: Shapes, nodes: Nodes, victims: Victims, place: int, winner: int) -> int:
    """Take an evicted job's place away for good; return the job."""
    job = victims.job[place]
    jobs.state[job] = codes.LOST
    jobs.saved[job] = winner
    change(nodes, jobs.node[job], shapes.wanted[jobs.shape[job]], 1, 0, 0)
    unlink(victims, place)
    return int(job)
