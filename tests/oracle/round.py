"""One round of one pool (spec sections 7 and 10): evict, draw, place; again where nodes are over-full."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from armada.model.policy import PoolPolicy
from armada.model.resources import exceeds, fraction_of
from tests.oracle.cluster import CROSS_POOL, EVICTED, Cluster, Node, minus, plus, within
from tests.oracle.placement import Place, Placer
from tests.oracle.problem import Job, Machine, Problem, Vector
from tests.oracle.queues import Account, Candidate, Draw, Shares, Stream, fair_order, limits_of


@dataclass
class Bucket:
    """A token bucket."""

    rate: float
    burst: int
    tokens: float
    at_s: float = 0.0

    def refill(self, now_s: float) -> None:
        self.tokens = min(self.burst, self.tokens + self.rate * (now_s - self.at_s))
        self.at_s = now_s


@dataclass
class Limiters:
    """Token buckets that live as long as the problem."""

    overall: Bucket
    queues: dict[str, Bucket]
    preemption: dict[str, Bucket] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a round of a pool decided."""

    scheduled: dict[str, Place] = field(default_factory=dict)
    preempted: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    accounts: list[Account] = field(default_factory=list)
    shares: Shares | None = None
    termination: str = "completed"


class PoolRound:
    """Everything one pool's round needs; `run` decides it."""

    def __init__(self, problem: Problem, pool: PoolPolicy, limiters: Limiters, defects: frozenset[str]) -> None:
        self.problem = problem
        self.policy = problem.policy
        self.pool = pool
        self.limiters = limiters
        self.defects = defects
        self.zero: Vector = [0] * len(problem.kinds)
        self.outcome = Outcome()
        self.returned: dict[str, bool] = {}
        self.by_priority = False
        guests = [p.name for p in self.policy.pools if pool.name in p.away_pools]
        self.relevant = {pool.name, *pool.away_pools, *guests}
        self.guests = set(guests)
        self.jobs = [job for job in problem.jobs if job.queue in problem.tenants and job.state in {"queued", "running"}]
        self.running = [job for job in self.jobs if job.state == "running"]
        self.queued = [
            job for job in self.jobs if job.state == "queued" and (job.pools is None or pool.name in job.pools)
        ]

    # --- building

    def _machines(self) -> list[Machine]:
        """Nodes of healthy executors in this pool or its away pools."""
        problem = self.problem
        healthy = set()
        for executor in problem.executors.values():
            own = {m.id for m in problem.machines if m.executor == executor.id}
            silent = [j for j in self.running if j.unacknowledged and j.node in own and j.pool in self.relevant]
            if (
                not executor.cordoned
                and executor.heartbeat_ago_s * 1000 <= self.policy.stale_executor_ms
                and len(silent) <= self.policy.max_unacknowledged_leases
            ):
                healthy.add(executor.id)
        pools = {self.pool.name, *self.pool.away_pools}
        return [m for m in problem.machines if m.executor in healthy and m.pool in pools]

    def _build_cluster(self) -> bool:
        """Bind what runs. False when the pool has no nodes."""
        machines = self._machines()
        in_use = [job.priority_class for job in self.jobs if job.state == "running" or job in self.queued]
        default = self.policy.priority_class(self.policy.default_priority_class)
        assert default is not None
        priorities = {default.priority}
        for kind in in_use:
            priorities |= {kind.priority, *(entry.priority for entry in kind.away_node_types)}
        priorities |= {job.run_priority for job in self.running}
        here = {m.id for m in machines}
        low = self.pool.cross_pool_preempted_first
        self.cross_pool = {j.id for j in self.running if j.pool in self.guests and j.node in here}
        foreign = [
            j for j in self.running if j.node in here and j.pool != self.pool.name and j.id not in self.cross_pool
        ]
        by_node = {m.id: m for m in machines}
        taken: dict[str, Vector] = {}
        for job in foreign:
            taken[job.node] = plus(taken.get(job.node, self.zero), job.on_node)
        self.saved_free = {m.id: m.free for m in machines}
        for node_id, amounts in taken.items():
            by_node[node_id].free = minus(by_node[node_id].free, amounts)
        self.cluster = Cluster(self.problem, machines, priorities, self.defects)
        self.placer = Placer(self.problem, self.pool, self.cluster, self.cross_pool if low else set())
        for node in list(self.cluster.nodes):
            bound = [j for j in self.running if j.node == node.machine.id and j not in foreign]
            if not bound and node.machine.unschedulable:
                self.cluster.nodes.remove(node)
                continue
            used = self.zero
            for job in bound:
                used = plus(used, job.on_node)
            if not within(used, node.machine.free):
                node.over_allocated = True
            for job in bound:
                priority = CROSS_POOL if low and job.id in self.cross_pool else job.run_priority
                self.cluster.bind(node, job, priority)
                self.placer.home_node[job.id] = node
                self.placer.run_priority[job.id] = job.run_priority
        return bool(self.cluster.nodes)

    def _build_accounts(self) -> None:
        total = self.zero
        for node in self.cluster.nodes:
            total = plus(total, node.machine.free)
        names = self.problem.kinds.names
        floating = list(self.zero)
        for kind in self.policy.floating_resources:
            if self.pool.name in kind.quantities:
                column = names.index(kind.name)
                floating[column] = self.problem.kinds.vector_down({kind.name: kind.quantities[self.pool.name]})[column]
        self.floating_total = floating
        self.total = plus(total, floating)
        multipliers = {f.name: f.multiplier for f in self.policy.fairness_of(self.pool)}
        self.shares = Shares(self.total, [multipliers.get(name, 0.0) for name in names], self.zero)
        self.accounts: dict[str, Account] = {}
        for name in sorted(self.problem.tenants):
            own = [j for j in self.running if j.queue == name and j.pool == self.pool.name]
            waiting = [j for j in self.queued if j.queue == name]
            if own or waiting:
                self._open(name, own, waiting)
            away = [j for j in self.running if j.queue == name and j.pool in self.guests]
            if "27.7" not in self.defects:
                away = [j for j in away if j.id in self.cross_pool]
            if away:
                self._open_away(name, away)
        self.shares.fill(list(self.accounts.values()))

    def _weight(self, queue: str) -> float:
        factor = self.problem.tenants[queue].factor
        override = self.problem.overrides.get((self.pool.name, queue), 0)
        if override > 0:
            factor = override
        return 1.0 if factor <= 0 else 1.0 / factor

    def _open(self, name: str, own: list[Job], waiting: list[Job]) -> None:
        tenant = self.problem.tenants[name]
        demand: dict[str, Vector] = {}
        allocated: dict[str, Vector] = {}
        for job in own:
            kind = job.priority_class.name
            demand[kind] = plus(demand.get(kind, self.zero), job.request)
            allocated[kind] = plus(allocated.get(kind, self.zero), job.request)
        if not tenant.cordoned:
            for job in waiting:
                kind = job.priority_class.name
                demand[kind] = plus(demand.get(kind, self.zero), job.request)
        wanted, constrained = self.zero, self.zero
        for kind, amounts in demand.items():
            limit = limits_of(self.problem, self.pool, name, kind, self.total)
            wanted = plus(wanted, amounts)
            constrained = plus(constrained, [min(a, b) for a, b in zip(amounts, limit, strict=True)])
        penalty = self.zero
        if self.pool.short_job_penalty_ms:
            for job in self.problem.jobs:
                if job.queue == name and job.finished_pool == self.pool.name and job.penalty_until > self.problem.now_s:
                    penalty = plus(penalty, job.request)
        self.accounts[name] = Account(
            name, name, False, self._weight(name), tenant.cordoned, wanted, constrained, penalty, allocated
        )

    def _open_away(self, name: str, jobs: list[Job]) -> None:
        allocated: dict[str, Vector] = {}
        for job in jobs:
            kind = job.priority_class.name
            allocated[kind] = plus(allocated.get(kind, self.zero), job.request)
        key = f"{name}-away"
        self.accounts[key] = Account(
            key, name, True, self._weight(name), False, self.zero, self.zero, self.zero, allocated
        )

    # --- the steps of a round

    def run(self) -> Outcome:
        outcome = self.outcome
        try:
            has_nodes = self._build_cluster()
            self._build_accounts()
            if has_nodes:
                self._first_pass()
                self._second_pass()
        finally:
            for machine in self.problem.machines:
                if machine.id in getattr(self, "saved_free", {}):
                    machine.free = self.saved_free[machine.id]
        self._conclude()
        return outcome

    def account_of(self, job: Job) -> Account:
        return self.accounts[f"{job.queue}-away" if job.id in self.cross_pool else job.queue]

    def _charge(self, jobs: Iterable[Job], sign: int) -> None:
        for job in jobs:
            account, kind = self.account_of(job), job.priority_class.name
            amounts = [sign * a for a in job.request]
            account.by_class[kind] = plus(account.by_class.get(kind, self.zero), amounts)

    def _evict(self, jobs: list[Job]) -> list[Job]:
        """Evict these and the rest of their gangs, wherever in this pool they run."""
        chosen = list(jobs)
        for job in jobs:
            for node in self.cluster.nodes:
                for seat in node.seats.values():
                    other = seat.job
                    if (
                        job.gang is not None
                        and other.gang is not None
                        and (other.queue, other.gang.id) == (job.queue, job.gang.id)
                        and other not in chosen
                        and not seat.evicted
                    ):
                        chosen.append(other)
        for job in chosen:
            self.cluster.evict(self.placer.home_node[job.id], job)
        self._charge(chosen, -1)
        return chosen

    def _protected(self, account: Account) -> bool:
        divisor = account.uncapped if self.pool.protects_uncapped_share else max(account.capped, account.fair_share)
        used = self.shares.unweighted(account.allocation(self.zero))
        if divisor == 0:
            return used <= 0
        return used / divisor <= self.policy.protected_fraction_of(self.pool)

    def _first_pass(self) -> None:
        protected = {name: self._protected(account) for name, account in self.accounts.items()}
        victims = []
        if self.pool.fairshare_preemption or "27.5" in self.defects:
            for node in self.cluster.nodes:
                for seat in node.seats.values():
                    job = seat.job
                    if job.pool == self.pool.name and job.priority_class.preemptible and not protected[job.queue]:
                        victims.append(job)
        evicted = self._evict(victims)
        self.returned.update(dict.fromkeys((j.id for j in evicted), False))
        self.placer.evicted = self._expected_order(evicted)
        self._pass(evicted, self.queued, second=False)

    def _streams(self, evicted: list[Job], queued: list[Job], *, second: bool) -> list[Stream]:
        streams = []
        sizes: dict[tuple[str, str], int] = {}
        for job in evicted:
            if job.gang is not None:
                key = (job.queue, job.gang.id)
                sizes[key] = sizes.get(key, 0) + 1

        def gang_size(job: Job) -> int:
            assert job.gang is not None
            return sizes[job.queue, job.gang.id] if job.id in evicted_ids else job.gang.cardinality

        evicted_ids = {job.id for job in evicted}

        def skip(job: Job) -> bool:
            code = None if second else self.unfeasible.get(job.key())
            if code is not None:
                self.outcome.waiting[job.id] = code
            return code is not None

        def order(job: Job) -> tuple[Any, ...]:
            fair = fair_order(job)
            if not second:
                return fair
            new = job.state != "running"
            if self.by_priority:
                return (-self.placer.run_priority[job.id], new, *fair)
            return (new, *fair)

        for account in self.accounts.values():
            mine = [j for j in evicted if self.account_of(j) is account]
            fresh = [] if account.away else [j for j in queued if j.queue == account.queue]
            if mine or fresh:
                mine.sort(key=order)
                fresh.sort(key=fair_order)
                streams.append(Stream(account, mine, fresh, self.policy.max_queue_lookback, gang_size, skip))
        return streams

    def _rank(self, candidate: Candidate, *, second: bool) -> tuple[int, ...]:
        late = int(candidate.account.away and self.pool.cross_pool_preempted_first)
        if second:
            return (late, -min(self.placer.run_priority[j.id] for j in candidate.jobs))
        return (late, -min(j.priority_class.priority for j in candidate.jobs))

    def _draw(self, streams: list[Stream], *, second: bool) -> Draw:
        return Draw(
            streams,
            self.shares,
            lambda candidate: self._rank(candidate, second=second),
            prefers_large=self.policy.prefers_large_jobs,
        )

    def _expected_order(self, evicted: list[Job]) -> list[Job]:
        """Simulate who would come back, in which order, if all came back."""
        self.unfeasible: dict[Any, str] = {}
        draw = self._draw(self._streams(evicted, [], second=False), second=False)
        order: list[Job] = []
        while (stream := draw.next()) is not None:
            assert stream.head is not None
            order += stream.head.jobs
            self._charge(stream.head.jobs, 1)
            stream.advance()
        self._charge(order, -1)
        return order

    def _pass(self, evicted: list[Job], queued: list[Job], *, second: bool) -> None:
        self.unfeasible = {}
        self.placed_now = self.zero
        streams = self._streams(evicted, queued, second=second)
        draw = self._draw(streams, second=second)
        budget = self.limiters.preemption.get(self.pool.name)
        self.stopped_queues: set[str] = set()
        frugal = False
        stopped = False
        while True:
            if budget is not None and budget.tokens < 1 and not frugal and not stopped and not second:
                frugal = True
                for stream in streams:
                    stream.only_evicted = True
            stream = draw.next()
            if stream is None:
                if frugal and not stopped:
                    frugal = False
                    budget = None
                    for one in streams:
                        one.only_evicted = one.account.name in self.stopped_queues
                    continue
                break
            candidate = stream.head
            assert candidate is not None
            stop = self._place(candidate, second=second)
            if stop == "all":
                stopped = True
                for one in streams:
                    one.only_evicted = True
            elif stop == "queue":
                self.stopped_queues.add(stream.account.name)
                stream.only_evicted = True
            stream.advance()

    def _place(self, candidate: Candidate, *, second: bool) -> str:
        """Try one gang; says whether new jobs of all queues or of this one have to stop."""
        jobs = candidate.jobs
        new = not candidate.evicted
        if not new and any(j.id in self.placer.lost_to for j in jobs):
            return ""
        if new and self._round_is_full():
            self.outcome.termination = "max_resources"
            return "all"
        self._charge(jobs, 1)
        code, stop, cached = self._constraint(candidate) if new else ("", "", False)
        if not code and not candidate.account.away and self._floats_too_much(jobs):
            code = "floating_resource"
        places = None
        if not code:
            places = self.placer.gang(jobs, evicted=candidate.evicted)
            if places is None:
                code, cached = ("gang_no_fit" if len(jobs) > 1 else "no_fit"), len(jobs) == 1
        if places is None:
            self._charge(jobs, -1)
            if new:
                for job in jobs:
                    self.outcome.waiting[job.id] = code
                if cached and len(jobs) == 1 and not second:
                    self.unfeasible[jobs[0].key()] = code
            return stop
        self._accept(candidate, places, second=second)
        return ""

    def _accept(self, candidate: Candidate, places: list[Place], *, second: bool) -> None:
        del second
        for job, place in zip(candidate.jobs, places, strict=True):
            self.placer.home_node[job.id] = place.node
            self.placer.run_priority[job.id] = place.priority
            if candidate.evicted:
                self.returned[job.id] = True
                if job.id in self.outcome.scheduled:
                    self.outcome.scheduled[job.id].method = "rescheduled"
            else:
                self.outcome.scheduled[job.id] = place
            for victim in place.victims:
                if (bucket := self.limiters.preemption.get(self.pool.name)) is not None:
                    bucket.tokens -= 1
                del victim
        if not candidate.evicted:
            self.placed_now = plus(self.placed_now, candidate.request(self.zero))
            self.limiters.overall.tokens -= len(candidate.jobs)
            self.limiters.queues[candidate.account.queue].tokens -= len(candidate.jobs)

    def _round_is_full(self) -> bool:
        fractions = self.policy.round_fractions_of(self.pool.name)
        most = [
            fraction_of(amount, fractions.get(name, float("inf")))
            for name, amount in zip(self.problem.kinds.names, self.total, strict=True)
        ]
        return exceeds(tuple(self.placed_now), tuple(most))

    def _constraint(self, candidate: Candidate) -> tuple[str, str, bool]:
        """(code, what stops, whether the shape is remembered) of the first limit that is hit."""
        account, size = candidate.account, len(candidate.jobs)
        overall, own = self.limiters.overall, self.limiters.queues[account.queue]
        if account.cordoned:
            return "queue_cordoned", "queue", False
        if overall.tokens < 1:
            self.outcome.termination = "rate_limit"
            return "global_rate", "all", False
        if size > overall.burst:
            return "global_burst", "", True
        if overall.tokens < size:
            return "global_rate_gang", "", False
        if own.tokens < 1:
            return "queue_rate", "queue", False
        if size > own.burst:
            return "queue_burst", "", False
        if own.tokens < size:
            return "queue_rate_gang", "", False
        kind = candidate.jobs[0].priority_class.name
        limit = limits_of(self.problem, self.pool, account.queue, kind, self.total)
        if exceeds(tuple(account.by_class.get(kind, self.zero)), tuple(limit)):
            return "queue_limit", "", False
        gang = candidate.jobs[0].gang
        if gang is not None and gang.uniformity:
            known = gang.uniformity in self.policy.indexed_node_labels or "auto-index" not in self.defects
            if not known or all(gang.uniformity not in n.machine.labels for n in self.cluster.nodes):
                return "uniformity_label_unknown", "", False
        return "", "", False

    def _floats_too_much(self, jobs: list[Job]) -> bool:
        floating = {kind.name for kind in self.policy.floating_resources}
        names = self.problem.kinds.names
        used = self.zero
        for account in self.accounts.values():
            used = plus(used, account.allocation(self.zero))
        for column, name in enumerate(names):
            if (
                name in floating
                and any(job.request[column] > 0 for job in jobs)
                and used[column] > self.floating_total[column]
            ):
                return True
        return False

    def _second_pass(self) -> None:
        victims = []
        for node in self.cluster.nodes:
            negative = {b for b in self.cluster.buckets if b != EVICTED and any(a < 0 for a in node.free[b])}
            for seat in node.seats.values():
                if not seat.evicted and seat.job.priority_class.preemptible and seat.priority in negative:
                    victims.append(seat.job)
        if not victims:
            return
        evicted = self._evict(victims)
        self.placer.evicted = []
        saved = self.cluster.save()
        self._put_back(evicted)
        if "27.14" not in self.defects and self._overfull():
            self.cluster.restore(saved)
            self._charge([job for job in evicted if self.returned[job.id]], -1)
            self.by_priority = True
            self._put_back(evicted)

    def _put_back(self, evicted: list[Job]) -> None:
        self.returned.update(dict.fromkeys((j.id for j in evicted), False))
        self._pass(evicted, [], second=True)

    def _overfull(self) -> bool:
        """Whether a node holds more than it has, by what this round decided."""
        return any(
            not node.over_allocated and any(a < 0 for b in self.cluster.buckets if b != EVICTED for a in node.free[b])
            for node in self.cluster.nodes
        )

    def _conclude(self) -> None:
        outcome = self.outcome
        for job_id, back in self.returned.items():
            if back:
                continue
            job = self.problem.by_id[job_id]
            if job_id in outcome.scheduled:
                del outcome.scheduled[job_id]
                outcome.waiting[job_id] = "no_fit" if job.gang is None else "gang_no_fit"
            else:
                outcome.preempted[job_id] = self.placer.lost_to.get(job_id, "")
        outcome.accounts = list(self.accounts.values())
        outcome.shares = self.shares


def node_of(place: Place) -> Node:
    return place.node
