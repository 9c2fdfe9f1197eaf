"""Accounts of rounds in words, for people; verbosity 0 names, higher ones tell more."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from armada.control.accounts.figures import JobAccount, Moved, QueueAccount, RoundAccount
from armada.control.admitting.eligibility import readable
from armada.model.resources import Vector
from armada.scheduling.decisions import REASON_TEXTS, MarketFigures, QueueFigures, QueueMarket, Termination
from armada.scheduling.snapshot import PoolSnapshot

NamedJob = Callable[[int], str]
"""The id of the job of a row, or an empty text when it has left."""

_ENDS: Final = {
    Termination.COMPLETED: "every queue had its turn (completed)",
    Termination.RATE_LIMIT: "the scheduling rate was used up (rate_limit)",
    Termination.MAX_RESOURCES: "it had placed as much as one round may (max_resources)",
    Termination.SOFT_TIMEOUT: "its time for new jobs was used up (soft_timeout)",
    Termination.TIMEOUT: "its time was used up, so that nothing was decided (timeout)",
}

MAX_REASONS: Final = 10
"""Reasons that a queue's account lists below verbosity 1."""


def round_text(account: RoundAccount, snapshot: PoolSnapshot, named: NamedJob, verbosity: int = 0) -> str:
    """Tell of a round: queues by name, from verbosity 1 on each with its account (at two levels less)."""
    took_ms = account.finished_ms - account.started_ms
    lines = [
        f"Pool {account.pool}: {account.nodes} nodes with {amounts(snapshot, account.capacity)}",
        f"  the last round began {moment(account.started_ms)}, ended {moment(account.finished_ms)}, took {took_ms} ms",
        f"  it ended because: {_ENDS[account.termination]}",
        f"  leased {_moved(snapshot, account.leased)}",
        f"  preempted {_moved(snapshot, account.preempted)}",
        f"  {_jobs(account.put_back)} competed for a place again, and kept it",
    ]
    if account.optimised.jobs:
        lines.append(f"  preempted by the fairness optimiser {_moved(snapshot, account.optimised)}")
    if account.market is not None:
        lines += _market(account.market, verbosity)
    for each in account.indicative_shares if verbosity > 0 else ():
        lines.append(f"  a new queue of priority factor {each.priority} would get a share of {each.share:.3f}")
    for heading, chosen in (
        ("queues with leased jobs", [queue for queue in account.queues if queue.leased.jobs]),
        ("queues with preempted jobs", [queue for queue in account.queues if _lost(queue)]),
    ):
        lines.append(f"  {heading}: {', '.join(queue.name for queue in chosen) or 'none'}")
    if verbosity <= 0:
        lines.extend(f"  {share_text(queue.figures)}" for queue in account.queues)
    else:
        for queue in account.queues:
            lines.extend(f"  {line}" for line in queue_text(queue, snapshot, named, verbosity - 2).splitlines())
    return "\n".join(lines)


def _market(market: MarketFigures, verbosity: int) -> list[str]:
    """Tell prices; those of gangs that nobody submitted from verbosity 1 on."""
    price = f"spot price {market.spot_price:g}" if market.spot_price else "no spot price: the pool is not full enough"
    lines = [f"  {price}"]
    for each in market.indicative_prices if verbosity > 0 else ():
        told = f"would have to bid {each.price:g}" if each.schedulable else f"has no price: {each.reason}"
        lines.append(f"  a gang of kind {each.name} {told}")
    return lines


def _lost(queue: QueueAccount) -> int:
    return queue.preempted.jobs + queue.optimised.jobs


def queue_text(account: QueueAccount, snapshot: PoolSnapshot, named: NamedJob, verbosity: int = 0) -> str:
    """Tell how a queue came out of a round; amounts by priority class from verbosity 1 on."""
    lines = [
        f"{share_text(account.figures)}, at {moment(account.finished_ms)}",
        f"  holds {amounts(snapshot, account.figures.allocated)}",
    ]
    by_class = verbosity > 0
    if by_class:
        lines += _classes(snapshot, account.allocated_by_class)
    lines.append(f"  asks for {amounts(snapshot, account.figures.demand)}")
    for verb, moved in (
        ("leased", account.leased),
        ("preempted", account.preempted),
        ("preempted by the fairness optimiser", account.optimised),
    ):
        if not moved.jobs and verbosity <= 0:
            continue
        lines.append(f"  {verb} {_moved(snapshot, moved)}{_sample(moved.jobs, named(moved.sample_row))}")
        if by_class:
            lines += _classes(snapshot, moved.by_class)
    if account.market is not None:
        lines.append(f"  {_bill(snapshot, account.market)}")
    shown = account.waiting if by_class else account.waiting[:MAX_REASONS]
    for waiting in shown:
        sample = _sample(waiting.jobs, named(waiting.sample_row))
        lines.append(f"  {_jobs(waiting.jobs)} not placed: {REASON_TEXTS[waiting.reason]}{sample}")
    if account.unreached:
        lines.append(f"  {_jobs(account.unreached)} not looked at: others went first")
    return "\n".join(lines)


def _bill(snapshot: PoolSnapshot, market: QueueMarket) -> str:
    price = "the spot price" if market.price_override is None else f"{market.price_override:g}"
    worth = f"worth {market.realised_value:g} to it, ideally {market.idealised_value:g}"
    return f"pays for {amounts(snapshot, market.billable)} at {price}; what it holds is {worth}"


def share_text(figures: QueueFigures) -> str:
    """Tell a queue's shares in one line."""
    return (
        f"queue {figures.name}: share {figures.actual_share:.3f} of a fair share of {figures.fair_share:.3f}"
        f" (weight {figures.weight:g}, demand {figures.demand_share:.3f})"
    )


def job_text(account: JobAccount) -> str:
    """Tell how a job fared in a round of some pool."""
    lines = [_outcome(account)]
    lines.append(f"  the round of {moment(account.finished_ms)} had {account.nodes} nodes")
    lines.extend(f"  {exclusion}" for exclusion in account.exclusions)
    return "\n".join(lines)


def _outcome(account: JobAccount) -> str:
    match account.outcome:
        case "leased":
            method = account.method.name.lower().replace("_", " ") if account.method is not None else ""
            return f"leased to node {account.node_id} ({method})"
        case "preempted":
            return f"preempted on node {account.node_id}"
        case "kept":
            return f"running on node {account.node_id}, and not touched" if account.node_id else "running"
        case "refused":
            return account.text.partition(";")[0]
        case _:
            return "no reason, the round did not get to it: jobs before it in its queue, or other queues, went first"


def moment(ms: int) -> str:
    """Write a time as in RFC 3339, to the millisecond."""
    return datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def amounts(snapshot: PoolSnapshot, vector: Vector) -> str:
    """Write what is not zero of a vector."""
    rules = snapshot.rules
    return (
        ", ".join(
            f"{readable(name, amount * 10**exponent)} {name}"
            for name, exponent, amount in zip(rules.resources, rules.exponents, vector, strict=True)
            if amount
        )
        or "nothing"
    )


def _moved(snapshot: PoolSnapshot, moved: Moved) -> str:
    gangs = f" ({moved.gangs} gang{'s' if moved.gangs > 1 else ''})" if moved.gangs else ""
    return f"{_jobs(moved.jobs)}{gangs} with {amounts(snapshot, moved.total)}" if moved.jobs else "no jobs"


def _classes(snapshot: PoolSnapshot, by_class: Mapping[str, Vector]) -> list[str]:
    return [f"    {name}: {amounts(snapshot, vector)}" for name, vector in sorted(by_class.items())]


def _sample(jobs: int, job_id: str) -> str:
    if not job_id:
        return ""
    return f" ({job_id})" if jobs == 1 else f" ({job_id} and {jobs - 1} more)"


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
