"""Why a job waits, how a queue stands: the latest rounds in words, for people."""

from armada.control.accounts.figures import job_account, queue_accounts, round_account
from armada.control.accounts.words import NamedJob, job_text, queue_text, round_text
from armada.control.commands.texts import shortened
from armada.control.cycle import Leader
from armada.control.rounds.planning import RoundReport
from armada.model.errors import InvalidRequest
from armada.model.jobs import JOB_ID_LENGTH
from armada.model.lifecycle import JobState
from armada.state.ledger import Ledger
from armada.state.records import JobRecord


class Explaining:
    """Answers from what the leader of this replica decided last."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    def pools(self, ledger: Ledger, verbosity: int = 0) -> str:
        """Describe the latest round of each pool."""
        parts = self._failures()
        parts += [
            round_text(round_account(report), report.order.snapshot, _names(ledger, report), verbosity)
            for _, report in sorted(self._leader.reports.items())
        ]
        return "\n\n".join(parts) or "No round has been run yet."

    def _failures(self) -> list[str]:
        return [
            f"Pool {pool} can't be decided: {failure.reason}."
            for pool, failure in sorted(self._leader.failures.items())
        ]

    def queue(self, ledger: Ledger, name: str, verbosity: int = 0) -> str:
        """Describe how a queue stands in each pool."""
        if name not in ledger.queues:
            return f"There is no queue {shortened(name)}."
        parts = self._failures()
        parts += [
            f"Pool {pool}: {queue_text(account, report.order.snapshot, _names(ledger, report), verbosity)}"
            for pool, report in sorted(self._leader.reports.items())
            for account in queue_accounts(report, name)
        ]
        return "\n\n".join(parts) or f"No round has looked at queue {shortened(name)} yet."

    def job(self, ledger: Ledger, job_id: str) -> str:
        """Say where a job stands, and why it waits. Raises InvalidRequest for what can't be a job id."""
        if len(job_id) != JOB_ID_LENGTH:
            raise InvalidRequest(f"{shortened(job_id)} is no job id: one has {JOB_ID_LENGTH} characters")
        job = ledger.job(job_id)
        if job is None:
            return f"Job {job_id} is not known, or has ended."
        rounds = "".join(f"\nPool {pool}: {text}" for pool, text in self._rounds_of(ledger, job_id))
        if job.state is not JobState.QUEUED:
            run = ledger.run(job.run_id) if job.run_id else None
            where = f" on node {run.node_name} of executor {run.executor_id}" if run is not None else ""
            is_gone = run is not None and ledger.node(run.node_id) is None
            gone = " That node is not reported any more." if is_gone else ""
            return f"Job {job_id} is {job.state.name.lower()}{where}.{gone}{rounds}"
        waits = "\n".join(filter(None, [self._waits_before_rounds(ledger, job), *self._failures()]))
        if not (waits or rounds):
            waits = "No round has looked at it yet."
        return "\n".join(filter(None, [f"Job {job_id} is queued in queue {job.queue}.", waits])) + rounds

    def _waits_before_rounds(self, ledger: Ledger, job: JobRecord) -> str:
        """Say what keeps a queued job from being looked at; empty when nothing does."""
        queue = ledger.queues.get(job.queue)
        if queue is not None and queue.cordoned:
            return f"Its queue {job.queue} is cordoned."
        waits_for = self._leader.waits_for(job)
        if waits_for:
            return f"It is not scheduled yet: {waits_for}."
        members = len(ledger.gang_members(job.queue, job.gang.id)) if job.gang is not None else 0
        if job.gang is not None and members < job.gang.cardinality:
            return (
                f"It waits for the rest of its gang {shortened(job.gang.id)}:"
                f" {members} of {job.gang.cardinality} members are here."
            )
        return ""

    def _rounds_of(self, ledger: Ledger, job_id: str) -> list[tuple[str, str]]:
        """Return per pool how the job fared in the latest round that knew it."""
        found: list[tuple[str, str]] = []
        for pool, report in sorted(self._leader.reports.items()):
            row = ledger.row_of(job_id, report.order.as_of)
            account = job_account(report, row) if row is not None else None
            if account is not None:
                found.append((pool, job_text(account)))
        return found


def _names(ledger: Ledger, report: RoundReport) -> NamedJob:
    """Return what names the jobs of a round, as far as they are still here."""
    return lambda row: (ledger.job_at(row, report.order.as_of) if row >= 0 else None) or ""
