"""What holds new jobs back: token buckets, and the tests before a new gang is placed (spec section 13)."""

from dataclasses import dataclass, field

from armada.model.policy import RateLimit
from armada.model.resources import exceeds, fraction_of
from tests.oracle.problem import Problem, Vector
from tests.oracle.queues import Candidate, limits_of
from tests.oracle.setting import Setting


@dataclass
class Bucket:
    """A token bucket."""

    rate: float
    burst: int
    tokens: float
    at_s: float = 0.0

    @classmethod
    def full(cls, limit: RateLimit) -> "Bucket":
        return cls(limit.per_second, limit.burst, limit.burst)

    def refill(self, now_s: float) -> None:
        self.tokens = min(self.burst, self.tokens + self.rate * (now_s - self.at_s))
        self.at_s = now_s


@dataclass
class Limiters:
    """Token buckets that live as long as the problem."""

    overall: Bucket
    queues: dict[str, Bucket]
    preemption: dict[str, Bucket] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem) -> "Limiters":
        policy = problem.policy
        return cls(
            Bucket.full(policy.rate),
            {name: Bucket.full(policy.rate_per_queue) for name in problem.tenants},
            {p.name: Bucket.full(p.preemption_limit) for p in policy.pools if p.preemption_limit is not None},
        )

    def refill(self, now_s: float) -> None:
        for bucket in (self.overall, *self.queues.values(), *self.preemption.values()):
            bucket.refill(now_s)


@dataclass
class Objection:
    """Why a new gang is not tried. `stops` is all, queue or nothing more; `cached` if the shape is remembered."""

    code: str
    stops: str = ""
    cached: bool = False
    termination: str = ""


def objection(at: Setting, limiters: Limiters, candidate: Candidate, placed: Vector) -> Objection | None:
    """The first limit that a gang hits; its account's allocation already includes it. `placed`: in this pass.

    A gang that is put back is only tested for floating resources, and one that can't be preempted not even for these.
    """
    if not candidate.evicted:
        for test in (_round_limit, _rates, _queue_limit):
            if found := test(at, limiters, candidate, placed):
                return found
    stays = candidate.evicted and not candidate.jobs[0].priority_class.preemptible
    if not candidate.account.away and not stays and _floats_too_much(at, candidate):
        return Objection("floating_resource")
    gang = candidate.jobs[0].gang
    if not candidate.evicted and gang is not None and gang.uniformity:
        indexed = gang.uniformity in at.policy.indexed_node_labels or "auto-index" not in at.defects
        if not indexed or all(gang.uniformity not in n.machine.labels for n in at.cluster.nodes):
            return Objection("uniformity_label_unknown")
    return None


def _round_limit(at: Setting, limiters: Limiters, candidate: Candidate, placed: Vector) -> Objection | None:
    """Whether this pass has placed more than one round may."""
    del limiters, candidate
    fractions = at.policy.round_fractions_of(at.pool.name)
    most = [
        fraction_of(amount, fractions.get(name, float("inf")))
        for name, amount in zip(at.problem.kinds.names, at.total, strict=True)
    ]
    full = exceeds(tuple(placed), tuple(most))
    return Objection("round_limit", "all", termination="max_resources") if full else None


def _rates(at: Setting, limiters: Limiters, candidate: Candidate, placed: Vector) -> Objection | None:
    """Cordons and token buckets, in order."""
    del at, placed
    account, size = candidate.account, len(candidate.jobs)
    overall, own = limiters.overall, limiters.queues[account.queue]
    tests = (
        (account.cordoned, Objection("queue_cordoned", "queue")),
        (overall.tokens < 1, Objection("global_rate", "all", termination="rate_limit")),
        (size > overall.burst, Objection("global_burst", cached=True)),
        (overall.tokens < size, Objection("global_rate_gang")),
        (own.tokens < 1, Objection("queue_rate", "queue")),
        (size > own.burst, Objection("queue_burst")),
        (own.tokens < size, Objection("queue_rate_gang")),
    )
    return next((found for hit, found in tests if hit), None)


def _queue_limit(at: Setting, limiters: Limiters, candidate: Candidate, placed: Vector) -> Objection | None:
    """Whether the queue would hold more of the class than it may."""
    del limiters, placed
    account, kind = candidate.account, candidate.jobs[0].priority_class.name
    limit = limits_of(at.problem, at.pool, account.queue, kind, at.total)
    return Objection("queue_limit") if exceeds(tuple(account.by_class[kind]), tuple(limit)) else None


def _floats_too_much(at: Setting, candidate: Candidate) -> bool:
    used = at.zero
    for account in at.accounts.values():
        used = [a + b for a, b in zip(used, account.allocation(at.zero), strict=True)]
    floating = {kind.name for kind in at.policy.floating_resources}
    return any(
        name in floating
        and any(job.request[column] > 0 for job in candidate.jobs)
        and used[column] > at.floating_total[column]
        for column, name in enumerate(at.problem.kinds.names)
    )
