"""All rounds of a problem over all pools; answers in the documented form."""

from typing import Any

from armada.model.policy import PoolPolicy
from tests.oracle.limits import Limiters
from tests.oracle.market import ideal_problem
from tests.oracle.problem import Problem, read_problem
from tests.oracle.round import Outcome, PoolRound
from tests.oracle.setting import Setting
from tests.oracle.submit_check import check

# Defects of the recording system that the oracle can put back, to prove that one explains a recorded answer.
DEFECTS = frozenset({"27.2", "27.3", "27.5", "27.7", "27.8", "27.12", "27.14", "auto-index"})


def decide(values: dict[str, Any], defects: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Decide all rounds: one answer a round, by pool."""
    problem = read_problem(values)
    limiters = Limiters.of(problem)
    answers = []
    optimised: dict[str, float] = {}
    for number in range(problem.rounds):
        problem.begin_round(number)
        limiters.refill(problem.now_s)
        answer = {}
        for pool in problem.policy.pools:
            due = _optimises(pool, optimised, problem.now_s)
            decided = PoolRound(problem, pool, limiters, defects, optimises=due)
            outcome = decided.run()
            answer[pool.name] = _answer(problem, decided.at, outcome)
            if decided.market is not None:
                _add_market(answer[pool.name], decided)
            _apply(problem, pool.name, outcome)
        answers.append(answer)
    return answers


def _optimises(pool: PoolPolicy, optimised: dict[str, float], now_s: float) -> bool:
    """Whether the optimiser's interval has gone by since it last took part."""
    if pool.optimiser is None:
        return False
    due = pool.name not in optimised or (now_s - optimised[pool.name]) * 1000 >= pool.optimiser.interval_ms
    if due:
        optimised[pool.name] = now_s
    return due


def check_submissions(values: dict[str, Any], defects: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Answer a problem that asks for the submit check."""
    return {"check": check(read_problem(values), defects)}


def _apply(problem: Problem, pool: str, outcome: Outcome) -> None:
    for job_id, place in outcome.scheduled.items():
        job = problem.by_id[job_id]
        job.state, job.node, job.pool = "running", place.node.machine.id, pool
        job.run_priority, job.leased_at = place.priority, problem.now_s
    for job_id in outcome.preempted:
        problem.by_id[job_id].state = "gone"


def _add_market(answer: dict[str, Any], decided: PoolRound) -> None:
    """Add prices and values."""
    at, market = decided.at, decided.market
    assert market is not None
    market.settle({job for job, back in decided.returned.items() if not back})
    answer["spotPrice"] = market.spot_price or 0.0
    lost = decided.outcome.preempted
    kept = [at.problem.by_id[job] for job in decided.outcome.scheduled]
    kept += [j for j in at.running if j.pool == at.pool.name and j.id not in lost and j.id in at.home_node]
    anew = PoolRound(ideal_problem(at), at.pool, Limiters.of(ideal_problem(at)), at.defects)
    if anew.at.cluster.nodes:
        anew.first_pass()
    ideal = [anew.at.problem.by_id[job] for job in anew.outcome.scheduled]
    for name, figures in answer["queues"].items():
        figures["billable"] = at.problem.kinds.quantities(market.billable.get(name, at.zero))
        figures["idealisedValue"] = sum(market.value(job, running=False) for job in ideal if job.queue == name)
        figures["realisedValue"] = sum(market.value(job, running=True) for job in kept if job.queue == name)
        if name in market.override:
            figures["billablePriceOverride"] = market.override[name]


def _answer(problem: Problem, at: Setting, outcome: Outcome) -> dict[str, Any]:
    shares, quantities = at.shares, problem.kinds.quantities
    return {
        "scheduled": {
            job: {"node": place.node.machine.id, "priority": place.priority, "method": place.method}
            for job, place in sorted(outcome.scheduled.items())
        },
        "preempted": {job: {"for": cause} if cause else {} for job, cause in sorted(outcome.preempted.items())},
        "waiting": dict(sorted(outcome.waiting.items())),
        "termination": outcome.termination,
        "total": quantities(at.total),
        "queues": {
            account.name: {
                "weight": account.weight,
                "fairShare": account.fair_share,
                "demandCappedAdjustedFairShare": account.capped,
                "uncappedAdjustedFairShare": account.uncapped,
                "actualShare": shares.unweighted(account.allocation(shares.zero)),
                "demandShare": shares.unweighted(account.demand),
                "constrainedDemandShare": shares.unweighted(account.constrained),
                "allocated": quantities(account.allocation(shares.zero)),
            }
            for account in at.accounts.values()
        },
    }
