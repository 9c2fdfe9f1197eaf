"""Turns: each queue's jobs in market order, evicted and queued ones merged, and which queue is served next.

The highest bid is served first; at equal bids running jobs before queued ones. Among equal heads the queues take turns
by row (that is by name), which depends on who was served last, so that no heap would stay in order. Instead the heads
are the leaves of a tree whose nodes hold the best head below them: the first equal head after a given row is found
on the way up from there and down again.
"""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import Books
from armada.scheduling.kernels.compiled import part
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.kernels.streams import BACK, NEW, Streams, describe_head, first_member, joins
from armada.scheduling.snapshot import Amounts, Flags, Floats, Rows

ANY = 2**62
"""A lease time after all others."""


class Market(NamedTuple):
    """One pass of a market (`is_open`; 0: the pool has none and the rest is empty).

    `line` lists the jobs of the pass, queue q's from `line_at[q]` to `line_end[q]`; `is_back` [X] marks those that
    compete for the place they had. By job [X]: `bid`, `runs` (it ran when the round began) and `leased`. `head_*` [Q]
    describe the next gang of each queue: its lowest bid, if all of it runs, its oldest lease. `best` is the tree: node
    1 is the root, queue q the leaf `len(best) / 2 + q`, -1 says that nobody is there. `last` and `last_bid` [1] are the
    queue served last and its bid. `placed_job` and `placed_turn` log what found a place, `waiting` [turn] is the
    highest bid that other queues of this pool had next; `counts` are the numbers of jobs and of turns logged. With
    `by_priority` higher priorities go before any bid. `only_back` [1] says that new jobs are not served any more.
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
    head_bid: Floats
    head_runs: Flags
    head_leased: Amounts
    best: Rows
    last: Rows
    last_bid: Floats
    placed_job: Rows
    placed_turn: Rows
    waiting: Floats
    counts: Amounts
    only_back: Flags


@part
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


@part
def describe_bid(streams: Streams, market: Market, queue: int) -> None:
    """Work out what the queue's next gang bids, if it runs, and since when."""
    job = first_member(streams, queue)
    bid, runs, leased = market.bid[job], True, market.leased[job]
    while job >= 0:
        bid = min(bid, market.bid[job])
        leased = min(leased, market.leased[job])
        runs = runs and market.runs[job] == 1
        job = streams.next_member[job]
    market.head_bid[queue] = bid
    market.head_runs[queue] = runs
    market.head_leased[queue] = leased if runs else ANY


@part
def level(streams: Streams, market: Market, queue: int, other: int) -> int:
    """Compare two queues' heads: positive if `queue` goes first, negative if `other`, 0 if they take turns."""
    if streams.gives_way[queue] != streams.gives_way[other]:
        return 1 if streams.gives_way[queue] < streams.gives_way[other] else -1
    if market.by_priority and streams.head_priority[queue] != streams.head_priority[other]:
        return 1 if streams.head_priority[queue] > streams.head_priority[other] else -1
    if market.head_bid[queue] != market.head_bid[other]:
        return 1 if market.head_bid[queue] > market.head_bid[other] else -1
    if market.head_runs[queue] != market.head_runs[other]:
        return 1 if market.head_runs[queue] > market.head_runs[other] else -1
    return 0


@part
def better(streams: Streams, market: Market, left: int, right: int) -> int:
    """Return the one of two queues that goes first (-1: nobody): among equals the older lease, then the lower row."""
    if left < 0 or right < 0:
        return max(left, right)
    ahead = level(streams, market, left, right)
    if ahead == 0:
        ahead = 1 if market.head_leased[left] <= market.head_leased[right] else -1
    return left if ahead > 0 else right


@part
def equals(streams: Streams, market: Market, queue: int, other: int, by_lease: bool) -> bool:
    """Say whether a queue (-1: nobody) takes turns with another one; `by_lease` asks for equal leases too."""
    if queue < 0 or level(streams, market, queue, other) != 0:
        return False
    return not by_lease or market.head_leased[queue] == market.head_leased[other]


@part
def first_from(streams: Streams, market: Market, row: int, by_lease: bool) -> int:
    """Return the first queue from `row` on that takes turns with the best one, or else the first of all."""
    best = market.best
    top = best[1]
    half = best.shape[0] // 2
    found = 1
    if row < half:
        node = half + row
        if equals(streams, market, best[node], top, by_lease):
            return int(row)
        while node > 1:
            if node % 2 == 0 and equals(streams, market, best[node + 1], top, by_lease):
                found = node + 1
                break
            node //= 2
    while found < half:
        found *= 2
        if not equals(streams, market, best[found], top, by_lease):
            found += 1
    return int(found - half)


@part
def choose(streams: Streams, market: Market) -> int:
    """Return the queue whose turn it is, or -1.

    At the bid that was served last the queues take turns. At another bid the longest running job begins, where leases
    are equally old the queue that was served last or the next one after it; of queued jobs the first queue begins.
    """
    top = int(market.best[1])
    if top < 0 or market.last[0] < 0:
        return top
    if market.head_bid[top] == market.last_bid[0]:
        return first_from(streams, market, market.last[0] + 1, False)
    if market.head_runs[top]:
        return first_from(streams, market, market.last[0], True)
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
        best[node] = better(streams, market, best[2 * node], best[2 * node + 1])
        node //= 2


@part
def pass_turn(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, only_back: bool) -> None:
    """Put the queue that is next on top of the heap; queues that may only give back read on to what they give back."""
    chosen = choose(streams, market)
    while chosen >= 0 and streams.head_is_new[chosen] and (only_back or streams.only_back[chosen]):
        renew(jobs, shapes, books, streams, market, chosen, only_back)
        chosen = choose(streams, market)
    streams.heap_size[0] = chosen >= 0
    if chosen >= 0:
        streams.heap[0] = chosen
        market.last[0] = chosen
        market.last_bid[0] = market.head_bid[chosen]


@part
def open_market(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, only_back: bool) -> None:
    """Read every queue's first gang and find out whose turn it is."""
    for queue in range(streams.back_at.shape[0]):
        renew(jobs, shapes, books, streams, market, queue, only_back)
    pass_turn(jobs, shapes, books, streams, market, only_back)


@part
def take_turn(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, market: Market, only_back: bool) -> None:
    """Read the next gang of the queue that was just served and find out whose turn it is.

    When from now on queues may only give back, what they have next is read anew: new jobs bid no more.
    """
    renew(jobs, shapes, books, streams, market, streams.heap[0], only_back)
    if only_back and not market.only_back[0]:
        market.only_back[0] = 1
        for queue in range(streams.back_at.shape[0]):
            if market.best[market.best.shape[0] // 2 + queue] >= 0 and streams.head_is_new[queue]:
                renew(jobs, shapes, books, streams, market, queue, only_back)
    pass_turn(jobs, shapes, books, streams, market, only_back)


@part
def highest_waiting(streams: Streams, market: Market, queue: int) -> float:
    """Return the highest bid that other queues have next, guests left out; 0 where nobody waits."""
    half = market.best.shape[0] // 2
    highest, guests_compete = 0.0, False
    node = half + queue
    while node > 1:
        other = market.best[node ^ 1]
        if other >= 0 and streams.guest[other]:
            guests_compete = guests_compete or not streams.gives_way[other]
        elif other >= 0:
            highest = max(highest, market.head_bid[other])
        node //= 2
    if guests_compete:
        for other in range(streams.guest.shape[0]):
            if other != queue and market.best[half + other] >= 0 and not streams.guest[other]:
                highest = max(highest, market.head_bid[other])
    return float(highest)


@part
def log_turn(jobs: Jobs, streams: Streams, market: Market, queue: int) -> None:
    """Log that the queue's next gang has found its places, and the highest bid that other queues have next."""
    turn = market.counts[1]
    job = first_member(streams, queue)
    if jobs.state[job] != codes.RUNS:
        return
    while job >= 0:
        market.placed_job[market.counts[0]] = job
        market.placed_turn[market.counts[0]] = turn
        market.counts[0] += 1
        job = streams.next_member[job]
    market.waiting[turn] = highest_waiting(streams, market, queue)
    market.counts[1] += 1
