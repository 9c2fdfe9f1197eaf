"""Pricing: what a gang that is not there would have to bid for its places."""

from typing import NamedTuple

from armada.scheduling.kernels.compiled import kernel, part
from armada.scheduling.snapshot import Amounts, Floats, Rows

NO_PLACE = -1.0
"""A price that says: not at any."""
OUT_OF_STEPS = -2.0
"""A price that says: the work allowed was used up."""
_UNKNOWN = -3.0


class Seats(NamedTuple):
    """Who would leave a node at what bid: node n's seats are `offsets[n]` to `offsets[n + 1]`, the cheapest first.

    `amounts` [S, R] is what each frees, `free` [N, R] what is free anyway. The rest is scratch: `room`, `gone` (seats
    given up so far) and `cost` [N] of the attempt at hand, `sum` [R]. `steps` [1] is the work that is still allowed.
    """

    offsets: Rows
    bid: Floats
    amounts: Amounts
    free: Amounts
    room: Amounts
    gone: Rows
    cost: Floats
    sum: Amounts
    steps: Amounts


@part
def price_node(seats: Seats, request: Amounts, node: int, takes: bool) -> float:
    """Return the highest bid among those who leave for one member, cheapest first, or NO_PLACE; `takes` makes it so."""
    width = request.shape[0]
    for resource in range(width):
        seats.sum[resource] = seats.room[node, resource]
    seat = seats.offsets[node] + seats.gone[node]
    price = 0.0
    while True:
        seats.steps[0] -= 1
        enough = True
        for resource in range(width):
            enough = enough and seats.sum[resource] >= request[resource]
        if enough:
            break
        if seat == seats.offsets[node + 1]:
            return NO_PLACE
        price = max(price, seats.bid[seat])
        for resource in range(width):
            seats.sum[resource] += seats.amounts[seat, resource]
        seat += 1
    if takes:
        seats.gone[node] = seat - seats.offsets[node]
        for resource in range(width):
            seats.room[node, resource] = seats.sum[resource] - request[resource]
    return price


@part
def price_in_domain(seats: Seats, request: Amounts, size: int, nodes: Rows, low: int, high: int) -> float:
    """Return the price of a gang on `nodes[low:high]`: every member takes the cheapest node, the dearest one counts."""
    for index in range(low, high):
        node = nodes[index]
        seats.cost[node] = _UNKNOWN
        seats.gone[node] = 0
        for resource in range(request.shape[0]):
            seats.room[node, resource] = seats.free[node, resource]
    dearest = 0.0
    for _ in range(size):
        best = -1
        for index in range(low, high):
            node = nodes[index]
            if seats.cost[node] == _UNKNOWN:
                seats.cost[node] = price_node(seats, request, node, False)
            cost = seats.cost[node]
            if cost >= 0.0 and (best < 0 or cost < seats.cost[best]):
                best = node
                if cost == 0.0:
                    break
        seats.steps[0] -= high - low
        if seats.steps[0] < 0:
            return OUT_OF_STEPS
        if best < 0:
            return NO_PLACE
        dearest = max(dearest, price_node(seats, request, best, True))
        seats.cost[best] = _UNKNOWN
    return dearest


@kernel
def price_gang(seats: Seats, request: Amounts, size: int, nodes: Rows, starts: Rows) -> float:
    """Return what `size` members of `request` have to bid where they must be in one domain, or NO_PLACE, OUT_OF_STEPS.

    Domain d has the nodes `starts[d]` to `starts[d + 1]` in `nodes`; the cheapest one counts.
    """
    best = NO_PLACE
    for domain in range(starts.shape[0] - 1):
        price = price_in_domain(seats, request, size, nodes, starts[domain], starts[domain + 1])
        if price == OUT_OF_STEPS:
            return price
        if price >= 0.0 and (best < 0.0 or price < best):
            best = price
            if best == 0.0:
                break
    return best
