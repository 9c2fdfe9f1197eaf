"""The fairness optimiser (spec section 16): after the second pass, bounded preemptions where they make it fairer."""

from dataclasses import dataclass, field
from typing import Any

from armada.model.resources import exceeds, fraction_of
from tests.oracle.cluster import EVICTED, Node, Seat, plus, within
from tests.oracle.limits import Limiters, objection
from tests.oracle.placement import Place
from tests.oracle.problem import Job, Vector
from tests.oracle.queues import Account, Candidate, Draw, Stream, fair_order
from tests.oracle.setting import Setting


def rounded(cost: float) -> float:
    """Costs are compared to eight places."""
    return round(cost * 1e8) / 1e8


@dataclass(eq=False)
class Victim:
    """A job that may have to go, and what that costs."""

    job: Job
    account: Account
    place: int
    cost: float
    price: float
    by_priority: bool
    queue_cost: float
    scheduled_at: int


@dataclass(eq=False)
class Offer:
    """A node with the victims that make room there."""

    node: Node
    victims: list[Victim] = field(default_factory=list)
    price: float = 0.0
    impact: float = 0.0


@dataclass(eq=False)
class Deal:
    """A gang placed: one place a member, and who goes for whom."""

    jobs: list[Job]
    before: Any
    places: list[Place] = field(default_factory=list)
    victims: dict[str, str] = field(default_factory=dict)
    gone: list[Job] = field(default_factory=list)
    price: float = 0.0
    impact: float = 0.0


class Optimiser:
    """Tries to place queued jobs of queues below their share."""

    def __init__(self, at: Setting, limiters: Limiters, placed_before: Vector) -> None:
        self.at = at
        self.limiters = limiters
        self.placed_before = placed_before
        policy = at.pool.optimiser
        assert policy is not None
        self.policy = policy
        self.hopeless: list[tuple[Any, ...]] = []
        kinds = at.problem.kinds
        self.smallest = kinds.vector_up(policy.min_job_size)
        self.largest = kinds.vector_up(policy.max_victim_size)
        self.most = [
            fraction_of(amount, policy.max_round_fractions.get(name, float("inf")))
            for name, amount in zip(kinds.names, at.total, strict=True)
        ]

    def run(self, queued: list[Job]) -> list[Deal]:
        """Place what makes the pool fairer; the accounts and the cluster follow."""
        at, shares = self.at, self.at.shares
        poor = [
            account
            for account in at.accounts.values()
            if shares.unweighted(plus(account.allocation(at.zero), account.penalty)) < account.capped
        ]
        streams = []
        for account in poor:
            mine = sorted((j for j in queued if j.queue == account.queue and not account.away), key=fair_order)
            streams.append(Stream(account, [], mine, at.policy.max_queue_lookback))
        draw = Draw(streams, shares, lambda candidate: (-min(j.priority_class.priority for j in candidate.jobs),))
        deals: list[Deal] = []
        placed, count = at.zero, 0
        if not at.pool.home_scheduling:
            return deals
        while (stream := draw.next()) is not None and count < self.policy.max_jobs_per_round:
            candidate = stream.head
            assert candidate is not None
            deal = self._try(candidate, placed)
            if deal is not None:
                deals.append(deal)
                self.limiters.overall.tokens -= len(candidate.jobs)
                self.limiters.queues[candidate.account.queue].tokens -= len(candidate.jobs)
                placed = plus(placed, candidate.request(at.zero))
                count += len(candidate.jobs)
            stream.advance()
        return deals

    def _try(self, candidate: Candidate, placed: Vector) -> Deal | None:
        at, account = self.at, candidate.account
        wanted = candidate.request(at.zero)
        if any(exceeds(self.smallest, tuple(job.request)) for job in candidate.jobs):
            return None
        if any(job.key() in self.hopeless for job in candidate.jobs):
            if "27.8" in at.defects:
                at.charge(candidate.jobs, 1)
            return None
        after = plus(plus(account.allocation(at.zero), account.penalty), wanted)
        if at.shares.unweighted(after) / account.weight > account.capped / account.weight:
            return None
        if exceeds(tuple(plus(placed, wanted)), tuple(self.most)):
            return None
        at.charge(candidate.jobs, 1)
        against = objection(at, self.limiters, candidate, plus(self.placed_before, placed))
        at.charge(candidate.jobs, -1)
        if against is not None:
            return None
        deal = self._deal(candidate, wanted)
        if deal is not None:
            at.charge(candidate.jobs, 1)
        elif len(candidate.jobs) == 1:
            self.hopeless.append(candidate.jobs[0].key())
        return deal

    def _deal(self, candidate: Candidate, wanted: Vector) -> Deal | None:
        """Place all members, each on its best node, if it is worth what it costs.

        A gang whose members must agree in a label tries every value of it, and takes the cheapest.
        """
        at, gang = self.at, candidate.jobs[0].gang
        values: list[dict[str, str]] = [{}]
        if gang is not None and gang.uniformity:
            carried = {node.machine.labels.get(gang.uniformity, "") for node in at.cluster.nodes}
            values = [{gang.uniformity: value} for value in sorted(carried - {""})]
        deals = []
        for number, agreed in enumerate(values):
            deal = self._place(candidate, agreed)
            if deal is not None:
                deals.append((deal.price, deal.impact, number))
                free = not deal.victims
                self._take_back(deal)
                if free:
                    deals = deals[-1:]
                    break
        if not deals:
            return None
        deal = self._place(candidate, values[min(deals)[2]])
        assert deal is not None
        gain = at.shares.unweighted(wanted)
        if deal.price > 0 and gain / deal.price * 100 - 100 <= self.policy.min_improvement_percent:
            self._take_back(deal)
            return None
        for job, place in zip(candidate.jobs, deal.places, strict=True):
            at.home_node[job.id], at.run_priority[job.id] = place.node, place.priority
        return deal

    def _place(self, candidate: Candidate, agreed: dict[str, str]) -> Deal | None:
        at = self.at
        deal = Deal(candidate.jobs, at.cluster.save())
        for job in candidate.jobs:
            offer = self._best(job, agreed)
            if offer is None:
                self._take_back(deal)
                return None
            for victim in offer.victims:
                seat = offer.node.seats[victim.job.id]
                assert not seat.evicted
                at.cluster.evict(offer.node, victim.job)
                at.cluster.drop(offer.node, victim.job)
                at.charge([victim.job], -1)
                deal.gone.append(victim.job)
                deal.victims[victim.job.id] = job.id
            at.cluster.bind(offer.node, job, job.priority_class.priority)
            deal.price += offer.price
            deal.impact = max(deal.impact, offer.impact)
            deal.places.append(Place(offer.node, job.priority_class.priority, "optimiser", EVICTED))
        return deal

    def _take_back(self, deal: Deal) -> None:
        self.at.cluster.restore(deal.before)
        self.at.charge(deal.gone, 1)

    def _best(self, job: Job, agreed: dict[str, str]) -> Offer | None:
        offers = []
        kinds, barred = self.at.problem.kinds, self.at.pool.unscheduled_resources
        if any(amount and name in barred for name, amount in zip(kinds.names, job.request, strict=True)):
            return None
        for node in self.at.cluster.nodes:
            if not self.at.cluster.may_run(node, job, list(self.at.pool.default_tolerations), agreed):
                continue
            if within(job.on_node, node.free[EVICTED]):
                return Offer(node)
            offer = self._offer(job, node)
            if offer is not None:
                offers.append(offer)
        return min(offers, key=lambda o: (o.price, o.impact, o.node.machine.order), default=None)

    def _may_go(self, job: Job, seat: Seat) -> bool:
        small = all(limit == 0 or amount <= limit for amount, limit in zip(seat.job.request, self.largest, strict=True))
        return (
            not seat.evicted
            and seat.job.priority_class.preemptible
            and seat.job.gang is None
            and self.at.run_priority[seat.job.id] <= job.priority_class.priority
            and small
        )

    def _offer(self, job: Job, node: Node) -> Offer | None:
        shares, at = self.at.shares, self.at
        by_account: dict[str, list[Job]] = {}
        for seat in node.seats.values():
            if self._may_go(job, seat):
                by_account.setdefault(at.account_of(seat.job).name, []).append(seat.job)
        victims: list[Victim] = []
        for name, jobs in by_account.items():
            account = at.accounts[name]
            jobs.sort(key=self._in_queue)
            after = shares.unweighted(account.allocation(at.zero))
            for place, victim in enumerate(jobs):
                cost = shares.unweighted(victim.request)
                after = rounded(after - cost)
                by_priority = at.run_priority[victim.id] < job.priority_class.priority
                price = 0.0 if by_priority or after > account.capped else cost
                scheduled_at = at.run_priority[victim.id]
                victims.append(
                    Victim(victim, account, place, cost, price, by_priority, after / account.weight, scheduled_at)
                )
        return self._take(job, node, victims)

    def _in_queue(self, job: Job) -> tuple[Any, ...]:
        return (self.at.run_priority[job.id], self.at.shares.unweighted(job.request), self._age(job), job.submitted)

    def _age(self, job: Job) -> float:
        return self.at.problem.now_s - job.leased_at if job.state == "running" else 0.0

    def _take(self, job: Job, node: Node, victims: list[Victim]) -> Offer | None:
        """Take victims in order until the job fits."""
        offer = Offer(node)
        room = node.free[EVICTED]
        heads = list(victims)
        while not within(job.on_node, room):
            first: dict[str, Victim] = {}
            for victim in heads:
                first.setdefault(victim.account.name, victim)
            if not first:
                return None
            best = min(first.values(), key=self._between_queues)
            heads.remove(best)
            offer.victims.append(best)
            offer.price += best.price
            room = plus(room, best.job.on_node)
        for name in sorted({victim.account.name for victim in offer.victims}):
            account = self.at.accounts[name]
            cost = sum(victim.cost for victim in offer.victims if victim.account.name == name)
            held = self.at.shares.unweighted(account.allocation(self.at.zero))
            offer.impact = max(offer.impact, cost / held if held else 0.0)
        return offer

    def _between_queues(self, victim: Victim) -> tuple[Any, ...]:
        return (
            not victim.by_priority,
            -victim.queue_cost,
            victim.scheduled_at,
            victim.cost,
            self._age(victim.job),
            victim.account.name,
        )
