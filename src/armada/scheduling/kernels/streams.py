"""Streams: each queue's jobs in serving order, its next gang, and which queue is served next.

A queue gives back its evicted jobs first, then the queued ones. A gang comes up at its last member. The queues with a
next gang form a heap; only the queue that was just served is looked at anew.
"""

from typing import NamedTuple

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.books import GREATEST, Books, share_with
from armada.scheduling.kernels.compiled import part
from armada.scheduling.kernels.jobs import Jobs, Shapes
from armada.scheduling.snapshot import Amounts, Flags, Floats, Rows

BACK = 0
"""The stream of evicted jobs, in two-row arrays."""
NEW = 1
"""The stream of queued jobs."""


class Streams(NamedTuple):
    """The queues' streams in one pass.

    `back` lists the evicted jobs, queue q's from `back_at[q]` to `back_end[q]`; its queued jobs are `new_at[q]` to
    `new_end[q]`. `read` counts queued ones read. `needed` [2, G]: how many members complete a gang; `seen` how many
    were read; `first`, `last` and `next_member` chain them. `head_*` [Q] describe the next gang. `blocked` [S] is why
    a shape is not tried again in this pass. `by_bucket`: priorities are those scheduled at. `guest` [Q] marks lines of
    guests, which `gives_way` [Q] too where they are served after the pool's own queues.
    """

    back: Rows
    back_at: Amounts
    back_end: Amounts
    new_at: Amounts
    new_end: Amounts
    read: Amounts
    lookback: int
    needed: Rows
    seen: Rows
    first: Rows
    last: Rows
    next_member: Rows
    head_job: Rows
    head_gang: Rows
    head_is_new: Flags
    head_priority: Amounts
    head_cost: Floats
    head_current: Floats
    head_size: Floats
    head_request: Amounts
    only_back: Flags
    blocked: Flags
    guest: Flags
    gives_way: Flags
    heap: Rows
    heap_size: Amounts
    by_bucket: int
    prefers_large: int
    back_goes_first: Flags


@part
def joins(streams: Streams, stream: int, gang: int, job: int) -> bool:
    """Add a member to its gang's chain; say whether the gang is complete now."""
    if streams.seen[stream, gang] == 0:
        streams.first[stream, gang] = job
    else:
        streams.next_member[streams.last[stream, gang]] = job
    streams.last[stream, gang] = job
    streams.next_member[job] = -1
    streams.seen[stream, gang] += 1
    return bool(streams.seen[stream, gang] == streams.needed[stream, gang])


@part
def read_next(jobs: Jobs, streams: Streams, queue: int, only_back: bool) -> bool:
    """Read on until the queue's next gang is complete; say whether there is one."""
    while streams.back_at[queue] < streams.back_end[queue]:
        job = streams.back[streams.back_at[queue]]
        streams.back_at[queue] += 1
        gang = jobs.gang[job]
        if gang < 0 or joins(streams, BACK, gang, job):
            streams.head_job[queue] = job
            streams.head_gang[queue] = gang
            streams.head_is_new[queue] = 0
            return True
    if only_back or streams.only_back[queue]:
        return False
    while streams.new_at[queue] < streams.new_end[queue] and streams.read[queue] < streams.lookback:
        job = streams.new_at[queue]
        streams.new_at[queue] += 1
        streams.read[queue] += 1
        blocked = streams.blocked[jobs.shape[job]]
        if blocked != codes.NOT_CONSIDERED:
            jobs.reason[job] = blocked
            continue
        gang = jobs.gang[job]
        if gang < 0 or joins(streams, NEW, gang, job):
            streams.head_job[queue] = job
            streams.head_gang[queue] = gang
            streams.head_is_new[queue] = 1
            return True
        jobs.reason[job] = codes.GANG_INCOMPLETE
    return False


@part
def first_member(streams: Streams, queue: int) -> int:
    """Return the first member of the queue's next gang; `next_member` leads to the others."""
    gang = streams.head_gang[queue]
    if gang < 0:
        streams.next_member[streams.head_job[queue]] = -1
        return int(streams.head_job[queue])
    return int(streams.first[streams.head_is_new[queue], gang])


@part
def bucket_leased_at(jobs: Jobs, streams: Streams, queue: int, job: int) -> int:
    """Return the bucket of the priority that a job was leased at; guests, which all run already, may be bound lower."""
    return int(jobs.leased_at[job] if streams.guest[queue] else jobs.bucket[job])


@part
def describe_head(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, queue: int) -> None:
    """Work out request, priority and costs of the queue's next gang."""
    request = streams.head_request[queue]
    for resource in range(request.shape[0]):
        request[resource] = 0
    job = first_member(streams, queue)
    lowest = bucket_leased_at(jobs, streams, queue, job)
    priority = shapes.priority_of_class[shapes.class_row[jobs.shape[job]]]
    while job >= 0:
        lowest = min(lowest, bucket_leased_at(jobs, streams, queue, job))
        for resource in range(request.shape[0]):
            request[resource] = min(request[resource] + shapes.request[jobs.shape[job], resource], GREATEST)
        job = streams.next_member[job]
    streams.head_priority[queue] = shapes.priority_of_bucket[lowest] if streams.by_bucket else priority
    price_head(books, streams, queue)


@part
def price_head(books: Books, streams: Streams, queue: int) -> None:
    """Work out what the queue's next gang would bring the queue's cost to."""
    request = streams.head_request[queue]
    held, penalty = books.held[queue], books.penalty[queue]
    weight = books.weight[queue]
    streams.head_cost[queue] = share_with(books.total, books.multiplier, held, penalty, request) / weight
    if streams.prefers_large:
        streams.head_current[queue] = share_with(books.total, books.multiplier, held, penalty, books.nothing) / weight
        streams.head_size[queue] = (
            share_with(books.total, books.multiplier, request, books.nothing, books.nothing) * weight
        )


@part
def goes_first(books: Books, streams: Streams, queue: int, other: int) -> bool:
    """Say whether one queue is served before another."""
    if streams.gives_way[queue] != streams.gives_way[other]:
        return bool(streams.gives_way[queue] < streams.gives_way[other])
    if streams.back_goes_first[0] and streams.head_is_new[queue] != streams.head_is_new[other]:
        return bool(streams.head_is_new[queue] < streams.head_is_new[other])
    if streams.head_priority[queue] != streams.head_priority[other]:
        return bool(streams.head_priority[queue] > streams.head_priority[other])
    mine, theirs = streams.head_cost[queue], streams.head_cost[other]
    if streams.prefers_large:
        within, theirs_within = mine <= books.budget[queue], theirs <= books.budget[other]
        if within != theirs_within:
            return bool(within)
        if within:
            if streams.head_current[queue] != streams.head_current[other]:
                return bool(streams.head_current[queue] < streams.head_current[other])
            if streams.head_size[queue] != streams.head_size[other]:
                return bool(streams.head_size[queue] > streams.head_size[other])
            return bool(books.tie[queue] < books.tie[other])
    if mine != theirs:
        return bool(mine < theirs)
    return bool(books.tie[queue] < books.tie[other])


@part
def settle(books: Books, streams: Streams, index: int) -> None:
    """Restore the heap of queues below an entry."""
    heap, size = streams.heap, streams.heap_size[0]
    queue = heap[index]
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and goes_first(books, streams, heap[child + 1], heap[child]):
            child += 1
        if not goes_first(books, streams, heap[child], queue):
            break
        heap[index] = heap[child]
        index = child
    heap[index] = queue


@part
def drop_top(books: Books, streams: Streams) -> None:
    """Take the queue that is next out of the heap for good."""
    streams.heap_size[0] -= 1
    streams.heap[0] = streams.heap[streams.heap_size[0]]
    if streams.heap_size[0] > 0:
        settle(books, streams, 0)


@part
def heapify(books: Books, streams: Streams) -> None:
    """Put all queues of the heap in order."""
    for index in range(streams.heap_size[0] // 2 - 1, -1, -1):
        settle(books, streams, index)


@part
def open_streams(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, only_back: bool) -> None:
    """Read every queue's first gang and put the queues in order."""
    streams.heap_size[0] = 0
    for queue in range(streams.back_at.shape[0]):
        if read_next(jobs, streams, queue, only_back):
            describe_head(jobs, shapes, books, streams, queue)
            streams.heap[streams.heap_size[0]] = queue
            streams.heap_size[0] += 1
    heapify(books, streams)


@part
def advance(jobs: Jobs, shapes: Shapes, books: Books, streams: Streams, only_back: bool) -> None:
    """Read the next gang of the queue on top; then drop queues on top that may only give back and have nothing to."""
    queue = streams.heap[0]
    if read_next(jobs, streams, queue, only_back):
        describe_head(jobs, shapes, books, streams, queue)
        settle(books, streams, 0)
    else:
        drop_top(books, streams)
    while streams.heap_size[0] > 0:
        queue = streams.heap[0]
        if not streams.head_is_new[queue] or not (only_back or streams.only_back[queue]):
            break
        drop_top(books, streams)
