"""Offers: which jobs of a node would have to go for a new one, in which order, and what that costs.

The order in which a node's jobs would go depends on what the queues hold and on the new job's priority, not on its
size. So it is worked out once a node, with running sums of room and price; where a job of any size would fit is then
found by bisection. `clock` counts the changes after which such an order may be another.
"""

from typing import NamedTuple

import numpy as np

from armada.scheduling.kernels.books import Books, share
from armada.scheduling.kernels.compiled import part
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.kernels.nodes.room import Nodes, fits
from armada.scheduling.snapshot import Amounts, Flags, Floats, Rows

PLACES = 1e8
"""What a queue would still hold is compared to eight decimal places."""


class Offers(NamedTuple):
    """Jobs that may have to go, by node: `first[node]` and `after` chain them, queue by queue.

    Inside a queue the chain is sorted by priority scheduled at, cost, age (youngest first) and submit order. `cost` [S]
    is a shape's dominant share, `goes` [S] says if jobs of a shape may have to go. `room` [N, R] is what all of a
    node's candidates hold. `due` [Q] is the demand-capped share, `held` [Q] what a queue holds now. The order of node n
    is `length[n]` entries from `start[n]` in `order`, `freed` and `price` (both summed up so far), valid while
    `built[n]` is the clock's time. The rest is scratch.
    """

    cost: Floats
    goes: Flags
    due: Floats
    held: Floats
    scheduled_at: Amounts
    leased_ms: Amounts
    submitted: Amounts
    first: Rows
    after: Rows
    room: Amounts
    start: Amounts
    length: Amounts
    built: Amounts
    order: Rows
    freed: Amounts
    price: Floats
    clock: Amounts
    used: Amounts
    head: Rows
    left: Floats
    here: Rows
    taken: Floats


@part
def tick(books: Books, offers: Offers) -> None:
    """Note that every order may be another now."""
    offers.clock[0] += 1
    offers.used[0] = 0
    for queue in range(offers.held.shape[0]):
        offers.held[queue] = share(books.total, books.multiplier, books.held[queue])


@part
def goes_earlier(jobs: Jobs, offers: Offers, job: int, other: int) -> bool:
    """Say whether a job comes before another in its node's chain."""
    if jobs.queue[job] != jobs.queue[other]:
        return bool(jobs.queue[job] < jobs.queue[other])
    if offers.scheduled_at[job] != offers.scheduled_at[other]:
        return bool(offers.scheduled_at[job] < offers.scheduled_at[other])
    cost, other_cost = offers.cost[jobs.shape[job]], offers.cost[jobs.shape[other]]
    if cost != other_cost:
        return bool(cost < other_cost)
    if offers.leased_ms[job] != offers.leased_ms[other]:
        return bool(offers.leased_ms[job] > offers.leased_ms[other])
    return bool(offers.submitted[job] < offers.submitted[other])


@part
def enlist(jobs: Jobs, shapes: Shapes, offers: Offers, job: int) -> None:
    """Enter a job into the chain of its node."""
    node = jobs.node[job]
    before, place = -1, offers.first[node]
    while place >= 0 and goes_earlier(jobs, offers, place, job):
        before, place = place, offers.after[place]
    offers.after[job] = place
    if before < 0:
        offers.first[node] = job
    else:
        offers.after[before] = job
    for resource in range(offers.room.shape[1]):
        offers.room[node, resource] += shapes.wanted[jobs.shape[job], resource]


@part
def strike(jobs: Jobs, shapes: Shapes, offers: Offers, job: int) -> None:
    """Take a job out of the chain of its node."""
    node = jobs.node[job]
    before, place = -1, offers.first[node]
    while place != job:
        before, place = place, offers.after[place]
    if before < 0:
        offers.first[node] = offers.after[job]
    else:
        offers.after[before] = offers.after[job]
    for resource in range(offers.room.shape[1]):
        offers.room[node, resource] -= shapes.wanted[jobs.shape[job], resource]


@part
def left_without(held: float, cost: float) -> float:
    """Return what a queue would still hold without a job of that cost."""
    return float(np.rint((held - cost) * PLACES) / PLACES)


@part
def goes_first(jobs: Jobs, books: Books, offers: Offers, queue: int, other: int, priority: int) -> bool:
    """Say which of two queues gives its next job first: lower jobs, then of the queue that would still hold most."""
    job, other_job = offers.head[queue], offers.head[other]
    at, other_at = offers.scheduled_at[job], offers.scheduled_at[other_job]
    if (at < priority) != (other_at < priority):
        return bool(at < priority)
    mine, theirs = offers.left[queue] / books.weight[queue], offers.left[other] / books.weight[other]
    if mine != theirs:
        return bool(mine > theirs)
    if at != other_at:
        return bool(at < other_at)
    cost, other_cost = offers.cost[jobs.shape[job]], offers.cost[jobs.shape[other_job]]
    if cost != other_cost:
        return bool(cost < other_cost)
    if offers.leased_ms[job] != offers.leased_ms[other_job]:
        return bool(offers.leased_ms[job] > offers.leased_ms[other_job])
    return queue < other


@part
def queue_heads(jobs: Jobs, offers: Offers, node: int, priority: int) -> int:
    """Set the first job that each queue would give on this node; return how many queues there are."""
    queues, job, last = 0, offers.first[node], -1
    while job >= 0:
        queue = jobs.queue[job]
        if queue != last and offers.scheduled_at[job] <= priority:
            offers.head[queue] = job
            offers.left[queue] = left_without(offers.held[queue], offers.cost[jobs.shape[job]])
            offers.here[queues] = queue
            queues += 1
        last = queue
        job = offers.after[job]
    return queues


@part
def line_up(jobs: Jobs, shapes: Shapes, books: Books, offers: Offers, node: int, priority: int) -> None:
    """Work out in which order the node's jobs would go for one of this priority, with sums of room and price."""
    start = offers.used[0]
    offers.start[node] = start
    queues, place, price = queue_heads(jobs, offers, node, priority), start, 0.0
    while queues > 0:
        best = 0
        for index in range(1, queues):
            if goes_first(jobs, books, offers, offers.here[index], offers.here[best], priority):
                best = index
        queue = offers.here[best]
        job = offers.head[queue]
        shape = jobs.shape[job]
        if offers.scheduled_at[job] >= priority and offers.left[queue] <= offers.due[queue]:
            price += offers.cost[shape]
        offers.order[place], offers.price[place] = job, price
        for resource in range(offers.freed.shape[1]):
            before = offers.freed[place - 1, resource] if place > start else 0
            offers.freed[place, resource] = before + shapes.wanted[shape, resource]
        place += 1
        follows = offers.after[job]
        if follows >= 0 and jobs.queue[follows] == queue and offers.scheduled_at[follows] <= priority:
            offers.head[queue] = follows
            offers.left[queue] = left_without(offers.left[queue], offers.cost[jobs.shape[follows]])
        else:
            queues -= 1
            offers.here[best] = offers.here[queues]
    offers.length[node] = place - start
    offers.used[0] = place
    offers.built[node] = offers.clock[0]


@part
def is_worth(gain: float, price: float, improvement: float) -> bool:
    """Say whether what is gained exceeds the price by more than so many per cent."""
    return price == 0.0 or gain / price * 100.0 - 100.0 > improvement


@part
def affordable(offers: Offers, node: int, gain: float, improvement: float) -> int:
    """Return how many of the node's jobs, in order, may go until the price is too high for what is gained."""
    start, low, high = offers.start[node], 0, offers.length[node]
    while low < high:
        middle = (low + high) // 2
        if is_worth(gain, offers.price[start + middle], improvement):
            low = middle + 1
        else:
            high = middle
    return low


@part
def is_enough(nodes: Nodes, offers: Offers, node: int, want: Amounts, place: int) -> bool:
    """Say whether there is room when all up to this place in the node's order have gone."""
    for resource in range(want.shape[0]):
        if want[resource] > nodes.free[0, node, resource] + offers.freed[place, resource]:
            return False
    return True


@part
def needed(nodes: Nodes, offers: Offers, node: int, want: Amounts, most: int) -> int:
    """Return how many of the node's first `most` jobs have to go until there is room; -1 if all are too few."""
    start, low, high = offers.start[node], 0, most - 1
    if most == 0 or not is_enough(nodes, offers, node, want, start + high):
        return -1
    while low < high:
        middle = (low + high) // 2
        if is_enough(nodes, offers, node, want, start + middle):
            high = middle
        else:
            low = middle + 1
    return low + 1


@part
def impact(jobs: Jobs, offers: Offers, node: int, victims: int) -> float:
    """Return the greatest part of what it holds that a queue would lose."""
    start, greatest = offers.start[node], 0.0
    for index in range(start, start + victims):
        offers.taken[jobs.queue[offers.order[index]]] = 0.0
    for index in range(start, start + victims):
        offers.taken[jobs.queue[offers.order[index]]] += offers.cost[jobs.shape[offers.order[index]]]
    for index in range(start, start + victims):
        queue = jobs.queue[offers.order[index]]
        if offers.taken[queue] > 0.0:
            held = offers.held[queue]
            greatest = max(greatest, offers.taken[queue] / held if held > 0.0 else 0.0)
            offers.taken[queue] = 0.0
    return greatest


@part
def is_open(nodes: Nodes, offers: Offers, node: int, want: Amounts) -> bool:
    """Say whether a job of this size could fit if all that may have to go went."""
    for resource in range(want.shape[0]):
        if want[resource] > nodes.free[0, node, resource] + offers.room[node, resource]:
            return False
    return True


@part
def best_node(
    jobs: Jobs,
    shapes: Shapes,
    nodes: Nodes,
    books: Books,
    offers: Offers,
    job: int,
    listed: Rows,
    low: int,
    high: int,
    gain: float,
    improvement: float,
) -> tuple[int, int, float, float]:
    """Return where a job should go: node, how many have to go there, their price and their greatest impact.

    The nodes looked at are `listed[low:high]`. The first with free room is taken; else the cheapest that is worth it,
    then the one that hurts no queue much, then the first. The node is -1 where there is none.
    """
    shape = jobs.shape[job]
    want, verdict = shapes.wanted[shape], shapes.verdict[shapes.rule[shape]]
    priority = shapes.priority_of_class[shapes.class_row[shape]]
    for index in range(low, high):
        node = listed[index]
        if verdict[nodes.type[node]] < 0 and fits(nodes.free, 0, node, want):
            return int(node), 0, 0.0, 0.0
    best, best_victims, best_price, best_impact = -1, 0, 0.0, 0.0
    for index in range(low, high):
        node = listed[index]
        if verdict[nodes.type[node]] >= 0 or not is_open(nodes, offers, node, want):
            continue
        if offers.built[node] != offers.clock[0]:
            line_up(jobs, shapes, books, offers, node, priority)
        victims = needed(nodes, offers, node, want, affordable(offers, node, gain, improvement))
        if victims < 0:
            continue
        price = offers.price[offers.start[node] + victims - 1]
        if best >= 0 and price > best_price:
            continue
        hurt = impact(jobs, offers, node, victims)
        if best < 0 or price < best_price or hurt < best_impact:
            best, best_victims, best_price, best_impact = node, victims, price, hurt
    return int(best), best_victims, best_price, best_impact
