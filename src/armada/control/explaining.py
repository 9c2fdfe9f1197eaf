"""Why a job waits, how a queue stands: the latest rounds in words, for people."""

from collections.abc import Mapping

import numpy as np

from armada.control.admitting.eligibility import readable
from armada.control.commands.texts import shortened
from armada.control.cycle import Leader, RoundReport
from armada.model.errors import InvalidRequest
from armada.model.jobs import JOB_ID_LENGTH
from armada.model.lifecycle import JobState
from armada.scheduling.decisions import QueueFigures
from armada.state.ledger import Ledger
from armada.state.records import JobRecord


class Explaining:
    """Answers from what the leader of this replica decided last."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    def pools(self, ledger: Ledger) -> str:
        """Describe the latest round of each pool."""
        del ledger
        parts = [_pool_text(pool, report) for pool, report in sorted(self._leader.reports.items())]
        return "\n\n".join(parts) or "No round has been run yet."

    def queue(self, ledger: Ledger, name: str) -> str:
        """Describe how a queue stands in each pool."""
        if name not in ledger.queues:
            return f"There is no queue {shortened(name)}."
        parts = [
            _queue_text(pool, report, figures)
            for pool, report in sorted(self._leader.reports.items())
            for figures in report.decisions.queues
            if figures.name == name
        ]
        return "\n\n".join(parts) or f"No round has looked at queue {shortened(name)} yet."

    def job(self, ledger: Ledger, job_id: str) -> str:
        """Say where a job stands, and why it waits. Raises InvalidRequest for what can't be a job id."""
        if len(job_id) != JOB_ID_LENGTH:
            raise InvalidRequest(f"{shortened(job_id)} is no job id: one has {JOB_ID_LENGTH} characters")
        job = ledger.job(job_id)
        if job is None:
            return f"Job {job_id} is not known, or has ended."
        if job.state is not JobState.QUEUED:
            run = ledger.run(job.run_id) if job.run_id else None
            where = f" on node {run.node_name} of executor {run.executor_id}" if run is not None else ""
            return f"Job {job_id} is {job.state.name.lower()}{where}."
        return f"Job {job_id} is queued in queue {job.queue}.\n{self._why_queued(ledger, job)}"

    def _why_queued(self, ledger: Ledger, job: JobRecord) -> str:
        queue = ledger.queues.get(job.queue)
        if queue is not None and queue.cordoned:
            return f"Its queue {job.queue} is cordoned."
        waits_for = self._leader.waits_for(job)
        if waits_for:
            return f"It is not scheduled yet: {waits_for}."
        if job.gang is not None:
            members = len(ledger.gang_members(job.queue, job.gang.id))
            if members < job.gang.cardinality:
                return (
                    f"It waits for the rest of its gang {shortened(job.gang.id)}:"
                    f" {members} of {job.gang.cardinality} members are here."
                )
        reasons = self._round_reasons(ledger, job)
        return "\n".join(f"Pool {pool}: {reason}." for pool, reason in reasons.items()) or (
            "No round has looked at it yet: jobs before it in its queue, or other queues, go first."
        )

    def _round_reasons(self, ledger: Ledger, job: JobRecord) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for pool, report in sorted(self._leader.reports.items()):
            row = ledger.row_of(job.job_id, report.order.as_of)
            places = np.flatnonzero(report.decisions.refusals.row == row).tolist() if row is not None else []
            if places:
                found[pool] = report.decisions.reason_text(places[0])
        return found


def _pool_text(pool: str, report: RoundReport) -> str:
    rules = report.order.snapshot.rules
    total = ", ".join(
        f"{readable(name, amount * 10**exponent)} {name}"
        for name, exponent, amount in zip(rules.resources, rules.exponents, rules.total, strict=True)
        if amount
    )
    took_ms = report.finished_ms - report.order.started_ms
    lines = [
        f"Pool {pool}: {len(report.order.snapshot.nodes.ids)} nodes with {total or 'nothing'}",
        f"  the last round leased {report.leased} jobs and preempted {report.preempted}",
        f"  it took {took_ms} ms, and ended because: {report.decisions.termination.name.lower()}",
    ]
    lines.extend(f"  {_share_text(figures)}" for figures in report.decisions.queues)
    return "\n".join(lines)


def _share_text(figures: QueueFigures) -> str:
    return (
        f"queue {figures.name}: share {figures.actual_share:.3f} of a fair share of {figures.fair_share:.3f}"
        f" (weight {figures.weight:g}, demand {figures.demand_share:.3f})"
    )


def _queue_text(pool: str, report: RoundReport, figures: QueueFigures) -> str:
    rules = report.order.snapshot.rules

    def amounts(vector: tuple[int, ...]) -> str:
        return (
            ", ".join(
                f"{readable(name, amount * 10**exponent)} {name}"
                for name, exponent, amount in zip(rules.resources, rules.exponents, vector, strict=True)
                if amount
            )
            or "nothing"
        )

    return (
        f"Pool {pool}: {_share_text(figures)}\n"
        f"  holds {amounts(figures.allocated)}\n"
        f"  asks for {amounts(figures.demand)}"
    )
