"""One exchange with an executor: its heartbeat comes in; runs to end and runs to start go out.

Nothing about an exchange has to be remembered for it to be right: a lease is repeated until the executor reports its
run, and a run that the executor should not have is told to it each time, until it is gone. What the roster keeps is the
time of the last word of each executor, and which of its reports were looked at already.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from armada.model.events import ExecutorReported, JobSetEvents, RunsReleased
from armada.model.fleet import Node
from armada.model.growth import grown, grown_pod
from armada.model.jobs import JobTemplate
from armada.model.leases import LeaseRequest, NodeReport, NodeUsage, RunLease
from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger
from armada.state.records import JobRecord, RunRecord

MAX_RELEASED_PER_FACT: Final = 5_000
_NO_IDS: Final[frozenset[str]] = frozenset()


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor has to be told: runs to end or forget, runs to start (oldest lease first).

    `is_news` is False when nothing is to start and all that is to end was told in the last exchange already.
    """

    cancel_run_ids: tuple[str, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    is_news: bool = False


class _Agent:
    """What is remembered of one executor: its last words.

    `told` are the runs that it was last told to end. `checked` are the held runs that were looked up already, `strange`
    those among them that are none of its runs, and `fleet_version` the state of the fleet at which they were looked up.
    """

    __slots__ = ("checked", "fleet_version", "heard_ms", "held", "reports", "strange", "told", "usage")

    def __init__(self) -> None:
        self.heard_ms = 0
        self.reports: dict[str, NodeReport] = {}
        self.held: frozenset[str] = _NO_IDS
        self.told: frozenset[str] = _NO_IDS
        self.checked: frozenset[str] = _NO_IDS
        self.strange: tuple[str, ...] = ()
        self.fleet_version = -1
        self.usage: tuple[NodeUsage, ...] = ()


class Roster:
    """The executors that speak to this replica."""

    def __init__(self) -> None:
        self._agents: dict[str, _Agent] = {}

    def heard_ms(self, executor_id: str) -> int:
        """Return when the executor was last heard (Unix milliseconds); 0 when never by this replica."""
        agent = self._agents.get(executor_id)
        return agent.heard_ms if agent is not None else 0

    def heartbeats(self) -> Mapping[str, int]:
        """Return the time of the last word of each executor heard so far."""
        return {executor_id: agent.heard_ms for executor_id, agent in self._agents.items()}

    def usage(self) -> Mapping[str, tuple[NodeUsage, ...]]:
        """Return what each executor said last of what jobs use."""
        return {executor_id: agent.usage for executor_id, agent in self._agents.items() if agent.usage}

    def forgive(self, now_ms: int) -> None:
        """Take every executor as heard just now."""
        for agent in self._agents.values():
            agent.heard_ms = now_ms

    def receive(self, ledger: Ledger, request: LeaseRequest, now_ms: int) -> tuple[JobSetEvents, ...]:
        """Take in a request and return what it says that is new: changed nodes, runs whose room is free again."""
        agent = self._agents.setdefault(request.executor_id, _Agent())
        agent.heard_ms = now_ms
        agent.usage = request.usage
        facts: list[ExecutorReported | RunsReleased] = [
            *self._fleet_facts(ledger, agent, request, now_ms),
            *_releases(ledger, request.executor_id, agent.held, now_ms),
        ]
        return tuple(JobSetEvents("", "", (fact,)) for fact in facts)

    def _fleet_facts(
        self, ledger: Ledger, agent: _Agent, request: LeaseRequest, now_ms: int
    ) -> Iterable[ExecutorReported]:
        reports = {report.node.name: report for report in request.nodes if report.node.name}
        agent.held = frozenset(
            [run.run_id for report in reports.values() for run in report.runs] + list(request.unassigned_run_ids)
        )
        record = ledger.executor(request.executor_id)
        unchanged = record is not None and record.pool == request.pool and len(reports) == len(agent.reports)
        if unchanged and all(_same(agent.reports.get(name), report) for name, report in reports.items()):
            agent.reports = reports
            return
        known: dict[str, Node] = {node.name: node for node in record.nodes} if record is not None else {}
        changed = tuple(report.node for name, report in reports.items() if known.get(name) != report.node)
        gone = tuple(name for name in known if name not in reports)
        agent.reports = reports
        if record is None or record.pool != request.pool or changed or gone:
            yield ExecutorReported(
                at_ms=now_ms, executor_id=request.executor_id, pool=request.pool, nodes=changed, gone=gone
            )

    def answer(self, ledger: Ledger, request: LeaseRequest) -> Exchange:
        """Return what the executor has to be told as things are now."""
        agent = self._agents[request.executor_id]
        held = agent.held
        strange = _strange(ledger, agent, request.executor_id)
        to_end = ledger.runs_to_end(request.executor_id)
        ended = [run_id for run_id in to_end if run_id in held]
        cancel = dict.fromkeys([*ended, *strange])
        runs = self._to_start(ledger, request, held)
        room = request.max_leases - len(runs)
        if room > 0:
            live = len(held) - len(cancel)
            runs = (*runs, *_lost(ledger, request.executor_id, held, live)[:room])
        is_news = bool(runs) or any(run_id not in agent.told for run_id in cancel)
        return Exchange(cancel_run_ids=tuple(cancel), runs=runs, is_news=is_news)

    def told(self, executor_id: str, cancel_run_ids: Iterable[str]) -> None:
        """Remember what an executor was told to end: it may take its time with that."""
        self._agents[executor_id].told = frozenset(cancel_run_ids)

    def _to_start(self, ledger: Ledger, request: LeaseRequest, held: frozenset[str]) -> tuple[RunRecord, ...]:
        wanted = request.max_leases
        if wanted <= 0:
            return ()
        # Runs that the executor holds, but has not reported as pending yet, are still among those to start.
        limit = wanted + len(request.unassigned_run_ids)
        runs = ledger.runs_to_start(request.executor_id, limit)
        fresh = [run for run in runs if run.run_id not in held]
        if len(fresh) < wanted and len(runs) == limit:
            fresh = [run for run in ledger.runs_to_start(request.executor_id) if run.run_id not in held]
        return tuple(fresh[:wanted])


def _same(known: NodeReport | None, report: NodeReport) -> bool:
    return known is report or (known is not None and (known.node is report.node or known.node == report.node))


def _strange(ledger: Ledger, agent: _Agent, executor_id: str) -> tuple[str, ...]:
    """Held runs that the ledger does not know, or knows as another executor's. Each is looked up once."""
    if agent.fleet_version != ledger.fleet_version:
        agent.checked, agent.fleet_version = _NO_IDS, ledger.fleet_version
    if agent.held is not agent.checked:
        fresh = sorted(agent.held - agent.checked)
        known = [run_id for run_id in agent.strange if run_id in agent.held and run_id in agent.checked]
        agent.strange = (*known, *(run_id for run_id in fresh if not _is_run_of(ledger, run_id, executor_id)))
        agent.checked = agent.held
    return agent.strange


def _lost(ledger: Ledger, executor_id: str, held: frozenset[str], live: int) -> tuple[RunRecord, ...]:
    """Runs that the executor has said to be pending or running and does not hold any more: it lost them in a restart.

    They are leased to it again, under the same id; if it knows that one is over, it says so instead. `live` is how many
    of the held runs have not ended: while it holds as many as it has confirmed, nothing has to be looked at.
    """
    if ledger.confirmed_count(executor_id) <= live:
        return ()
    missing = [run_id for run_id in ledger.confirmed_runs(executor_id) if run_id not in held]
    return tuple(run for run_id in missing if (run := ledger.run(run_id)) is not None)


def _is_run_of(ledger: Ledger, run_id: str, executor_id: str) -> bool:
    head = ledger.run_head(run_id)
    return head is not None and head.executor_id == executor_id


def _releases(ledger: Ledger, executor_id: str, held: frozenset[str], now_ms: int) -> Iterable[RunsReleased]:
    """Runs that have ended and that the executor does not hold (any more)."""
    released = [run_id for run_id in ledger.runs_to_end(executor_id) if run_id not in held]
    for start in range(0, len(released), MAX_RELEASED_PER_FACT):
        yield RunsReleased(at_ms=now_ms, run_ids=tuple(released[start : start + MAX_RELEASED_PER_FACT]))


def lease_of(run: RunRecord, job: JobRecord, template: JobTemplate, policy: SchedulingPolicy) -> RunLease:
    """Make the lease of a run out of its job and the template that was submitted, with memory as retries grew it."""
    kind = policy.priority_class(job.shape.priority_class)
    if job.growth is not None:
        spec = grown_pod(msgspec.json.decode(template.pod_spec), job.growth)
        template = msgspec.structs.replace(
            template, pod_spec=msgspec.json.encode(spec), shape=grown(template.shape, job.growth)
        )
    return RunLease(
        run_id=run.run_id,
        job_id=job.job_id,
        queue=job.queue,
        job_set=job.job_set,
        owner=job.owner,
        groups=job.groups,
        template=template,
        node_name=run.node_name,
        pool=run.pool,
        preemptible=kind is not None and kind.preemptible,
        tolerations=run.tolerations,
        overlay=run.overlay,
    )


def still_to_start(ledger: Ledger, run_id: str) -> bool:
    """Say if a lease may still be handed out: its run has not ended."""
    state = ledger.run_state(run_id)
    return state is not None and not state.is_terminal
