"""Turns: each queue's jobs in market order, evicted and queued ones merged, and which queue is served next.

The highest bid is served first; at equal bids running jobs before queued ones. Among equal heads the queues take turns
by row (that is by name), which depends on who was served last, so that no heap would stay in order. Instead the heads
are the leaves of a tree whose nodes hold the best head below them: the first equal head after a given row is found
on the way up from there and down again.
"""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import Books
from armada.scheduling.kernels.compiled import part, woven
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.kernels.streams import BACK, NEW, Streams, describe_head, first_member, joins
from armada.scheduling.snapshot import Amounts, Flags, Floats, Rows

STANDING = 0
"""Column of `head_key`: home before guests that give way, then the priority where it counts."""
BID = 1
RUNS = 2
"""Column of `head_key`: 1 where all of the gang ran when the round began."""
AGE = 3
"""Column of `head_key`: how old the lease is, as a negative time; heads that differ in it only take turns."""
HOME_FIRST = 2.0**40
"""What being at home counts against priorities."""


class Market(NamedTuple):
    """One pass of a market (`is_open`; 0: the pool has none and the rest is empty).

    `line` lists the jobs of the pass, queue q's from `line_at[q]` to `line_end[q]`; `is_back` [X] marks those that
    compete for the place they had. By job [X]: `bid`, `runs` (it ran when the round began) and `leased`. `head_key`
    [Q, 4] describes the next gang of each queue, with its lowest bid and its oldest lease; the greatest key goes first.
    `best` is the tree: node 1 is the root, queue q the leaf `len(best) / 2 + q`, -1 says that nobody is there. `last`
    and `last_bid` [1] are the queue served last and its bid. `placed_job` and `placed_turn` log what found a place,
    `waiting` [turn] is the highest bid that other queues of this pool had next; `counts` are the numbers of jobs and of
    turns logged. With `by_priority` higher priorities go before any bid. `only_back` [1] says that new jobs are not
    served any more.
    """

    is_open: int
    by_priority: int
    line: Rows
    line_at: Amounts
    line_end: Amounts
    is_back: Flags
    bid: Floats
    runs: Flags
    leased: Amounts
    head_key: Floats
    best: Rows
    last: Rows
    last_bid: Floats
    placed_job: Rows
    placed_turn: Rows
    waiting: Floats
    counts: Amounts
    only_back: Flags


@woven
def read_line(jobs: Jobs, streams: Streams, market: Market, queue: int, only_back: bool) -> bool:
    """Read on until the queue's next gang is complete; say whether there is one."""
    while market.line_at[queue] < market.line_end[queue]:
        job = market.line[market.line_at[queue]]
        market.line_at[queue] += 1
        is_new = not market.is_back[job]
        if is_new:
            if only_back or streams.only_back[queue] or streams.read[queue] >= streams.lookback:
                continue
            streams.read[queue] += 1
            blocked = streams.blocked[jobs.shape[job]]
            if blocked != codes.NOT_CONSIDERED:
                jobs.reason[job] = blocked
                continue
        gang = jobs.gang[job]
        if gang < 0 or joins(streams, NEW if is_new else BACK, gang, job):
            streams.head_job[queue] = job
            streams.head_gang[queue] = gang
            streams.head_is_new[queue] = is_new
            return True
        if is_new:
            jobs.reason[job] = codes.GANG_INCOMPLETE
    return False


@woven
def describe_bid(streams: Streams, market: Market, queue: int) -> None:
    """Work out what the queue's next gang bids, if it runs, and since when."""
    job = first_member(streams, queue)
    bid, runs, leased = market.bid[job], True, market.leased[job]
    while job >= 0:
        bid = min(bid, market.bid[job])
        leased = min(leased, market.leased[job])
        runs = runs and market.runs[job] == 1
        job = streams.next_member[job]
    key = market.head_key[queue]
    key[STANDING] = 0.0 if streams.gives_way[queue] else HOME_FIRST
    if market.by_priority:
        key[STANDING] += streams.head_priority[queue]
    key[BID] = bid
    key[RUNS] = 1.0 if runs else 0.0
    key[AGE] = -leased if runs else 0.0


@part
def better(keys: Floats, left: int, right: int) -> int:
    """Return the one of two queues that goes first (-1: nobody): among equals the older lease, then the lower row."""
    if left < 0 or right < 0:
        return max(left, right)
    for column in range(AGE + 1):
        if keys[left, column] != keys[right, column]:
            return left if keys[left, column] > keys[right, column] else right
    return left


@part
def equals(keys: Floats, queue: int, other: int, columns: int) -> bool:
    """Say whether a queue (-1: nobody) is level with another one in the first columns of their keys."""
    if queue < 0:
        return False
    for column in range(columns):
        if keys[queue, column] != keys[other, column]:
            return False
    return True


@part
def first_from(best: Rows, keys: Floats, row: int, columns: int) -> int:
    """Return the first queue from `row` on that is level with the best one, or else the first of all."""
    top = best[1]
    half = best.shape[0] // 2
    found = 1
    if row < half:
        node = half + row
        if equals(keys, best[node], top, columns):
            return int(row)
        while node > 1:
            if node % 2 == 0 and equals(keys, best[node + 1], top, columns):
                found = node + 1
                break
            node //= 2
    while found < half:
        found *= 2
        if not equals(keys, best[found], top, columns):
            found += 1
    return int(found - half)


@part
def choose(best: Rows, keys: Floats, last: int, last_bid: float) -> int:
    """Return the queue whose turn it is, or -1.

    At the bid that was served last the queues take turns. At another bid the longest running job begins, where leases
    are equally old the queue that was served last or the next one after it; of queued jobs the first queue begins.
    """
    top = int(best[1])
    if top < 0 or last < 0:
        return top
    if keys[top, BID] == last_bid:
        return first_from(best, keys, last + 1, AGE)
    if keys[top, RUNS] > 0.0:
        return first_from(best, keys, last, AGE + 1)
    return top


@part
def renew(
    jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, queue: int, only_back: bool
) -> None:
    """Read the queue's next gang and bring the tree up to date."""
    best = market.best
    node = best.shape[0] // 2 + queue
    best[node] = -1
    if read_line(jobs, streams, market, queue, only_back):
        describe_head(jobs, shapes, books, streams, queue)
        describe_bid(streams, market, queue)
        best[node] = queue
    node //= 2
    while node > 0:
        best[node] = better(market.head_key, best[2 * node], best[2 * node + 1])
        node //= 2


@woven
def pass_turn(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, only_back: bool) -> None:
    """Put the queue that is next on top of the heap; queues that may only give back read on to what they give back."""
    best, keys, last, last_bid = market.best, market.head_key, market.last, market.last_bid
    chosen = choose(best, keys, last[0], last_bid[0])
    while chosen >= 0 and streams.head_is_new[chosen] and (only_back or streams.only_back[chosen]):
        renew(jobs, shapes, books, streams, market, chosen, only_back)
        chosen = choose(best, keys, last[0], last_bid[0])
    streams.heap_size[0] = chosen >= 0
    if chosen >= 0:
        streams.heap[0] = chosen
        last[0] = chosen
        last_bid[0] = keys[chosen, BID]


@part
def open_market(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, only_back: bool) -> None:
    """Read every queue's first gang and find out whose turn it is."""
    for queue in range(streams.back_at.shape[0]):
        renew(jobs, shapes, books, streams, market, queue, only_back)
    pass_turn(jobs, shapes, books, streams, market, only_back)


@woven
def take_turn(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, only_back: bool) -> None:
    """Read the next gang of the queue that was just served and find out whose turn it is.

    When from now on queues may only give back, what they have next is read anew: new jobs bid no more.
    """
    renew(jobs, shapes, books, streams, market, streams.heap[0], only_back)
    if only_back and not market.only_back[0]:
        market.only_back[0] = 1
        for other in range(streams.back_at.shape[0]):
            if market.best[market.best.shape[0] // 2 + other] >= 0 and streams.head_is_new[other]:
                renew(jobs, shapes, books, streams, market, other, only_back)
    pass_turn(jobs, shapes, books, streams, market, only_back)


@part
def highest_waiting(best: Rows, keys: Floats, guest: Flags, gives_way: Flags, queue: int) -> float:
    """Return the highest bid that other queues have next, guests left out; 0 where nobody waits."""
    half = best.shape[0] // 2
    highest, guests_compete = 0.0, False
    node = half + queue
    while node > 1:
        other = best[node ^ 1]
        if other >= 0 and guest[other]:
            guests_compete = guests_compete or not gives_way[other]
        elif other >= 0:
            highest = max(highest, keys[other, BID])
        node //= 2
    if guests_compete:
        for other in range(guest.shape[0]):
            if other != queue and best[half + other] >= 0 and not guest[other]:
                highest = max(highest, keys[other, BID])
    return float(highest)


@woven
def log_turn(jobs: Jobs, streams: Streams, market: Market, queue: int) -> None:
    """Log that the queue's next gang has found its places, and the highest bid that other queues have next."""
    turn = market.counts[1]
    job = first_member(streams, queue)
    if jobs.state[job] == codes.RUNS:
        while job >= 0:
            market.placed_job[market.counts[0]] = job
            market.placed_turn[market.counts[0]] = turn
            market.counts[0] += 1
            job = streams.next_member[job]
        guest, gives_way = streams.guest, streams.gives_way
        market.waiting[turn] = highest_waiting(market.best, market.head_key, guest, gives_way, queue)
        market.counts[1] += 1
