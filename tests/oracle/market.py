"""Market-driven pools (spec section 15): bids order the jobs, and one price is found a round."""

from dataclasses import replace
from typing import Any

import msgspec

from armada.model.policy import RateLimit
from armada.model.resources import parse_quantity
from tests.oracle.cluster import plus
from tests.oracle.problem import Executor, Job, Machine, Problem, Vector
from tests.oracle.queues import Account, Candidate, Stream
from tests.oracle.setting import Setting

KEPT = 1_000_000.0
"""The bid of a running job that can't be preempted."""


class Market:
    """Bids of a pool's jobs, the order that follows from them, and what the round's placements amount to."""

    def __init__(self, at: Setting) -> None:
        self.at = at
        market = at.pool.market
        assert market is not None
        self.cutoff = market.spot_price_cutoff
        self.spot_price: float | None = None
        self.billable: dict[str, Vector] = {}
        self.override: dict[str, float] = {}
        self.placed: dict[str, Vector] = {}
        self.previous: tuple[float, str] | None = None
        self.passes = 0
        self.by_priority: dict[str, int] | None = None
        self.served: list[tuple[Account, list[Job], float, float]] = []

    def raw_bid(self, job: Job) -> float:
        """What the job's queue bids for it as it stands."""
        queued, running = self.at.problem.bids.get((job.queue, job.band, self.at.pool.name), (0.0, 0.0))
        return running if self.runs(job) else queued

    def runs(self, job: Job) -> bool:
        """Whether it counts as running."""
        return (job.phase or job.state) == "running"

    def bid(self, job: Job) -> float:
        """What the job counts as bidding."""
        if self.runs(job) and not job.priority_class.preemptible:
            return KEPT
        return self.raw_bid(job)

    def order(self, job: Job) -> tuple[Any, ...]:
        """Place inside a queue."""
        runs = self.runs(job)
        first = () if self.by_priority is None else (-self.by_priority[job.id],)
        return (
            *first,
            -job.priority_class.priority,
            -self.bid(job),
            not runs,
            job.leased_at if runs else 0.0,
            job.submitted,
            job.id,
        )

    def price(self, candidate: Candidate) -> float:
        """The bid of a gang: its lowest."""
        return min(self.bid(job) for job in candidate.jobs)

    def next(self, streams: list[Stream]) -> Stream | None:
        """Who is next: home first, the highest bid, running before queued, then queues in turn."""
        heads = []
        for stream in streams:
            while stream.only_evicted and stream.head is not None and not stream.head.evicted:
                stream.advance()
            if stream.head is not None:
                heads.append(stream)
        chosen = min(heads, key=self._head_order, default=None)
        if chosen is not None and chosen.head is not None:
            self.previous = (self.price(chosen.head), chosen.account.name)
        return chosen

    def _head_order(self, stream: Stream) -> tuple[Any, ...]:
        head = stream.head
        assert head is not None
        price = self.price(head)
        runs = all(self.runs(job) for job in head.jobs)
        late = head.account.away and self.at.pool.cross_pool_preempted_first
        name = stream.account.name
        first = 0 if self.by_priority is None else -min(self.by_priority[job.id] for job in head.jobs)
        leased_at = min(job.leased_at for job in head.jobs) if runs else 0.0
        return (late, first, -price, not runs, *self._turn(price, name, leased_at, runs=runs), name)

    def _turn(self, price: float, name: str, leased_at: float, *, runs: bool) -> tuple[float, bool]:
        """Where a queue with this price comes among others of the same price.

        At the price that was served last the queues take turns by name. At a new price of running jobs the oldest
        lease goes first; among equals the queue that was served last goes on, then the ones after it. Of queued jobs
        the first by name begins.
        """
        if self.previous is None:
            return leased_at, False
        last_price, last_name = self.previous
        if last_price == price:
            return 0.0, name <= last_name
        return leased_at, runs and name < last_name

    # --- prices

    def begin_pass(self) -> None:
        """Placements are counted for each pass."""
        self.placed = {}
        self.previous = None
        self.passes += 1

    def accept(self, candidate: Candidate, streams: list[Stream]) -> None:
        """Count a placed gang; the one that crosses the cutoff sets the price."""
        others = [
            self.price(stream.head)
            for stream in streams
            if stream.head is not None and stream.account is not candidate.account and not stream.account.away
        ]
        waiting = max(others, default=0.0)
        if self.passes == 1:
            self.served.append((candidate.account, candidate.jobs, self.price(candidate), waiting))
        self._count(candidate.account, candidate.jobs, self.price(candidate), waiting)

    def _count(self, account: Account, jobs: list[Job], price: float, waiting: float) -> None:
        at = self.at
        held = self.placed.get(account.name, at.zero)
        for job in jobs:
            held = plus(held, job.request)
        self.placed[account.name] = held
        total = at.zero
        for amounts in self.placed.values():
            total = plus(total, amounts)
        if self.spot_price is None and at.shares.unweighted(total) > self.cutoff:
            self.spot_price = price
            self.billable = {name: list(amounts) for name, amounts in self.placed.items()}
            self.override[account.name] = waiting

    def settle(self, lost: set[str]) -> None:
        """Find the price anew on what the first pass placed and what is not among the `lost`."""
        if "27.12" in self.at.defects:
            return
        self.placed, self.billable, self.override, self.spot_price = {}, {}, {}, None
        for account, jobs, price, waiting in self.served:
            if not any(job.id in lost for job in jobs):
                self._count(account, jobs, price, waiting)

    def evicted(self, account: Account, job: Job) -> None:
        """What is evicted again is not billed any more, also when it comes back."""
        if account.name in self.billable:
            self.billable[account.name] = [a - b for a, b in zip(self.billable[account.name], job.request, strict=True)]

    # --- values

    def value(self, job: Job, *, running: bool) -> float:
        """What a job is worth in place, at its bid for running or at the one for its present phase."""
        units = self.at.problem.resource_units.get(self.at.pool.name, {})
        names, exponents = self.at.problem.kinds.names, self.at.problem.kinds.exponents
        most = 0.0
        for name, exponent, amount in zip(names, exponents, job.request, strict=True):
            if name in units:
                most = max(most, amount * 10**exponent / parse_quantity(units[name]))
        bids = self.at.problem.bids.get((job.queue, job.band, self.at.pool.name), (0.0, 0.0))
        return (bids[1] if running else self.raw_bid(job)) * most


def ideal_problem(at: Setting) -> Problem:
    """All jobs of the pool anew, and one empty node with everything that takes any job."""
    jobs = []
    for job in [j for j in at.running if j.pool == at.pool.name] + at.queued:
        gang = None if job.gang is None else replace(job.gang, uniformity="")
        jobs.append(
            replace(
                job,
                state="queued",
                phase=job.state,
                pools=None,
                selector={},
                affinity=None,
                gang=gang,
                unacknowledged=False,
            ),
        )
    machine = Machine(
        id="everything",
        order=0,
        pool=at.pool.name,
        executor="all",
        labels={},
        taints=[],
        total=at.total,
        free=at.total,
        unschedulable=False,
        reservation="",
    )
    policy = msgspec.structs.replace(
        at.policy,
        max_round_fractions={},
        max_round_fractions_by_pool={},
        rate=RateLimit(),
        rate_per_queue=RateLimit(),
        pools=(at.pool,),
    )
    return replace(
        at.problem,
        policy=policy,
        executors={"all": Executor("all", cordoned=False, heartbeat_ago_s=0)},
        machines=[machine],
        jobs=jobs,
        by_id={job.id: job for job in jobs},
    )
