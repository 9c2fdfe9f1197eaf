"""Search: the node that the reference would choose for one job in one bucket.

The reference sorts the nodes of each lane by (free amounts rounded to their resolutions, row), walks those that have
enough of every indexed resource, and merges the lanes by the exact amounts, then the rank of the id, of the nodes at
their heads. So a lane's candidate counts with the greatest exact key among all that the walk met up to it. The
index here is sorted over all lanes at once: its first candidate is the answer unless a node of the same lane comes
earlier in the lane's own order; only then the block of equal rounded amounts is looked at lane by lane.
"""

from armada.scheduling.kernels.compiled import kernel, part, woven
from armada.scheduling.kernels.nodes.index import CHUNK, LOWEST, lower_bound, refresh, tighten_bound
from armada.scheduling.kernels.nodes.room import Nodes, fits, rounded
from armada.scheduling.snapshot import Amounts, Rows


@part
def comes_first_in_lane(nodes: Nodes, bucket: int, node: int, other: int) -> bool:
    """Compare two nodes of a lane: rounded amounts, then rows."""
    for index in range(nodes.column.shape[0]):
        column, step = nodes.column[index], nodes.step[index]
        mine = rounded(nodes.free[bucket, node, column], step)
        theirs = rounded(nodes.free[bucket, other, column], step)
        if mine != theirs:
            return bool(mine < theirs)
    return node < other


@part
def comes_first_exactly(nodes: Nodes, bucket: int, node: int, other: int) -> bool:
    """Compare two nodes of any lanes: exact amounts, then ranks of ids."""
    for index in range(nodes.column.shape[0]):
        column = nodes.column[index]
        mine, theirs = nodes.free[bucket, node, column], nodes.free[bucket, other, column]
        if mine != theirs:
            return bool(mine < theirs)
    return bool(nodes.rank[node] < nodes.rank[other])


@part
def is_walked(nodes: Nodes, bucket: int, node: int, want: Amounts) -> bool:
    """Say whether the node has enough of every indexed resource, so that the reference's walk meets it."""
    for index in range(nodes.column.shape[0]):
        column = nodes.column[index]
        if nodes.free[bucket, node, column] < want[column]:
            return False
    return True


@part
def top_before(nodes: Nodes, bucket: int, place: int, want: Amounts) -> int:
    """Return the node of greatest exact key that the walk of a lane meets up to the node at `place` of the index.

    Mostly that is the node itself. Others count whether the job may run on them or not: the reference asks that only
    of a node that has come up.
    """
    count, width = nodes.order.shape[1], nodes.key.shape[2]
    node = nodes.order[bucket, place]
    top = node
    for resource in range(nodes.block - 1, nodes.column.shape[0]):
        column = resource + 1
        exact = nodes.key[bucket, node, column]
        above = rounded(exact, nodes.step[resource]) + nodes.step[resource]
        if exact + 1 == above:
            continue
        for index in range(width):
            nodes.bound[index] = nodes.key[bucket, node, index] if index < column else LOWEST
        nodes.bound[column] = exact + 1
        low = lower_bound(nodes, bucket, place + 1, count)
        nodes.bound[column] = above
        high = lower_bound(nodes, bucket, low, count)
        for index in range(low, high):
            other = nodes.order[bucket, index]
            if (
                nodes.lane[other] == nodes.lane[node]
                and comes_first_in_lane(nodes, bucket, other, node)
                and is_walked(nodes, bucket, other, want)
                and comes_first_exactly(nodes, bucket, top, other)
            ):
                top = other
    if nodes.ranks_follow_rows:
        return int(top)
    for index in range(place + 1, count):
        other = nodes.order[bucket, index]
        for column in range(width - 1):
            if nodes.key[bucket, other, column] != nodes.key[bucket, node, column]:
                return int(top)
        if nodes.lane[other] == nodes.lane[node] and other < node and comes_first_exactly(nodes, bucket, top, other):
            top = other
    return int(top)


@part
def place_of(nodes: Nodes, bucket: int, node: int) -> int:
    """Return the node's place in the index, which is up to date."""
    for column in range(nodes.key.shape[2]):
        nodes.bound[column] = nodes.key[bucket, node, column]
    return int(lower_bound(nodes, bucket, 0, nodes.order.shape[1]))


@woven
def choose_among(
    nodes: Nodes, bucket: int, want: Amounts, verdict: Rows, candidates: Rows, low: int, high: int, is_listed: bool
) -> int:
    """Return the reference's choice among `candidates[low:high]`, lane by lane, or -1.

    Candidates that are listed are not all that a lane's walk may meet: the index knows the others.
    """
    lanes = 0
    for index in range(low, high):
        node = candidates[index]
        if verdict[nodes.type[node]] < 0 and fits(nodes.free, bucket, node, want):
            lane = nodes.lane[node]
            if nodes.lane_first[lane] < 0:
                nodes.lane_list[lanes] = lane
                lanes += 1
                nodes.lane_first[lane] = node
            elif comes_first_in_lane(nodes, bucket, node, nodes.lane_first[lane]):
                nodes.lane_first[lane] = node
    if lanes > 1:
        if is_listed and nodes.walk_matters:
            refresh(nodes, bucket)
        for index in range(lanes):
            lane = nodes.lane_list[index]
            nodes.lane_top[lane] = nodes.lane_first[lane]
            if is_listed and nodes.walk_matters:
                place = place_of(nodes, bucket, nodes.lane_first[lane])
                nodes.lane_top[lane] = top_before(nodes, bucket, place, want)
        for index in range(low, low if is_listed else high):
            node = candidates[index]
            lane = nodes.lane[node]
            first = nodes.lane_first[lane]
            if first < 0 or node == first or not is_walked(nodes, bucket, node, want):
                continue
            if comes_first_in_lane(nodes, bucket, node, first) and comes_first_exactly(
                nodes, bucket, nodes.lane_top[lane], node
            ):
                nodes.lane_top[lane] = node
    best = -1
    for index in range(lanes):
        lane = nodes.lane_list[index]
        if best < 0 or comes_first_exactly(nodes, bucket, nodes.lane_top[lane], nodes.lane_top[best]):
            best = lane
    chosen = nodes.lane_first[best] if best >= 0 else -1
    for index in range(lanes):
        nodes.lane_first[nodes.lane_list[index]] = -1
    return chosen


@woven
def first_fit(nodes: Nodes, bucket: int, want: Amounts, verdict: Rows) -> int:
    """Return the place in the index of the first node that fits, or -1."""
    refresh(nodes, bucket)
    count, last = nodes.order.shape[1], nodes.key.shape[2] - 1
    for column in range(last):
        nodes.bound[column] = rounded(want[nodes.key_column[column]], nodes.key_step[column])
    nodes.bound[last] = LOWEST
    place = lower_bound(nodes, bucket, 0, count)
    while place < count:
        chunk = place // CHUNK
        end = min((chunk + 1) * CHUNK, count)
        promising = True
        for resource in range(want.shape[0]):
            if want[resource] > nodes.most[bucket, chunk, resource]:
                promising = False
                break
        if promising:
            for index in range(place, end):
                node = nodes.order[bucket, index]
                if verdict[nodes.type[node]] < 0 and fits(nodes.free, bucket, node, want):
                    nodes.latest[bucket] = index
                    return index
            tighten_bound(nodes, bucket, chunk)
        place = end
    return -1


@woven
def find_block(nodes: Nodes, bucket: int, place: int) -> tuple[int, int]:
    """Return where the nodes begin and end whose rounded columns equal those of the node at `place`."""
    node = nodes.order[bucket, place]
    for column in range(nodes.key.shape[2]):
        nodes.bound[column] = nodes.key[bucket, node, column] if column < nodes.block else LOWEST
    low = lower_bound(nodes, bucket, 0, place)
    nodes.bound[nodes.block - 1] += 1
    return low, lower_bound(nodes, bucket, place, nodes.order.shape[1])


@kernel
def search(
    nodes: Nodes, bucket: int, want: Amounts, verdict: Rows, listed: Rows, low: int, high: int, is_listed: bool
) -> int:
    """Return the best node for a request in one bucket, or -1; among `listed[low:high]` only when `is_listed`."""
    candidates = listed
    if not is_listed:
        place = first_fit(nodes, bucket, want, verdict)
        if place < 0:
            return -1
        candidates = nodes.order[bucket]
        if not nodes.lanes_merge or top_before(nodes, bucket, place, want) == candidates[place]:
            return int(candidates[place])
        low, high = find_block(nodes, bucket, place)
    return choose_among(nodes, bucket, want, verdict, candidates, low, high, is_listed)
