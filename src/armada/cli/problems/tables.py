"""Decisions for people: who runs where, who has to go, who waits and why; how the queues stand."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from armada.cli import render
from armada.cli.problems.answers import METHODS, PREEMPTIONS, WAITING
from armada.cli.problems.trial import Trial
from armada.model.lifecycle import JobState
from armada.scheduling.decisions import Decisions, MarketFigures

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_ROWS: Final = 200
"""Jobs shown of one kind; `--json` has them all."""


def show_round(trial: Trial, pool: str, decisions: Decisions) -> None:
    """Print one pool's decisions as tables."""
    out = render.console()
    out.print()
    title = (
        f"{trial.problem.id or trial.place}: round {trial.number}, pool {pool} ({decisions.termination.name.lower()})"
    )
    out.print(render.printable(title), style="bold", markup=False)
    out.print(render.table(("job", "queue", "decision", "node", "priority", "how"), _rows(trial, decisions)))
    out.print()
    out.print(
        render.table(
            ("queue", "weight", "fair share", "adjusted", "uses", "wants", "allocated"),
            _queue_rows(trial, decisions),
            right=("weight", "fair share", "adjusted", "uses", "wants"),
        ),
    )
    if decisions.market is not None:
        _show_market(trial, decisions.market)


def _show_market(trial: Trial, market: MarketFigures) -> None:
    """Print the price of a market, what each queue pays and gains, and what gangs would have to bid."""
    out = render.console()
    out.print()
    out.print(f"spot price {market.spot_price:g}" if market.spot_price else "no spot price", markup=False)
    rows = [
        (
            queue.name,
            _amounts(trial, queue.billable),
            f"{market.spot_price if queue.price_override is None else queue.price_override:g}",
            f"{queue.realised_value:.4g}",
            f"{queue.idealised_value:.4g}",
        )
        for queue in market.queues
    ]
    columns = ("queue", "billed", "price", "value", "ideal value")
    out.print(render.table(columns, rows, right=("price", "value", "ideal value")))
    if market.indicative_prices:
        out.print()
        prices = [
            (one.name, f"{one.price:g}" if one.schedulable else "", one.reason) for one in market.indicative_prices
        ]
        out.print(render.table(("gang", "would have to bid", "why not"), prices, right=("would have to bid",)))


def _amounts(trial: Trial, amounts: tuple[int, ...]) -> str:
    named = trial.policy.kinds().quantities(amounts)
    return ", ".join(f"{amount} {name}" for name, amount in named.items()) or "nothing"


def _rows(trial: Trial, decisions: Decisions) -> Iterable[tuple["RenderableType", ...]]:
    queues = {job.id: job.queue for job in trial.problem.jobs}
    runs = [
        (trial.job_id(one.row), "runs", one.node_id, str(one.priority), METHODS[one.method])
        for one in decisions.each_lease()
    ]
    lost = [
        (trial.job_id(one.row), "preempted", one.node_id, "", PREEMPTIONS[one.kind] + _for(trial, one.for_row))
        for one in decisions.each_preemption()
    ]
    waits = [(trial.job_id(row), "waits", "", "", WAITING[reason]) for row, reason in decisions.each_refusal()]
    for kind, rows in (("running", runs), ("preempted", lost), ("waiting", waits)):
        for job, decision, *rest in sorted(rows)[:MAX_ROWS]:
            yield job, queues[job], render.state_text(_STATES[decision]), *rest
        if len(rows) > MAX_ROWS:
            yield f"... {len(rows) - MAX_ROWS:,} more {kind}", "", "", "", "", ""


_STATES: Final = {"runs": "running", "preempted": "preempted", "waits": "queued"}


def _for(trial: Trial, row: int) -> str:
    return f" for {trial.job_id(row)}" if row >= 0 else ""


def _queue_rows(trial: Trial, decisions: Decisions) -> Iterable[tuple[str, ...]]:
    for queue in decisions.queues:
        yield (
            queue.name,
            f"{queue.weight:.4g}",
            f"{queue.fair_share:.4f}",
            f"{queue.demand_capped_share:.4f}",
            f"{queue.actual_share:.4f}",
            f"{queue.demand_share:.4f}",
            _amounts(trial, queue.allocated),
        )


def explain(trial: Trial, pool: str, decisions: Decisions, job_id: str) -> None:
    """Print all that the round has to say about one job."""
    facts = [("job", job_id), ("round", f"{trial.number}, pool {pool}"), *story(trial, decisions, job_id)]
    out = render.console()
    out.print()
    out.print(render.fields(facts))


def story(trial: Trial, decisions: Decisions, job_id: str) -> list[tuple[str, str]]:
    """Return what the round says about one job: names and texts."""
    spec = next(job for job in trial.problem.jobs if job.id == job_id)
    story = [("queue", spec.queue)]
    figures = next((one for one in decisions.queues if one.name == spec.queue), None)
    if figures is not None:
        shares = (
            f"uses {figures.actual_share:.4f}, may use {figures.demand_capped_share:.4f}"
            f" (fair share {figures.fair_share:.4f}), wants {figures.demand_share:.4f} of the pool"
        )
        story.append(("queue's shares", shares))
    for lease in decisions.each_lease():
        if trial.job_id(lease.row) == job_id:
            text = f"runs on {lease.node_id} at priority {lease.priority} ({METHODS[lease.method]})"
            if lease.uniformity is not None:
                text += f"; its gang shares {lease.uniformity[0]}={lease.uniformity[1]}"
            return [*story, ("decision", text)]
    for lost in decisions.each_preemption():
        if trial.job_id(lost.row) == job_id:
            text = f"preempted on {lost.node_id}: {PREEMPTIONS[lost.kind]}{_for(trial, lost.for_row)}"
            return [*story, ("decision", text)]
    for index, (row, reason) in enumerate(decisions.each_refusal()):
        if trial.job_id(row) == job_id:
            why: list[Any] = decisions.reason_text(index).split("; ")
            return [*story, ("decision", f"waits ({WAITING[reason]})"), ("why", "\n".join(why))]
    return [*story, ("decision", _untouched(trial, job_id))]


def _untouched(trial: Trial, job_id: str) -> str:
    state = trial.ledger.job_state(job_id)
    if state is None or state.is_terminal:
        return "is not there in this round"
    if state is JobState.QUEUED:
        return "waits; the round ended before it was its turn, or it may not use this pool"
    record = trial.ledger.job(job_id)
    run = trial.ledger.run(record.run_id) if record is not None else None
    return f"keeps running on {run.node_id}" if run is not None else "keeps running"
