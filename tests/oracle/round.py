"""One round of one pool (spec section 10): evict, draw, place; again where nodes are over-full."""

from dataclasses import dataclass, field
from typing import Any

from armada.model.policy import PoolPolicy
from tests.oracle.cluster import EVICTED, minus, plus
from tests.oracle.holding import Holding
from tests.oracle.limits import Limiters, Objection, objection
from tests.oracle.market import Market
from tests.oracle.optimiser import Optimiser
from tests.oracle.placement import Place, Placer
from tests.oracle.problem import Job, Problem
from tests.oracle.queues import Account, Candidate, Draw, Stream, fair_order
from tests.oracle.setting import Setting


@dataclass
class Outcome:
    """What a round of a pool decided. `preempted` names the job that each made room for, where one is known."""

    scheduled: dict[str, Place] = field(default_factory=dict)
    preempted: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    termination: str = "completed"


class PoolRound:
    """One pool's round; `run` decides it, afterwards `at` holds the queues' accounts."""

    def __init__(
        self,
        problem: Problem,
        pool: PoolPolicy,
        limiters: Limiters,
        defects: frozenset[str],
        *,
        optimises: bool = True,
    ) -> None:
        self.at = Setting(problem, pool, defects)
        self.limiters = limiters
        self.placer = Placer(self.at)
        self.outcome = Outcome()
        self.returned: dict[str, bool] = {}
        self.by_priority = False
        self.placed_new = self.at.zero
        self.dropped: list[str] = []
        self.short_of_floating: set[str] = set()
        self.optimises = optimises
        self.market = Market(self.at) if pool.market is not None else None

    def run(self) -> Outcome:
        """Decide."""
        if self.at.cluster.nodes:
            self.first_pass()
            self._second_pass()
        self._conclude()
        self._lose_siblings()
        if self.optimises and self.at.pool.optimiser is not None and self.at.cluster.nodes:
            self._optimise()
        for job_id in self.dropped:
            self.limiters.overall.tokens += 1
            self.limiters.queues[self.at.problem.by_id[job_id].queue].tokens += 1
        return self.outcome

    def _conclude(self) -> None:
        """Jobs that are not back are preempted, or were not scheduled after all."""
        lost = {self.at.problem.by_id[job_id] for job_id, back in self.returned.items() if not back}
        taken_by = self.taken_by = {job.id: self._winner(job, lost) for job in lost}
        for job_id, back in self.returned.items():
            if back:
                continue
            if job_id in self.outcome.scheduled:
                del self.outcome.scheduled[job_id]
                self.dropped.append(job_id)
                single = self.at.problem.by_id[job_id].gang is None
                self.outcome.waiting[job_id] = "no_fit" if single else "gang_no_fit"
            else:
                self.outcome.preempted[job_id] = taken_by[job_id] or self._winner_of_gang(job_id, taken_by)

    def _winner(self, job: Job, lost: set[Job]) -> str:
        """Who has the room that a job lost: who displaced it, else (or if that lost it again) who came by urgency."""
        winner = self.placer.lost_to.get(job.id, "")
        if winner and self.at.problem.by_id[winner] not in lost:
            return winner
        node = self.at.home_node[winner or job.id]
        came = [
            self.at.problem.by_id[one]
            for one, place in self.outcome.scheduled.items()
            if place.node is node and place.over_lower and self.at.problem.by_id[one] not in lost
        ]
        order = fair_order if self.market is None else self.market.order
        first = min(came, key=lambda one: (-self.at.run_priority[one.id], one.queue, order(one)), default=None)
        if first is None and job.id in self.short_of_floating:
            first = self._took_floating(job, lost)
        return first.id if first is not None else ""

    def _took_floating(self, job: Job, lost: set[Job]) -> Job | None:
        """A new job that has some of a floating resource of which too little was left for the one given."""
        order = fair_order if self.market is None else self.market.order
        new = [self.at.problem.by_id[one] for one in self.outcome.scheduled]
        for floating in self.at.policy.floating_resources:
            column = self.at.problem.kinds.names.index(floating.name)
            has_some = [one for one in new if one not in lost and one.request[column] > 0]
            if job.request[column] > 0 and has_some:
                return min(has_some, key=lambda one: (one.queue, order(one)))
        return None

    def _winner_of_gang(self, job_id: str, taken_by: dict[str, str]) -> str:
        """Who has the room of a sibling; of several, of the last in the queue's order that has a name to give."""
        gang = self.at.problem.by_id[job_id].gang
        siblings = [
            one
            for one in (self.at.problem.by_id[other] for other in taken_by)
            if gang is not None
            and one.gang is not None
            and (one.queue, one.gang.id) == (self.at.problem.by_id[job_id].queue, gang.id)
        ]
        named = [one for one in siblings if one.state == "running" and taken_by[one.id]]
        return taken_by[max(named, key=fair_order).id] if named else ""

    def _lose_siblings(self) -> None:
        """Members of a gang that lost one, and that stand on no node of this round, go too."""
        preempted = self.outcome.preempted
        for job_id in list(preempted):
            lost = self.at.problem.by_id[job_id]
            for other in self.at.running:
                siblings = lost.gang is not None and other.gang is not None and lost.gang.id == other.gang.id
                if siblings and (lost.queue, lost.pool) == (other.queue, other.pool) and other.id not in preempted:
                    assert other.id not in self.at.home_node
                    preempted[other.id] = self._winner_of_gang(other.id, self.taken_by)
                    if other.pool == self.at.pool.name:
                        self.at.charge([other], -1)

    def _optimise(self) -> None:
        """Let the fairness optimiser add what makes the pool fairer."""
        outcome = self.outcome
        waiting = [job for job in self.at.queued if job.id not in outcome.scheduled]
        for deal in Optimiser(self.at, self.limiters, self.placed_new).run(waiting):
            for job, place in zip(deal.jobs, deal.places, strict=True):
                outcome.scheduled[job.id] = place
                outcome.waiting.pop(job.id, None)
            for victim, winner in deal.victims.items():
                if victim in outcome.scheduled:
                    del outcome.scheduled[victim]
                    self.dropped.append(victim)
                    handed_on = [job for job, heir in outcome.preempted.items() if heir == victim]
                    outcome.preempted.update(dict.fromkeys(handed_on, winner))
                else:
                    outcome.preempted[victim] = winner

    # --- eviction

    def _evict(self, jobs: list[Job]) -> list[Job]:
        """Evict these and the rest of their gangs, wherever in this pool they run."""
        chosen = list(jobs)
        gangs = {(job.queue, job.gang.id) for job in jobs if job.gang is not None}
        for node in self.at.cluster.nodes:
            for seat in node.seats.values():
                job = seat.job
                partly = job.gang is not None and (job.queue, job.gang.id) in gangs
                if partly and job not in chosen and not seat.evicted:
                    chosen.append(job)
        for job in chosen:
            self.at.cluster.evict(self.at.home_node[job.id], job)
            if self.market is not None:
                self.market.evicted(self.at.account_of(job), job)
        self.at.charge(chosen, -1)
        self.returned.update(dict.fromkeys((job.id for job in chosen), False))
        return chosen

    def _is_protected(self, account: Account) -> bool:
        at = self.at
        divisor = account.uncapped if at.pool.protects_uncapped_share else max(account.capped, account.fair_share)
        used = at.shares.unweighted(account.allocation(at.zero))
        if divisor == 0:
            return used <= 0
        return used / divisor <= at.policy.protected_fraction_of(at.pool)

    def _excess(self, queue: str, victims: list[Job]) -> list[Job]:
        """The last of a queue's victims to be served, until it keeps its protected share less the margin."""
        at, account = self.at, self.at.accounts[queue]
        assert at.policy.excess_margin is not None
        due = account.uncapped if at.pool.protects_uncapped_share else max(account.capped, account.fair_share)
        keeps = due * max(0.0, at.policy.protected_fraction_of(at.pool) - at.policy.excess_margin)
        left = account.allocation(at.zero)
        chosen: list[Job] = []
        for job in sorted((one for one in victims if one.queue == queue), key=fair_order, reverse=True):
            if at.shares.unweighted(left) <= keeps:
                break
            chosen.append(job)
            left = minus(left, job.request)
        return chosen

    def first_pass(self) -> None:
        """Evict what is not protected, and draw evicted and queued jobs."""
        at = self.at
        protected = {name: self._is_protected(account) for name, account in at.accounts.items()}
        victims = []
        if self.market is not None:
            victims = [s.job for n in at.cluster.nodes for s in n.seats.values() if s.job.pool == at.pool.name]
        elif at.pool.fairshare_preemption or "27.5" in at.defects:
            victims = [
                seat.job
                for node in at.cluster.nodes
                for seat in node.seats.values()
                if seat.job.pool == at.pool.name
                and seat.job.priority_class.preemptible
                and not protected[seat.job.queue]
            ]
            if at.policy.excess_margin is not None:
                victims = [job for queue in at.accounts for job in self._excess(queue, victims)]
        self.holding = Holding(at)
        evicted = self._evict(victims)
        self.placer.evicted = self._expected_order(evicted)
        self._pass(evicted, at.queued, second=False)

    def _expected_order(self, evicted: list[Job]) -> list[Job]:
        """Simulate who would come back, in which order, if all came back."""
        self.unfeasible: dict[Any, str] = {}
        draw = self._draw(self._streams(evicted, [], second=False), second=False)
        order: list[Job] = []
        while (stream := draw.next()) is not None:
            assert stream.head is not None
            order += stream.head.jobs
            self.at.charge(stream.head.jobs, 1)
            stream.advance()
        self.at.charge(order, -1)
        return order

    def _second_pass(self) -> None:
        cluster = self.at.cluster
        victims = []
        for node in cluster.nodes:
            negative = {b for b in cluster.buckets if b != EVICTED and any(a < 0 for a in node.free[b])}
            victims += [
                seat.job
                for seat in node.seats.values()
                if not seat.evicted and seat.job.priority_class.preemptible and seat.priority in negative
            ]
        if not victims:
            return
        evicted = self._evict(victims)
        self.placer.evicted = []
        saved = cluster.save()
        self._pass(evicted, [], second=True)
        if "27.14" not in self.at.defects and self._overfull():
            # The order by which queues' running jobs come back first has left a node over-full: draw once more.
            cluster.restore(saved)
            self.at.charge([job for job in evicted if self.returned[job.id]], -1)
            self.returned.update(dict.fromkeys((job.id for job in evicted), False))
            self.by_priority = True
            if self.market is not None:
                self.market.by_priority = self.at.run_priority
            self._pass(evicted, [], second=True)

    def _overfull(self) -> bool:
        """Whether a node holds more than it has, by what this round decided."""
        cluster = self.at.cluster
        return any(
            not node.over_allocated and any(a < 0 for b in cluster.buckets if b != EVICTED for a in node.free[b])
            for node in cluster.nodes
        )

    # --- drawing

    def _streams(self, evicted: list[Job], queued: list[Job], *, second: bool) -> list[Stream]:
        streams = []
        for account in self.at.accounts.values():
            mine = [j for j in evicted if self.at.account_of(j) is account]
            fresh = [] if account.away else [j for j in queued if j.queue == account.queue]
            mine.sort(key=self._second_order if second else fair_order)
            fresh.sort(key=fair_order)
            if mine or fresh:
                lookback = self.at.policy.max_queue_lookback
                merged = self.market.order if self.market is not None else None
                skip = None if second else self._skip
                streams.append(Stream(account, mine, fresh, lookback, skip=skip, merged=merged))
        return streams

    def _second_order(self, job: Job) -> tuple[Any, ...]:
        new = job.state != "running"
        first = (-self.at.run_priority[job.id],) if self.by_priority else ()
        return (*first, new, *fair_order(job))

    def _skip(self, job: Job) -> bool:
        """Whether a job that is read has the shape of one that failed; it fails with the same reason."""
        code = self.unfeasible.get(job.key())
        if code is not None:
            self.outcome.waiting[job.id] = code
        return code is not None

    def _draw(self, streams: list[Stream], *, second: bool) -> Draw:
        at = self.at

        def rank(candidate: Candidate) -> tuple[int, ...]:
            late = int(candidate.account.away and at.pool.cross_pool_preempted_first)
            if second:
                return (late, -min(at.run_priority[j.id] for j in candidate.jobs))
            return (late, -min(j.priority_class.priority for j in candidate.jobs))

        if self.market is not None:
            self.market.previous = None
            return Draw(streams, at.shares, rank, market=self.market.next)
        return Draw(streams, at.shares, rank, prefers_large=at.policy.prefers_large_jobs)

    def _pass(self, evicted: list[Job], queued: list[Job], *, second: bool) -> None:
        self.unfeasible = {}
        self.placed = self.at.zero
        streams = self._streams(evicted, queued, second=second)
        draw = self._draw(streams, second=second)
        if self.market is not None:
            self.market.begin_pass()
        budget = None if second else self.limiters.preemption.get(self.at.pool.name)
        stopped: set[str] = set()
        frugal = ended = False
        while True:
            if budget is not None and budget.tokens < 1 and not ended:
                frugal = True
            for one in streams:
                one.only_evicted = frugal or ended or one.account.name in stopped
            stream = draw.next()
            if stream is None and frugal and not ended:
                # All evicted jobs that can are back: new jobs go on with free room only.
                frugal, budget = False, None
                continue
            if stream is None:
                return
            assert stream.head is not None
            stops = self._place(stream.head, streams)
            ended = ended or stops == "all"
            if stops == "queue":
                stopped.add(stream.account.name)
            stream.advance()

    # --- placing

    def _place(self, candidate: Candidate, streams: list[Stream]) -> str:
        """Try one gang; says whether new jobs of all queues or of this one have to stop."""
        jobs, new = candidate.jobs, not candidate.evicted
        if not new and any(j.id in self.placer.lost_to for j in jobs):
            return ""
        self.at.charge(jobs, 1)
        against = objection(self.at, self.limiters, candidate, self.placed)
        places = None
        if against is None:
            self.holding.give(jobs[0], 1)
            places = self.placer.gang(jobs, evicted=candidate.evicted)
            if places is None:
                self.holding.give(jobs[0], -1)
        if places is not None:
            self._accept(candidate, places)
            if self.market is not None:
                self.market.accept(candidate, streams)
            return ""
        self.at.charge(jobs, -1)
        if not new:
            self.short_of_floating.update(job.id for job in jobs if against is not None)
            return ""
        return self._turn_down(jobs, against)

    def _turn_down(self, jobs: list[Job], against: Objection | None) -> str:
        """Note why a new gang waits; says whether new jobs of all queues or of this one have to stop."""
        code = against.code if against is not None else "no_fit" if len(jobs) == 1 else "gang_no_fit"
        if against is not None and against.termination:
            self.outcome.termination = against.termination
        if code != "round_limit":
            self.outcome.waiting.update(dict.fromkeys((job.id for job in jobs), code))
        if len(jobs) == 1 and (against is None or against.cached):
            self.unfeasible[jobs[0].key()] = code
        return against.stops if against is not None else ""

    def _accept(self, candidate: Candidate, places: list[Place]) -> None:
        scheduled = self.outcome.scheduled
        for job, place in zip(candidate.jobs, places, strict=True):
            self.at.home_node[job.id] = place.node
            self.at.run_priority[job.id] = place.priority
            if candidate.evicted:
                self.returned[job.id] = True
                if job.id in scheduled:
                    scheduled[job.id].method = "rescheduled"
            else:
                scheduled[job.id] = place
            if (bucket := self.limiters.preemption.get(self.at.pool.name)) is not None:
                bucket.tokens -= len(place.victims)
        if not candidate.evicted:
            self.placed = plus(self.placed, candidate.request(self.at.zero))
            self.placed_new = plus(self.placed_new, candidate.request(self.at.zero))
            self.limiters.overall.tokens -= len(candidate.jobs)
            self.limiters.queues[candidate.account.queue].tokens -= len(candidate.jobs)
