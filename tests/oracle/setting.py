"""What a pool's round starts from (spec section 7): nodes with what runs on them, and the queues' accounts."""

from collections.abc import Iterable
from hashlib import blake2b

from armada.model.policy import PoolPolicy
from tests.oracle.cluster import CROSS_POOL, Cluster, Node, minus, plus, within
from tests.oracle.problem import Job, Machine, Problem, Vector
from tests.oracle.queues import Account, Shares, limits_of


class Setting:
    """One pool as its round finds it. Machines are left as they were: a round has nodes of its own.

    `extra` are jobs that are not in the problem's queues, but will be placed all the same.
    """

    def __init__(
        self, problem: Problem, pool: PoolPolicy, defects: frozenset[str], extra: tuple[Job, ...] = ()
    ) -> None:
        self.problem = problem
        self.policy = problem.policy
        self.pool = pool
        self.defects = defects
        self.zero: Vector = [0] * len(problem.kinds)
        guests = [p.name for p in self.policy.pools if pool.name in p.away_pools and p.name != pool.name]
        self.relevant = {pool.name, *pool.away_pools, *guests}
        self.guests = set(guests)
        known = [job for job in problem.jobs if job.queue in problem.tenants]
        self.running = [job for job in known if job.state == "running"]
        self.extra = extra
        self.queued = [job for job in known if job.state == "queued" and (job.pools is None or pool.name in job.pools)]
        self.home_node: dict[str, Node] = {}
        self.run_priority: dict[str, int] = {}
        self.cross_pool: set[str] = set()
        self._build_cluster()
        self._build_accounts()

    # --- nodes

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

    def _priorities(self) -> set[int]:
        default = self.policy.priority_class(self.policy.default_priority_class)
        assert default is not None
        priorities = {default.priority} | {job.run_priority for job in self.running}
        for job in (*self.running, *self.queued, *self.extra):
            priorities |= {job.priority_class.priority, *(e.priority for e in job.priority_class.away_node_types)}
        return priorities

    def _build_cluster(self) -> None:
        machines = self._machines()
        self.cluster = Cluster(self.problem, machines, self._priorities(), self.defects)
        own = {m.id for m in machines if m.pool == self.pool.name}
        self.cross_pool = {j.id for j in self.running if j.pool in self.guests and j.node in own}
        for node in list(self.cluster.nodes):
            held = [j for j in self.running if j.node == node.machine.id]
            ours = [j for j in held if j.pool == self.pool.name or j.id in self.cross_pool]
            foreign = self._sum(j.on_node for j in held if j not in ours)
            node.allocatable = minus(node.machine.free, foreign)
            if not ours and (node.machine.unschedulable or not within(self.zero, node.allocatable)):
                # It takes nothing new and keeps nothing of ours: the pool does not count it.
                self.cluster.nodes.remove(node)
                continue
            node.free = {bucket: list(node.allocatable) for bucket in self.cluster.buckets}
            node.over_allocated = not within(self._sum(j.on_node for j in ours), node.allocatable)
            for job in ours:
                self.cluster.bind(node, job, self.bucket_of(job, job.run_priority))
                self.home_node[job.id] = node
                self.run_priority[job.id] = job.run_priority

    def bucket_of(self, job: Job, priority: int) -> int:
        """The priority at which a job takes room."""
        return CROSS_POOL if self.pool.cross_pool_preempted_first and job.id in self.cross_pool else priority

    def _sum(self, vectors: Iterable[Vector]) -> Vector:
        total = self.zero
        for vector in vectors:
            total = plus(total, vector)
        return total

    # --- queues

    def _build_accounts(self) -> None:
        kinds = self.problem.kinds
        floating = list(self.zero)
        for kind in self.policy.floating_resources:
            if self.pool.name in kind.quantities:
                column = kinds.names.index(kind.name)
                floating[column] = kinds.vector_down({kind.name: kind.quantities[self.pool.name]})[column]
        self.floating_total = floating
        on_nodes = self._sum(node.allocatable for node in self.cluster.nodes)
        self.total = plus([max(0, amount) for amount in on_nodes], floating)
        multipliers = {f.name: f.multiplier for f in self.policy.fairness_of(self.pool)}
        self.shares = Shares(self.total, [multipliers.get(name, 0.0) for name in kinds.names], self.zero)
        self.accounts: dict[str, Account] = {}
        for name in sorted(self.problem.tenants):
            own = [j for j in self.running if j.queue == name and j.pool == self.pool.name]
            waiting = [j for j in self.queued if j.queue == name]
            if own or waiting:
                self.accounts[name] = self._account(name, own, waiting)
            away = [j for j in self.running if j.queue == name and j.pool in self.guests]
            if "27.7" not in self.defects:
                away = [j for j in away if j.id in self.cross_pool]
            if away:
                self.accounts[f"{name}-away"] = self._away_account(name, away)
        self.shares.fill(list(self.accounts.values()))
        for account in self.accounts.values():
            account.turn = account.name
            if self.policy.rotates_ties:
                account.turn = blake2b(f"{self.problem.round}/{account.name}".encode(), digest_size=16).hexdigest()

    def _weight(self, queue: str) -> float:
        factor = self.problem.tenants[queue].factor
        override = self.problem.overrides.get((self.pool.name, queue), 0)
        if override > 0:
            factor = override
        return 1.0 if factor <= 0 else 1.0 / factor

    def _by_class(self, jobs: list[Job]) -> dict[str, Vector]:
        amounts: dict[str, Vector] = {}
        for job in jobs:
            kind = job.priority_class.name
            amounts[kind] = plus(amounts.get(kind, self.zero), job.request)
        return amounts

    def _account(self, name: str, own: list[Job], waiting: list[Job]) -> Account:
        tenant = self.problem.tenants[name]
        demand = self._by_class(own if tenant.cordoned else own + waiting)
        constrained = self.zero
        for kind, amounts in demand.items():
            limit = limits_of(self.problem, self.pool, name, kind, self.total)
            constrained = plus(constrained, [min(a, b) for a, b in zip(amounts, limit, strict=True)])
        penalties = [
            job.request
            for job in self.problem.jobs
            if job.queue == name and job.finished_pool == self.pool.name and job.penalty_until > self.problem.now_s
        ]
        return Account(
            name=name,
            queue=name,
            away=False,
            weight=self._weight(name),
            cordoned=tenant.cordoned,
            demand=self._sum(demand.values()),
            constrained=constrained,
            penalty=self._sum(penalties),
            by_class=self._by_class(own),
        )

    def _away_account(self, name: str, jobs: list[Job]) -> Account:
        return Account(
            name=f"{name}-away",
            queue=name,
            away=True,
            weight=self._weight(name),
            cordoned=False,
            demand=self.zero,
            constrained=self.zero,
            penalty=self.zero,
            by_class=self._by_class(jobs),
        )

    def account_of(self, job: Job) -> Account:
        """The account that a job counts in."""
        return self.accounts[f"{job.queue}-away" if job.id in self.cross_pool else job.queue]

    def charge(self, jobs: Iterable[Job], sign: int) -> None:
        """Add jobs to what their queues hold, or take them off."""
        for job in jobs:
            account, kind = self.account_of(job), job.priority_class.name
            amounts = [sign * a for a in job.request]
            account.by_class[kind] = plus(account.by_class.get(kind, self.zero), amounts)
