"""Books: what each queue holds, what that costs, and which share of the pool is its due. Letters as in `snapshot`."""

from typing import NamedTuple

from armada.scheduling.kernels.compiled import kernel, part
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.snapshot import Amounts, Flags, Floats, Rows

GREATEST = 2**60
"""Sums of wishes are held here: beyond any pool, and two of them still add up within int64."""

SHARE_PASSES = 10
SMALLEST_SURPLUS = 0.01


class Books(NamedTuple):
    """The queues' accounts. `held` [Q, R], `held_in_class` [Q, C, R] and `all_held` [R] change with every placement.

    `tie` [Q] orders queues of equal cost. `budget` [Q] is the demand-capped share over the weight. `tokens` [Q] and
    `pool_tokens` [1] shrink with new jobs. `turns` [Q + 1, 3] has of each queue how many turns it had in the draw, the
    number of its first one, and that of the last that placed something (0: none); its last row begins with the number
    of all turns so far.
    """

    total: Amounts
    multiplier: Floats
    weight: Floats
    tie: Rows
    held: Amounts
    held_in_class: Amounts
    all_held: Amounts
    penalty: Amounts
    limit: Amounts
    budget: Floats
    cordoned: Flags
    tokens: Floats
    burst: Amounts
    pool_tokens: Floats
    pool_burst: int
    placed: Amounts
    round_limit: Amounts
    preemption_tokens: Floats
    turns: Amounts
    nothing: Amounts


@kernel
def share(total: Amounts, multiplier: Floats, amounts: Amounts) -> float:
    """Return the dominant share of the pool that the amounts make: the unweighted cost."""
    greatest = 0.0
    for resource in range(total.shape[0]):
        if total[resource] > 0:
            part = float(amounts[resource]) / float(total[resource]) * multiplier[resource]
            greatest = max(greatest, part)
    return greatest


@part
def share_with(total: Amounts, multiplier: Floats, held: Amounts, penalty: Amounts, added: Amounts) -> float:
    """Return the dominant share of held, penalty and added amounts together."""
    greatest = 0.0
    for resource in range(total.shape[0]):
        if total[resource] > 0:
            amount = held[resource] + penalty[resource] + added[resource]
            part = float(amount) / float(total[resource]) * multiplier[resource]
            greatest = max(greatest, part)
    return greatest


@part
def enter(books: Books, queue: int, class_row: int, amounts: Amounts, sign: int) -> None:
    """Add `sign` times the amounts to a queue's account."""
    for resource in range(amounts.shape[0]):
        books.held[queue, resource] += sign * amounts[resource]
        books.held_in_class[queue, class_row, resource] += sign * amounts[resource]
        books.all_held[resource] += sign * amounts[resource]


@part
def note_turn(books: Books, queue: int, is_placed: bool) -> None:
    """Count a turn of a queue, and note its number where it is the queue's first, or placed something."""
    turn = books.turns[-1, 0] + 1
    books.turns[-1, 0] = turn
    books.turns[queue, 0] += 1
    if books.turns[queue, 1] == 0:
        books.turns[queue, 1] = turn
    if is_placed:
        books.turns[queue, 2] = turn


@part
def exceeds(amounts: Amounts, limit: Amounts) -> bool:
    """Say whether at least one amount is greater than its limit."""
    for resource in range(amounts.shape[0]):
        if amounts[resource] > limit[resource]:
            return True
    return False


@kernel
def adjust_shares(
    weight: Floats, demand: Floats, capped: Floats, uncapped: Floats, spare: Floats, achieved: Flags
) -> None:
    """Hand on what queues do not use of their shares, into `capped` and `uncapped`. All outputs [Q] start at zero."""
    count = weight.shape[0]
    unallocated = 1.0
    for _ in range(SHARE_PASSES):
        if unallocated <= SMALLEST_SURPLUS:
            break
        open_weight = 0.0
        for queue in range(count):
            if not achieved[queue]:
                open_weight += weight[queue]
        for queue in range(count):
            own = weight[queue] if achieved[queue] else 0.0
            if open_weight + own > 0.0:
                uncapped[queue] += weight[queue] / (open_weight + own) * (unallocated - spare[queue])
        if open_weight <= 0.0:
            break
        for queue in range(count):
            if not achieved[queue]:
                capped[queue] += weight[queue] / open_weight * unallocated
        unallocated = 0.0
        for queue in range(count):
            spare[queue] = 0.0
            if capped[queue] - demand[queue] > 0.0:
                spare[queue] = capped[queue] - demand[queue]
                capped[queue] = demand[queue]
                achieved[queue] = 1
                unallocated += spare[queue]


@kernel
def enter_running(jobs: Jobs, shapes: Shapes, books: Books, counted: Flags) -> None:
    """Enter what running jobs hold that are counted, wherever they run."""
    for job in range(jobs.running):
        if not counted[job]:
            continue
        shape = jobs.shape[job]
        enter(books, jobs.queue[job], shapes.class_row[shape], shapes.request[shape], 1)


@kernel
def sum_demand(
    jobs: Jobs, shapes: Shapes, cordoned: Flags, offsets: Amounts, demand: Amounts, count: Amounts, met: Rows
) -> None:
    """Add what queued jobs of queues that are not cordoned want to `demand` [Q, C, R], held at GREATEST.

    `count` [S], all zero, and `met` [S] are scratch: equal jobs of a queue are counted before they are added.
    """
    for queue in range(offsets.shape[0] - 1):
        if cordoned[queue]:
            continue
        kinds = 0
        for place in range(offsets[queue], offsets[queue + 1]):
            shape = jobs.shape[jobs.running + place]
            if count[shape] == 0:
                met[kinds] = shape
                kinds += 1
            count[shape] += 1
        for index in range(kinds):
            shape = met[index]
            class_row = shapes.class_row[shape]
            for resource in range(demand.shape[2]):
                request = shapes.request[shape, resource]
                wish = GREATEST if request > GREATEST // count[shape] else request * count[shape]
                demand[queue, class_row, resource] = min(demand[queue, class_row, resource] + wish, GREATEST)
            count[shape] = 0
