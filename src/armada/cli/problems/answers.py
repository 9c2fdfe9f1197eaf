"""Decisions in the form of a problem's `expected` (docs/decide.md), so that answers can become vectors."""

from collections.abc import Callable
from typing import Any, Final

from armada.cli.problems.reading import ReadProblem
from armada.cli.problems.trial import rounds
from armada.model.policy import SchedulingPolicy
from armada.model.resources import ResourceKinds
from armada.scheduling.decisions import (
    Decisions,
    IndicativePrice,
    Method,
    PreemptionKind,
    QueueFigures,
    QueueMarket,
    Reason,
)

Answer = dict[str, Any]
"""One pool's answer in one round, or by pool, as JSON-like values."""

METHODS: Final = {
    Method.FREE_ROOM: "no-preemption",
    Method.FAIR_SHARE: "fairshare",
    Method.URGENCY: "urgency",
    Method.AWAY: "away",
    Method.RESCHEDULED: "rescheduled",
    Method.OPTIMISER: "optimiser",
}
PREEMPTIONS: Final = {
    PreemptionKind.FAIR_SHARE: "fairshare",
    PreemptionKind.URGENCY: "urgency",
    PreemptionKind.OPTIMISER: "optimiser",
    PreemptionKind.GANG: "unknown-gang",
    PreemptionKind.DISPLACED: "unknown",
}
WAITING: Final = {
    Reason.NO_FIT: "no_fit",
    Reason.GANG_NO_FIT: "gang_no_fit",
    Reason.FLOATING_EXCEEDED: "floating_resource",
    Reason.LABEL_UNKNOWN: "uniformity_label_unknown",
    Reason.LABEL_NO_FIT: "gang_no_fit",
    Reason.QUEUE_LIMIT: "queue_limit",
    Reason.QUEUE_CORDONED: "queue_cordoned",
    Reason.QUEUE_RATE: "queue_rate",
    Reason.QUEUE_BURST: "queue_burst",
    Reason.QUEUE_RATE_GANG: "queue_rate_gang",
    Reason.GLOBAL_RATE: "global_rate",
    Reason.GLOBAL_BURST: "global_burst",
    Reason.GLOBAL_RATE_GANG: "global_rate_gang",
    Reason.ROUND_LIMIT: "round_limit",
    Reason.GANG_INCOMPLETE: "gang_incomplete",
    Reason.UNSCHEDULED_RESOURCE: "no_fit",
    Reason.LOST_AGAIN: "no_fit",
    Reason.GANG_LOST_AGAIN: "gang_no_fit",
}
"""Codes of reasons. The last two of the list are ours; several of our reasons may share one code."""


def answers(read: ReadProblem) -> list[Answer]:
    """Decide a whole problem: one answer a round, by pool."""
    found: list[Answer] = [{} for _ in range(read.problem.rounds)]
    for trial, pool, decisions in rounds(read):
        found[trial.number][pool] = answer(decisions, trial.policy, trial.job_id)
    return found


def answer(decisions: Decisions, policy: SchedulingPolicy, job_id: Callable[[int], str]) -> Answer:
    """Return one pool's decisions; `job_id` turns the decisions' rows into ids. Jobs are sorted by id."""
    kinds = policy.kinds()
    scheduled: Answer = {}
    for lease in decisions.each_lease():
        place: Answer = {"node": lease.node_id, "priority": lease.priority, "method": METHODS[lease.method]}
        if lease.uniformity is not None:
            place["uniformity"] = {lease.uniformity[0]: lease.uniformity[1]}
        scheduled[job_id(lease.row)] = place
    preempted: Answer = {}
    for lost in decisions.each_preemption():
        preempted[job_id(lost.row)] = {"type": PREEMPTIONS[lost.kind]}
        if lost.for_row >= 0:
            preempted[job_id(lost.row)]["for"] = job_id(lost.for_row)
    waiting = {job_id(row): WAITING[reason] for row, reason in decisions.each_refusal()}
    queues = {figures.name: _figures(figures, kinds) for figures in decisions.queues}
    found: Answer = {
        "scheduled": dict(sorted(scheduled.items())),
        "preempted": dict(sorted(preempted.items())),
        "waiting": dict(sorted(waiting.items())),
        "queues": queues,
        "total": kinds.quantities(decisions.snapshot.rules.total),
        "termination": decisions.termination.name.lower(),
    }
    if decisions.market is not None:
        found["spotPrice"] = decisions.market.spot_price
        if decisions.market.indicative_prices:
            found["indicativePrices"] = {one.name: _price(one) for one in decisions.market.indicative_prices}
        for one in decisions.market.queues:
            queues[one.name].update(_market_figures(one, kinds))
    return found


def _market_figures(figures: QueueMarket, kinds: ResourceKinds) -> Answer:
    found: Answer = {
        "billable": kinds.quantities(figures.billable),
        "idealisedValue": figures.idealised_value,
        "realisedValue": figures.realised_value,
    }
    if figures.price_override is not None:
        found["billablePriceOverride"] = figures.price_override
    return found


def _price(one: IndicativePrice) -> Any:
    return one.price if one.schedulable else one.reason


def _figures(figures: QueueFigures, kinds: ResourceKinds) -> Answer:
    return {
        "weight": figures.weight,
        "fairShare": figures.fair_share,
        "demandCappedAdjustedFairShare": figures.demand_capped_share,
        "uncappedAdjustedFairShare": figures.uncapped_share,
        "actualShare": figures.actual_share,
        "demandShare": figures.demand_share,
        "constrainedDemandShare": figures.constrained_demand_share,
        "allocated": kinds.quantities(figures.allocated),
    }
