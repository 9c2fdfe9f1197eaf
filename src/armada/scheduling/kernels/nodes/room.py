"""Nodes: free room by bucket, and who takes and gives it.

Bucket 0 counts everything, evicted jobs too; bucket 1 all that is bound; bucket b what is bound at b or above. What may
never be displaced counts in every bucket. Letters: B buckets, N nodes, R resource kinds, I indexed resources, K key
columns of the index (see `index`).
"""

from typing import NamedTuple

from armada.scheduling.kernels.compiled import kernel, part
from armada.scheduling.snapshot import Amounts, Flags, Rows


class Nodes(NamedTuple):
    """The nodes of one round. `free` [B, N, R] and the index change while it runs.

    `column` and `step` [I] are the indexed resources and their resolutions (1 where all amounts are multiples of it
    anyway). The index of bucket b is `order[b]`: nodes sorted by `key[b, node]`, brought up to date for the nodes in
    `stale_list[b]` before it is read. `tie` is the last key column. The first `block` columns of a key are rounded.
    `walk_matters` where the walk of a lane may meet nodes in another order than that of their exact amounts and ranks.
    `most[b, chunk]` bounds what a node in this stretch of the order may have free. `latest[b]` is the place found last:
    mostly the node there is the next one to move. The rest is scratch of `search`.
    """

    free: Amounts
    overfull: Flags
    type: Rows
    lane: Rows
    rank: Rows
    tie: Rows
    column: Rows
    step: Amounts
    key_column: Rows
    key_step: Amounts
    block: int
    lanes_merge: int
    ranks_follow_rows: int
    walk_matters: int
    order: Rows
    key: Amounts
    built: Flags
    stale: Flags
    stale_list: Rows
    stale_count: Amounts
    most: Amounts
    latest: Rows
    bound: Amounts
    spare: Rows
    lane_first: Rows
    lane_top: Rows
    lane_list: Rows


@part
def fits(free: Amounts, bucket: int, node: int, want: Amounts) -> bool:
    """Say whether no wanted amount is greater than what the bucket has free on the node."""
    for resource in range(want.shape[0]):
        if want[resource] > free[bucket, node, resource]:
            return False
    return True


@kernel
def change(nodes: Nodes, node: int, want: Amounts, sign: int, lowest: int, highest: int) -> None:
    """Add `sign` times the amounts to what buckets `lowest` to `highest` have free on the node."""
    for bucket in range(lowest, highest + 1):
        for resource in range(want.shape[0]):
            nodes.free[bucket, node, resource] += sign * want[resource]
        if nodes.built[bucket] and not nodes.stale[bucket, node]:
            nodes.stale[bucket, node] = 1
            nodes.stale_list[bucket, nodes.stale_count[bucket]] = node
            nodes.stale_count[bucket] += 1


@part
def rounded(amount: int, step: int) -> int:
    """Return the greatest multiple of `step` that is not above the amount."""
    return amount - amount % step
