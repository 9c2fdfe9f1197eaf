"""The draw: one pass over the queues, serving the one whose turn it is until nothing is left."""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import Books, enter, exceeds, note_turn
from armada.scheduling.kernels.compiled import kernel, part, woven
from armada.scheduling.kernels.gangs import GAVE_WAY, Placing, place_gang
from armada.scheduling.kernels.jobs import WITHHELD, Gangs, Jobs, Shapes
from armada.scheduling.kernels.market.turns import Market, log_turn, open_market, take_turn
from armada.scheduling.kernels.nodes.holding import Holds, shift
from armada.scheduling.kernels.nodes.room import Nodes
from armada.scheduling.kernels.streams import Streams, advance, first_member, heapify, open_streams
from armada.scheduling.kernels.victims import Victims
from armada.scheduling.snapshot import Amounts, Flags, Rows


class Pace(NamedTuple):
    """How far a pass has come. It is run in slices, so that whoever calls can look at the time in between.

    `is_open`, `only_back`, `ended` [1] are the pass's state between slices. A slice serves `size` [1] gangs at most,
    has `served` [1] so far, `new_served` [Q] of them new ones of each queue. `is_late` [Q + 1] marks queues whose time
    for new jobs is used up; its last entry stands for all of them.
    """

    is_open: Flags
    only_back: Flags
    ended: Amounts
    size: Amounts
    served: Amounts
    new_served: Amounts
    is_late: Flags


@kernel
def number_expected(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, job_at: Rows) -> None:
    """Number the evicted jobs in the order in which they would return if everything fitted, into `job_at` [E].

    The accounts are used on the way and left as they were.
    """
    place = 0
    if market.is_open:
        open_market(jobs, shapes, books, streams, market, True)
    else:
        open_streams(jobs, shapes, books, streams, True)
    while streams.heap_size[0] > 0:
        queue = streams.heap[0]
        job = first_member(streams, queue)
        while job >= 0:
            job_at[place] = job
            place += 1
            enter(books, queue, shapes.class_row[jobs.shape[job]], shapes.request[jobs.shape[job]], 1)
            job = streams.next_member[job]
        if market.is_open:
            take_turn(jobs, shapes, books, streams, market, True)
        else:
            advance(jobs, shapes, books, streams, True)
    for index in range(place):
        job = job_at[index]
        enter(books, jobs.queue[job], shapes.class_row[jobs.shape[job]], shapes.request[jobs.shape[job]], -1)


@part
def constraint(books: Books, queue: int, class_row: int, members: int) -> int:
    """Return the first limit that a new gang meets (its request is in the books already), or NOT_CONSIDERED."""
    if books.cordoned[queue]:
        return codes.QUEUE_CORDONED
    if books.pool_tokens[0] < 1.0:
        return codes.GLOBAL_RATE
    if members > books.pool_burst:
        return codes.GLOBAL_BURST
    if books.pool_tokens[0] < members:
        return codes.GLOBAL_RATE_GANG
    if books.tokens[queue] < 1.0:
        return codes.QUEUE_RATE
    if members > books.burst[queue]:
        return codes.QUEUE_BURST
    if books.tokens[queue] < members:
        return codes.QUEUE_RATE_GANG
    if exceeds(books.held_in_class[queue, class_row], books.limit[queue, class_row]):
        return codes.QUEUE_LIMIT
    return codes.NOT_CONSIDERED


@part
def lateness(pace: Pace, queue: int, otherwise: int) -> int:
    """Return why there is no time for a new gang of a queue; where there is, what is true otherwise."""
    if pace.is_late[pace.is_late.shape[0] - 1]:
        return codes.GLOBAL_NEW_JOB_TIME
    if pace.is_late[queue]:
        return codes.QUEUE_NEW_JOB_TIME
    return otherwise


@part
def exceeds_floating(books: Books, floating: Flags, request: Rows) -> bool:
    """Say whether a gang asks for more of a floating resource than is left; its request is in the books already."""
    for resource in range(floating.shape[0]):
        if floating[resource] and request[resource] > 0 and books.all_held[resource] > books.total[resource]:
            return True
    return False


@part
def refuse(jobs: Jobs, streams: Streams, first: int, reason: int) -> None:
    """Give every member of a gang the reason."""
    job = first
    while job >= 0:
        jobs.reason[job] = reason
        job = streams.next_member[job]


@part
def charge(jobs: Jobs, streams: Streams, books: Books, placing: Placing, queue: int, first: int, is_new: bool) -> None:
    """Take tokens for a gang that was placed, and for the jobs that gave way to it."""
    if is_new:
        members = 0
        job = first
        while job >= 0:
            jobs.reason[job] = codes.NOT_CONSIDERED
            members += 1
            job = streams.next_member[job]
        books.tokens[queue] -= members
        books.pool_tokens[0] -= members
        for resource in range(books.placed.shape[0]):
            books.placed[resource] += streams.head_request[queue, resource]
    for index in range(placing.noted[0]):
        if placing.step[index] == GAVE_WAY:
            books.preemption_tokens[0] -= 1.0


@woven
def serve(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    victims: Victims,
    books: Books,
    streams: Streams,
    placing: Placing,
    holds: Holds,
    floating: Flags,
    pace: Pace,
    queue: int,
) -> int:
    """Try the next gang of one queue; return why it was not placed, or NOT_CONSIDERED."""
    first = first_member(streams, queue)
    is_new = streams.head_is_new[queue] == 1
    if not is_new and jobs.state[first] == codes.LOST:
        return codes.NOT_CONSIDERED
    if is_new and exceeds(books.placed, books.round_limit):
        refuse(jobs, streams, first, codes.ROUND_LIMIT)
        return codes.ROUND_LIMIT
    members = 0
    class_row = shapes.class_row[jobs.shape[first]]
    job = first
    while job >= 0:
        members += 1
        job = streams.next_member[job]
    enter(books, queue, class_row, streams.head_request[queue], 1)
    reason = codes.NOT_CONSIDERED
    if is_new:
        reason = constraint(books, queue, class_row, members)
        if reason in (codes.NOT_CONSIDERED, codes.QUEUE_LIMIT):
            reason = lateness(pace, queue, reason)
    stays = not is_new and not shapes.preemptible[class_row]
    limited = reason == codes.NOT_CONSIDERED and not streams.guest[queue] and not stays
    if limited and exceeds_floating(books, floating, streams.head_request[queue]):
        reason = codes.FLOATING_EXCEEDED
    barred = shapes.barred[jobs.shape[first]]
    if reason == codes.NOT_CONSIDERED and is_new and members == 1 and barred:
        # Known beforehand: a queue of impossible jobs must not take time from the others.
        reason = codes.UNSCHEDULED_RESOURCE if barred == WITHHELD else codes.NO_FIT
    if reason == codes.NOT_CONSIDERED:
        has_room_held = is_new and holds.job[queue] == first
        if has_room_held:
            shift(nodes, holds, queue, 1)
        reason = place_gang(jobs, shapes, nodes, gangs, victims, streams, placing, first, is_new)
        if has_room_held and reason != codes.NOT_CONSIDERED:
            shift(nodes, holds, queue, -1)
    if reason == codes.NOT_CONSIDERED:
        charge(jobs, streams, books, placing, queue, first, is_new)
        return reason
    enter(books, queue, class_row, streams.head_request[queue], -1)
    if is_new or reason == codes.FLOATING_EXCEEDED:
        refuse(jobs, streams, first, reason)
    if is_new and members == 1 and reason in (codes.NO_FIT, codes.UNSCHEDULED_RESOURCE, codes.GLOBAL_BURST):
        streams.blocked[jobs.shape[first]] = reason
    return reason


@kernel
def draw(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    victims: Victims,
    books: Books,
    streams: Streams,
    market: Market,
    placing: Placing,
    holds: Holds,
    floating: Flags,
    pace: Pace,
) -> bool:
    """Serve the queues for one slice; say whether one of them has a gang left. `pace` says what ended new jobs."""
    only_back = pace.only_back[0] == 1
    if not pace.is_open[0]:
        if market.is_open:
            open_market(jobs, shapes, books, streams, market, only_back)
        else:
            open_streams(jobs, shapes, books, streams, only_back)
        pace.is_open[0] = 1
    while streams.heap_size[0] > 0 and pace.served[0] < pace.size[0]:
        if books.preemption_tokens[0] < 1.0 and not streams.back_goes_first[0]:
            streams.back_goes_first[0] = 1
            heapify(books, streams)
        queue = streams.heap[0]
        pace.served[0] += 1
        pace.new_served[queue] += streams.head_is_new[queue]
        reason = serve(jobs, shapes, nodes, gangs, victims, books, streams, placing, holds, floating, pace, queue)
        note_turn(books, queue, reason == codes.NOT_CONSIDERED)
        if reason == codes.ROUND_LIMIT:
            only_back, pace.ended[0] = True, codes.MAX_RESOURCES
        elif reason == codes.GLOBAL_RATE:
            only_back, pace.ended[0] = True, codes.RATE_LIMIT
        elif reason == codes.GLOBAL_NEW_JOB_TIME:
            only_back, pace.ended[0] = True, codes.SOFT_TIMEOUT
        elif reason in (codes.QUEUE_CORDONED, codes.QUEUE_RATE, codes.QUEUE_NEW_JOB_TIME):
            streams.only_back[queue] = 1
        if market.is_open:
            if reason == codes.NOT_CONSIDERED:
                log_turn(jobs, streams, market, queue)
            take_turn(jobs, shapes, books, streams, market, only_back)
        else:
            advance(jobs, shapes, books, streams, only_back)
    pace.only_back[0] = only_back
    return bool(streams.heap_size[0] > 0)
