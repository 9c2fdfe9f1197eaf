"""Queues in a round: their shares (spec section 8), their streams of gangs and who is next (section 11)."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from armada.model.policy import PoolPolicy
from armada.model.resources import fraction_of
from tests.oracle.cluster import plus
from tests.oracle.problem import Job, Problem, Vector


@dataclass(eq=False)
class Account:
    """One context of a round: a queue's own, or that of its jobs from other pools (`away`)."""

    name: str
    queue: str
    away: bool
    weight: float
    cordoned: bool
    demand: Vector
    constrained: Vector
    penalty: Vector
    by_class: dict[str, Vector]
    fair_share: float = 0.0
    capped: float = 0.0
    uncapped: float = 0.0
    turn: str = ""

    def allocation(self, zero: Vector) -> Vector:
        total = list(zero)
        for amounts in self.by_class.values():
            total = plus(total, amounts)
        return total


@dataclass(eq=False)
class Shares:
    """What use costs in a pool."""

    total: Vector
    multipliers: list[float]
    zero: Vector

    def unweighted(self, amounts: Vector) -> float:
        cost = 0.0
        for amount, total, multiplier in zip(amounts, self.total, self.multipliers, strict=True):
            if total > 0:
                cost = max(cost, amount / total * multiplier)
        return cost

    def of_demand(self, amounts: Vector) -> float:
        return 1.0 if not any(self.total) else self.unweighted(amounts)

    def fill(self, accounts: list[Account]) -> None:
        """Set fair, capped and uncapped shares of all accounts."""
        weights = sum(a.weight for a in accounts)
        demands = [self.of_demand(a.constrained) for a in accounts]
        achieved = [False] * len(accounts)
        spare = [0.0] * len(accounts)
        for account in accounts:
            account.fair_share = account.weight / weights
            account.capped = account.uncapped = 0.0
        unallocated = 1.0
        for _ in range(10):
            if unallocated <= 0.01:
                break
            open_weight = sum(a.weight for a, done in zip(accounts, achieved, strict=True) if not done)
            for i, account in enumerate(accounts):
                own = open_weight + (account.weight if achieved[i] else 0.0)
                account.uncapped += account.weight / own * (unallocated - spare[i])
            if open_weight <= 0:
                break
            for i, account in enumerate(accounts):
                if not achieved[i]:
                    account.capped += account.weight / open_weight * unallocated
            unallocated = 0.0
            for i, account in enumerate(accounts):
                spare[i] = 0.0
                excess = account.capped - demands[i]
                if excess > 0:
                    spare[i] = excess
                    account.capped = demands[i]
                    achieved[i] = True
                    unallocated += excess


@dataclass(eq=False)
class Candidate:
    """A gang (or a single job) that is the head of its queue."""

    jobs: list[Job]
    evicted: bool
    account: Account

    def request(self, zero: Vector) -> Vector:
        total = list(zero)
        for job in self.jobs:
            total = plus(total, job.request)
        return total


def fair_order(job: Job) -> tuple[Any, ...]:
    """Place inside a queue, for jobs that all run or all wait."""
    return (
        -job.priority_class.priority,
        job.priority,
        job.leased_at if job.state == "running" else 0.0,
        job.submitted,
        job.id,
    )


class Stream:
    """One account's jobs in order, given out as gangs. Evicted jobs come first.

    `skip` says of a new job that is read whether it is passed over. A gang is given out when its last member is read:
    of an evicted gang all that were evicted, of a new one as many as it says it has.
    """

    def __init__(
        self,
        account: Account,
        evicted: list[Job],
        queued: list[Job],
        lookback: int,
        *,
        skip: Callable[[Job], bool] | None = None,
        merged: Callable[[Job], tuple[Any, ...]] | None = None,
    ) -> None:
        self.account = account
        self.items = [(job, True) for job in evicted] + [(job, False) for job in queued]
        if merged is not None:
            self.items.sort(key=lambda item: merged(item[0]))
        self.lookback = lookback
        self.skip = skip
        self.only_evicted = False
        self.read = 0
        self.held: dict[tuple[str, bool], list[Job]] = {}
        self.sizes = Counter(job.gang.id for job in evicted if job.gang is not None)
        self.head: Candidate | None = None

    def advance(self) -> None:
        """Read until the next whole gang, which becomes the head."""
        self.head = None
        while self.items:
            job, evicted = self.items[0]
            self.items.pop(0)
            if not evicted and self.read >= self.lookback:
                continue
            if not evicted:
                self.read += 1
                if self.skip is not None and self.skip(job):
                    continue
            if job.gang is None:
                self.head = Candidate([job], evicted, self.account)
                return
            members = self.held.setdefault((job.gang.id, evicted), [])
            members.append(job)
            if len(members) == (self.sizes[job.gang.id] if evicted else job.gang.cardinality):
                del self.held[job.gang.id, evicted]
                self.head = Candidate(members, evicted, self.account)
                return


class Draw:
    """Who is next among all streams."""

    def __init__(
        self,
        streams: list[Stream],
        shares: Shares,
        rank: Callable[[Candidate], tuple[int, ...]],
        *,
        prefers_large: bool = False,
        market: Callable[[list[Stream]], Stream | None] | None = None,
    ) -> None:
        self.streams = sorted(streams, key=lambda s: s.account.name)
        self.shares = shares
        self.rank = rank
        self.prefers_large = prefers_large
        self.market = market
        for stream in self.streams:
            stream.advance()

    def next(self) -> Stream | None:
        if self.market is not None:
            return self.market(self.streams)
        heads = [s for s in self.streams if s.head is not None and (s.head.evicted or not s.only_evicted)]
        return min(heads, key=cmp_to_key(self._compare), default=None)

    def proposed(self, candidate: Candidate) -> float:
        account = candidate.account
        zero = self.shares.zero
        amounts = plus(plus(account.allocation(zero), account.penalty), candidate.request(zero))
        return self.shares.unweighted(amounts) / account.weight

    def current(self, account: Account) -> float:
        zero = self.shares.zero
        return self.shares.unweighted(plus(account.allocation(zero), account.penalty)) / account.weight

    def _compare(self, left: Stream, right: Stream) -> int:
        assert left.head is not None
        assert right.head is not None
        a, b = self._order(left.head, right.head), self._order(right.head, left.head)
        return -1 if a < b else 1 if a > b else 0

    def _order(self, one: Candidate, other: Candidate) -> tuple[Any, ...]:
        costs: tuple[float, ...] = (self.proposed(one),)
        if self.prefers_large:
            budget = one.account.capped / one.account.weight
            within = self.proposed(one) <= budget
            other_within = self.proposed(other) <= other.account.capped / other.account.weight
            if within != other_within:
                costs = (0.0 if within else 1.0,)
            elif within:
                size = self.shares.unweighted(one.request(self.shares.zero)) * one.account.weight
                costs = (self.current(one.account), -size)
        return (*self.rank(one), *costs, one.account.turn)


def limits_of(problem: Problem, pool: PoolPolicy, queue: str, class_name: str, total: Vector) -> Vector:
    """The most that a queue may hold in a class: pool totals times fractions."""
    kind = problem.policy.priority_class(class_name)
    assert kind is not None
    own = problem.tenants[queue].limits.get(class_name, {})
    by_pool = own.get("maximumResourceFractionByPool", {}).get(pool.name, {})
    fractions = {
        **kind.limit.fractions,
        **kind.limit.fractions_by_pool.get(pool.name, {}),
        **own.get("maximumResourceFraction", {}),
        **by_pool.get("maximumResourceFraction", by_pool),
    }
    return [
        fraction_of(amount, fractions.get(name, float("inf")))
        for name, amount in zip(problem.kinds.names, total, strict=True)
    ]
