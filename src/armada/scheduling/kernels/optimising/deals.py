"""Deals: a gang gets places and others give way, if that is worth it; every deal is made whole or taken back whole."""

import math
from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import GREATEST, Books, enter, exceeds, share
from armada.scheduling.kernels.compiled import kernel, part, woven
from armada.scheduling.kernels.draw import constraint, exceeds_floating
from armada.scheduling.kernels.jobs import Gangs, Jobs, Shapes
from armada.scheduling.kernels.nodes.holding import Holds, shift
from armada.scheduling.kernels.nodes.room import Nodes, change
from armada.scheduling.kernels.optimising.offers import Offers, best_node, enlist, is_worth, strike, tick
from armada.scheduling.kernels.streams import Streams, advance, first_member, heapify, open_streams, price_head
from armada.scheduling.snapshot import Amounts, Flags, Floats, Rows


class Deals(NamedTuple):
    """Bounds of what the optimiser does, and the journal of the deal at hand.

    `most` [R] bounds what all deals place together, `smallest` [R] is what a member asks for at least, of everything.
    `improvement` is by how many per cent a gang's cost must exceed the price of its places. `placed` [R] and
    `tally` = (jobs placed, gangs tried, nodes looked at since the kernel was called, length of the journal of victims,
    of that of members) change. `all_nodes` are all rows. `yielded` [X] marks jobs that gave way in a deal.
    """

    most_jobs: int
    most: Amounts
    smallest: Amounts
    improvement: float
    placed: Amounts
    tally: Amounts
    gone: Rows
    settled: Rows
    all_nodes: Rows
    yielded: Flags


JOBS = 0
TRIED = 1
VISITS = 2
GONE = 3
SETTLED = 4

NO_PLACE = -1.0
"""A price that says: not all members found a place."""


@part
def take_place(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    books: Books,
    offers: Offers,
    deals: Deals,
    job: int,
    node: int,
    victims: int,
) -> None:
    """Let the node's first victims go and bind the job in their place."""
    start = offers.start[node]
    for index in range(start, start + victims):
        victim = offers.order[index]
        shape = jobs.shape[victim]
        strike(jobs, shapes, offers, victim)
        change(nodes, node, shapes.wanted[shape], 1, 0, jobs.bucket[victim])
        enter(books, jobs.queue[victim], shapes.class_row[shape], shapes.request[shape], -1)
        jobs.state[victim] = codes.LOST
        jobs.saved[victim] = job
        deals.gone[deals.tally[GONE]] = victim
        deals.tally[GONE] += 1
    if victims > 0:
        tick(books, offers)
    shape = jobs.shape[job]
    class_row = shapes.class_row[shape]
    jobs.node[job], jobs.bucket[job], jobs.state[job] = node, shapes.bucket_of_class[class_row], codes.RUNS
    top = jobs.bucket[job] if shapes.preemptible[class_row] else nodes.free.shape[0] - 1
    change(nodes, node, shapes.wanted[shape], -1, 0, top)
    deals.settled[deals.tally[SETTLED]] = job
    deals.tally[SETTLED] += 1


@part
def take_back(jobs: Jobs, shapes: Shapes, nodes: Nodes, books: Books, offers: Offers, deals: Deals) -> None:
    """Undo the deal at hand: its members wait again, its victims have their places."""
    for index in range(deals.tally[SETTLED]):
        job = deals.settled[index]
        shape = jobs.shape[job]
        solid = not shapes.preemptible[shapes.class_row[shape]]
        top = nodes.free.shape[0] - 1 if solid else jobs.bucket[job]
        change(nodes, jobs.node[job], shapes.wanted[shape], 1, 0, top)
        jobs.node[job] = -1
    for index in range(deals.tally[GONE]):
        victim = deals.gone[index]
        shape = jobs.shape[victim]
        change(nodes, jobs.node[victim], shapes.wanted[shape], -1, 0, jobs.bucket[victim])
        enter(books, jobs.queue[victim], shapes.class_row[shape], shapes.request[shape], 1)
        jobs.state[victim] = codes.RUNS
        jobs.saved[victim] = -1
        enlist(jobs, shapes, offers, victim)
    if deals.tally[GONE] > 0:
        tick(books, offers)
    deals.tally[GONE] = deals.tally[SETTLED] = 0


@woven
def place_each(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    books: Books,
    streams: Streams,
    offers: Offers,
    deals: Deals,
    first: int,
    listed: Rows,
    low: int,
    high: int,
) -> tuple[float, float]:
    """Give each member its best place among the listed nodes; return the price of all and the greatest impact.

    A single job gets no place that is not worth it; whether a gang is, is known when all members have one. A price of
    NO_PLACE means that a member has none; those before it have theirs.
    """
    price, greatest, job = 0.0, 0.0, first
    gain = math.inf
    if streams.next_member[first] < 0:
        gain = share(books.total, books.multiplier, shapes.request[jobs.shape[first]])
    while job >= 0:
        deals.tally[VISITS] += high - low
        node, victims, paid, hurt = best_node(
            jobs, shapes, nodes, books, offers, job, listed, low, high, gain, deals.improvement
        )
        if node < 0:
            price = NO_PLACE
            break
        take_place(jobs, shapes, nodes, books, offers, deals, job, node, victims)
        price += paid
        greatest = max(greatest, hurt)
        job = streams.next_member[job]
    return price, greatest


@woven
def strike_deal(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    books: Books,
    streams: Streams,
    offers: Offers,
    deals: Deals,
    first: int,
) -> float:
    """Place a gang; return the price, or NO_PLACE with nothing changed.

    Members that must agree in a label are tried on every value of it; the cheapest is taken, then the one that hurts
    no queue much, then the first. A value with free room for all ends the search.
    """
    gang = jobs.gang[first]
    label = gangs.label[gang] if gang >= 0 else -1
    turn, last = -1, 0
    if label >= 0:
        turn, last = gangs.base[label], gangs.base[label + 1]
    best_turn, best_price, best_impact, is_repeat = -1, 0.0, 0.0, label < 0
    paid = NO_PLACE
    while turn < last:
        listed, low, high = deals.all_nodes, 0, deals.all_nodes.shape[0]
        if label >= 0:
            listed, low, high = gangs.nodes, gangs.offsets[turn], gangs.offsets[turn + 1]
        price, hurt = place_each(jobs, shapes, nodes, books, streams, offers, deals, first, listed, low, high)
        if price != NO_PLACE and (is_repeat or deals.tally[GONE] == 0):
            paid = price
            if label >= 0:
                gangs.agreed[gang] = turn - gangs.base[label]
            break
        take_back(jobs, shapes, nodes, books, offers, deals)
        is_better = best_turn < 0 or price < best_price or (price == best_price and hurt < best_impact)
        if price != NO_PLACE and is_better:
            best_turn, best_price, best_impact = turn, price, hurt
        turn += 1 if label >= 0 else last + 1
        if turn == last and best_turn >= 0 and not is_repeat:
            turn, last, is_repeat = best_turn, best_turn + 1, True
    return paid


@part
def stands_back(
    jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, deals: Deals, queue: int, first: int
) -> bool:
    """Say whether a gang is none that the optimiser places: too small, known not to be worth it, or beyond a bound."""
    job, width = first, deals.most.shape[0]
    while job >= 0:
        shape = jobs.shape[job]
        if streams.blocked[shape] != codes.NOT_CONSIDERED or shapes.barred[shape]:
            return True
        for resource in range(width):
            if shapes.request[shape, resource] < deals.smallest[resource]:
                return True
        job = streams.next_member[job]
    if streams.head_cost[queue] > books.budget[queue]:
        return True
    for resource in range(width):
        if deals.placed[resource] + streams.head_request[queue, resource] > deals.most[resource]:
            return True
    return False


@part
def settle_accounts(
    jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, offers: Offers, deals: Deals, queue: int, first: int
) -> None:
    """Enter a deal into the accounts; its jobs may have to go for a later one."""
    request = streams.head_request[queue]
    enter(books, queue, shapes.class_row[jobs.shape[first]], request, 1)
    tick(books, offers)
    members, job = 0, first
    while job >= 0:
        members += 1
        shape = jobs.shape[job]
        jobs.method[job], jobs.away_entry[job], jobs.reason[job] = codes.OPTIMISER, -1, codes.NOT_CONSIDERED
        if jobs.gang[job] < 0 and offers.goes[shape]:
            enlist(jobs, shapes, offers, job)
        job = streams.next_member[job]
    for index in range(deals.tally[GONE]):
        deals.yielded[deals.gone[index]] = 1
    for resource in range(request.shape[0]):
        deals.placed[resource] = min(deals.placed[resource] + request[resource], GREATEST)
        books.placed[resource] = min(books.placed[resource] + request[resource], GREATEST)
    books.tokens[queue] -= members
    books.pool_tokens[0] -= members
    deals.tally[JOBS] += members


@part
def price_again(books: Books, streams: Streams, deals: Deals) -> None:
    """Close the deal at hand; queues that lost jobs by it are cheaper now, so that another may be next."""
    if deals.tally[GONE] > 0:
        for index in range(streams.heap_size[0]):
            price_head(books, streams, streams.heap[index])
        heapify(books, streams)
    deals.tally[GONE] = deals.tally[SETTLED] = 0


@woven
def negotiate(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    books: Books,
    streams: Streams,
    offers: Offers,
    deals: Deals,
    holds: Holds,
    floating: Flags,
    queue: int,
    first: int,
) -> int:
    """Try a gang; return the limit that stops it, or NOT_CONSIDERED."""
    if exceeds(books.placed, books.round_limit):
        return codes.ROUND_LIMIT
    members, job = 0, first
    while job >= 0:
        members += 1
        job = streams.next_member[job]
    shape, request = jobs.shape[first], streams.head_request[queue]
    class_row = shapes.class_row[shape]
    enter(books, queue, class_row, request, 1)
    reason = constraint(books, queue, class_row, members)
    if reason == codes.NOT_CONSIDERED and exceeds_floating(books, floating, request):
        reason = codes.FLOATING_EXCEEDED
    enter(books, queue, class_row, request, -1)
    if reason != codes.NOT_CONSIDERED:
        return reason
    deals.tally[TRIED] += 1
    priority = shapes.priority_of_class[class_row]
    if offers.clock[1] != priority:
        offers.clock[1] = priority
        tick(books, offers)
    has_room_held = holds.job[queue] == first
    if has_room_held:
        shift(nodes, holds, queue, 1)
    price = strike_deal(jobs, shapes, nodes, gangs, books, streams, offers, deals, first)
    gain = share(books.total, books.multiplier, request)
    if price != NO_PLACE and not is_worth(gain, price, deals.improvement):
        take_back(jobs, shapes, nodes, books, offers, deals)
        price = NO_PLACE
    if has_room_held and price == NO_PLACE:
        shift(nodes, holds, queue, -1)
    if price != NO_PLACE:
        settle_accounts(jobs, shapes, books, streams, offers, deals, queue, first)
    elif members == 1:
        streams.blocked[shape] = codes.NO_FIT
    return codes.NOT_CONSIDERED


@kernel
def price_shapes(total: Amounts, multiplier: Floats, request: Amounts, cost: Floats) -> None:
    """Write the dominant share of every shape [S] into `cost`."""
    for shape in range(request.shape[0]):
        cost[shape] = share(total, multiplier, request[shape])


@kernel
def open_deals(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, offers: Offers, candidates: Rows) -> None:
    """Chain the jobs that may have to go, given node by node in chain order, and open the queues' streams."""
    width = offers.room.shape[1]
    for index in range(candidates.shape[0] - 1, -1, -1):
        job = candidates[index]
        node = jobs.node[job]
        offers.after[job] = offers.first[node]
        offers.first[node] = job
        for resource in range(width):
            offers.room[node, resource] += shapes.wanted[jobs.shape[job], resource]
    tick(books, offers)
    open_streams(jobs, shapes, books, streams, True)


@kernel
def make_deals(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    gangs: Gangs,
    books: Books,
    streams: Streams,
    offers: Offers,
    deals: Deals,
    holds: Holds,
    floating: Flags,
    visits: int,
) -> bool:
    """Try gang after gang until about so many nodes were looked at; say whether there is more to do."""
    deals.tally[VISITS] = 0
    while streams.heap_size[0] > 0 and deals.tally[JOBS] < deals.most_jobs:
        if deals.tally[VISITS] >= visits:
            return True
        queue = streams.heap[0]
        first = first_member(streams, queue)
        deals.tally[VISITS] += 1
        if not stands_back(jobs, shapes, books, streams, deals, queue, first):
            reason = negotiate(jobs, shapes, nodes, gangs, books, streams, offers, deals, holds, floating, queue, first)
            if reason in (codes.ROUND_LIMIT, codes.GLOBAL_RATE):
                break
        advance(jobs, shapes, books, streams, True)
        price_again(books, streams, deals)
    return False
