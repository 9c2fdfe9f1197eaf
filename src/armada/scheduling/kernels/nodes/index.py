"""Index: the nodes of one bucket in the order of best fit, kept sorted while their room changes.

A node's key is its free amount of each indexed resource and a tie breaker. Up to the first resource whose amounts are
not all multiples of its resolution the amounts are rounded down (those columns form a *block*); from that resource on
they stand exact. With a single lane all columns are rounded: then the key is the reference's own order.

The order is cut into chunks of CHUNK places. Of each chunk it is known what a node in it has free at most, of every
resource, so that a search skips what can't help. These bounds are raised at once and lowered when a search has looked
through the chunk in vain.
"""

from armada.scheduling.kernels.compiled import part, woven
from armada.scheduling.kernels.nodes.room import Nodes, rounded

CHUNK = 32

LOWEST = -(2**63)

REBUILT_SHARE = 4
"""The index is sorted anew when more than one in so many nodes changed."""


@part
def is_below(nodes: Nodes, bucket: int, node: int, other: int) -> bool:
    """Say whether one node's key is below another's."""
    for column in range(nodes.key.shape[2]):
        mine, theirs = nodes.key[bucket, node, column], nodes.key[bucket, other, column]
        if mine != theirs:
            return bool(mine < theirs)
    return False


@part
def lower_bound(nodes: Nodes, bucket: int, low: int, high: int) -> int:
    """Return the first place from `low` to `high` whose key is at least `nodes.bound`."""
    width = nodes.key.shape[2]
    while low < high:
        middle = (low + high) >> 1
        node = nodes.order[bucket, middle]
        below = False
        for column in range(width):
            mine, bound = nodes.key[bucket, node, column], nodes.bound[column]
            if mine != bound:
                below = mine < bound
                break
        if below:
            low = middle + 1
        else:
            high = middle
    return low


@part
def write_key(nodes: Nodes, bucket: int, node: int) -> bool:
    """Bring a node's key up to date; say whether it changed."""
    last = nodes.key.shape[2] - 1
    changed = False
    for column in range(last):
        value = rounded(nodes.free[bucket, node, nodes.key_column[column]], nodes.key_step[column])
        if nodes.key[bucket, node, column] != value:
            nodes.key[bucket, node, column] = value
            changed = True
    return changed


@part
def raise_bound(nodes: Nodes, bucket: int, place: int) -> None:
    """Let the bound of a place's chunk cover the node that stands there."""
    node, chunk = nodes.order[bucket, place], place // CHUNK
    for resource in range(nodes.free.shape[2]):
        nodes.most[bucket, chunk, resource] = max(
            nodes.most[bucket, chunk, resource], nodes.free[bucket, node, resource]
        )


@part
def tighten_bound(nodes: Nodes, bucket: int, chunk: int) -> None:
    """Set the bound of a chunk to what its nodes have."""
    for resource in range(nodes.free.shape[2]):
        nodes.most[bucket, chunk, resource] = LOWEST
    for place in range(chunk * CHUNK, min((chunk + 1) * CHUNK, nodes.order.shape[1])):
        raise_bound(nodes, bucket, place)


@woven
def build(nodes: Nodes, bucket: int) -> None:
    """Sort all nodes of a bucket anew, by merging runs."""
    count = nodes.order.shape[1]
    for node in range(count):
        write_key(nodes, bucket, node)
        nodes.key[bucket, node, nodes.key.shape[2] - 1] = nodes.tie[node]
        nodes.stale[bucket, node] = 0
        if not nodes.built[bucket]:
            nodes.order[bucket, node] = node
    nodes.stale_count[bucket] = 0
    nodes.built[bucket] = 1
    source, target = nodes.order[bucket], nodes.spare
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            left, left_end = start, min(start + width, count)
            right, right_end = left_end, min(start + 2 * width, count)
            for place in range(start, right_end):
                if left < left_end and (right >= right_end or not is_below(nodes, bucket, source[right], source[left])):
                    target[place] = source[left]
                    left += 1
                else:
                    target[place] = source[right]
                    right += 1
        source, target = target, source
        width *= 2
    for place in range(count):
        nodes.order[bucket, place] = source[place]
    for chunk in range(nodes.most.shape[1]):
        tighten_bound(nodes, bucket, chunk)


@woven
def move(nodes: Nodes, bucket: int, node: int) -> None:
    """Move one node to where its key belongs now."""
    count, width = nodes.order.shape[1], nodes.key.shape[2]
    order = nodes.order[bucket]
    for column in range(width):
        nodes.bound[column] = nodes.key[bucket, node, column]
    place = nodes.latest[bucket]
    if place >= count or order[place] != node:
        place = lower_bound(nodes, bucket, 0, count)
    if not write_key(nodes, bucket, node):
        raise_bound(nodes, bucket, place)
        return
    shrunk = False
    for column in range(width):
        if nodes.key[bucket, node, column] != nodes.bound[column]:
            shrunk = nodes.key[bucket, node, column] < nodes.bound[column]
            break
    for column in range(width):
        nodes.bound[column] = nodes.key[bucket, node, column]
    if shrunk:
        stays = place == 0 or is_below(nodes, bucket, order[place - 1], node)
        goal = place if stays else lower_bound(nodes, bucket, 0, place)
        for index in range(place, goal, -1):
            order[index] = order[index - 1]
            if index % CHUNK == 0:
                raise_bound(nodes, bucket, index)
    else:
        goal = lower_bound(nodes, bucket, place + 1, count) - 1
        for index in range(place, goal):
            order[index] = order[index + 1]
            if (index + 1) % CHUNK == 0:
                raise_bound(nodes, bucket, index)
    order[goal] = node
    raise_bound(nodes, bucket, goal)


@part
def refresh(nodes: Nodes, bucket: int) -> None:
    """Bring a bucket's index up to date before it is read."""
    if not nodes.built[bucket] or nodes.stale_count[bucket] * REBUILT_SHARE > nodes.order.shape[1]:
        build(nodes, bucket)
        return
    for index in range(nodes.stale_count[bucket]):
        node = nodes.stale_list[bucket, index]
        nodes.stale[bucket, node] = 0
        move(nodes, bucket, node)
    nodes.stale_count[bucket] = 0
