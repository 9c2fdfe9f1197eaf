"""All rounds of a problem over all pools; answers in the documented form."""

from typing import Any

from tests.oracle.problem import Problem, read_problem
from tests.oracle.round import Bucket, Limiters, Outcome, PoolRound

# Defects of the recording system that the oracle can put back, to prove that one explains a recorded answer.
DEFECTS = frozenset({"27.2", "27.3", "27.5", "27.7", "27.14", "auto-index"})


def decide(values: dict[str, Any], defects: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Decide all rounds: one answer a round, by pool."""
    problem = read_problem(values)
    policy = problem.policy
    limiters = Limiters(
        Bucket(policy.rate.per_second, policy.rate.burst, policy.rate.burst),
        {
            name: Bucket(policy.rate_per_queue.per_second, policy.rate_per_queue.burst, policy.rate_per_queue.burst)
            for name in problem.tenants
        },
        {
            pool.name: Bucket(
                pool.preemption_limit.per_second, pool.preemption_limit.burst, pool.preemption_limit.burst
            )
            for pool in policy.pools
            if pool.preemption_limit is not None
        },
    )
    answers = []
    for number in range(problem.rounds):
        problem.begin_round(number)
        answer = {}
        for bucket in (limiters.overall, *limiters.queues.values(), *limiters.preemption.values()):
            bucket.refill(problem.now_s)
        for pool in policy.pools:
            outcome = PoolRound(problem, pool, limiters, defects).run()
            answer[pool.name] = _answer(problem, outcome)
            _apply(problem, pool.name, outcome)
        answers.append(answer)
    return answers


def _apply(problem: Problem, pool: str, outcome: Outcome) -> None:
    for job_id, place in outcome.scheduled.items():
        job = problem.by_id[job_id]
        job.state, job.node, job.pool = "running", place.node.machine.id, pool
        job.run_priority, job.leased_at = place.priority, problem.now_s
    for job_id in outcome.preempted:
        problem.by_id[job_id].state = "gone"


def _answer(problem: Problem, outcome: Outcome) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "scheduled": {
            job: {"node": place.node.machine.id, "priority": place.priority, "method": place.method}
            for job, place in sorted(outcome.scheduled.items())
        },
        "preempted": {job: {"for": cause} if cause else {} for job, cause in sorted(outcome.preempted.items())},
        "waiting": dict(sorted(outcome.waiting.items())),
        "termination": outcome.termination,
        "queues": {},
    }
    if outcome.shares is not None:
        shares = outcome.shares
        answer["total"] = problem.kinds.quantities(shares.total)
        for account in outcome.accounts:
            allocated = account.allocation(shares.zero)
            answer["queues"][account.name] = {
                "weight": account.weight,
                "fairShare": account.fair_share,
                "demandCappedAdjustedFairShare": account.capped,
                "uncappedAdjustedFairShare": account.uncapped,
                "actualShare": shares.unweighted(allocated),
                "demandShare": shares.unweighted(account.demand),
                "constrainedDemandShare": shares.unweighted(account.constrained),
                "allocated": problem.kinds.quantities(allocated),
            }
    return answer
