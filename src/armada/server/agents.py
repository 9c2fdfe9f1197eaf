"""Executors: lease exchanges, held open while there is nothing to say, and reports about runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

from armada.control.commands.permissions import EXECUTE_JOBS, require
from armada.control.leasing import Exchange, Roster, lease_of, still_to_start
from armada.control.reports import Reports
from armada.model.errors import CorruptEntry, InvalidRequest
from armada.model.events import (
    Entry,
    JobCancelled,
    JobSetEvents,
    RunFailed,
    RunLeased,
    RunLeaseExpired,
    RunPreempted,
    RunReturned,
    RunSucceeded,
)
from armada.model.leases import LeaseReply, LeaseRequest, RunLease
from armada.model.policy import SchedulingPolicy
from armada.runtime.telemetry import Log, Metrics
from armada.server.authentication import Authenticator
from armada.server.replica import Replica
from armada.server.templates import Templates
from armada.wire.agents import HOLD_METADATA, LeaseRules, ReportedFleet, lease_reply_messages
from armada.wire.reports import EXECUTOR_METADATA, executor_report
from armada.wire.services import ExecutorApiServicer, empty

# ruff: noqa: N802 - methods of a service carry the API's names

_DROPS_LOGGED: Final = 5
_ENDS_A_RUN: Final = (RunSucceeded, RunFailed, RunReturned, RunPreempted, RunLeaseExpired)

Context = Any
"""A gRPC call's context (grpc.aio.ServicerContext of whatever messages)."""


class Agents:
    """The executors of this replica. Wakes a held exchange when there is something to say."""

    def __init__(  # noqa: PLR0913 - the parts it works with are handed in, never looked up
        self,
        replica: Replica,
        roster: Roster,
        reports: Reports,
        templates: Templates,
        policy: SchedulingPolicy,
        *,
        max_hold_ms: int,
        metrics: Metrics,
        log: Log,
    ) -> None:
        self._replica = replica
        self._roster = roster
        self._reports = reports
        self._templates = templates
        self._policy = policy
        self._max_hold_ms = max_hold_ms
        self._metrics = metrics
        self._log = log
        self._news: dict[str, asyncio.Event] = {}
        replica.on_entry(self._notice)

    def link(self, executor_id: str) -> "AgentLink":
        """Return the control plane as an executor in this process sees it."""
        return AgentLink(self, executor_id)

    def _notice(self, entry: Entry) -> None:
        """Wake the executors that an entry has something to say to."""
        ledger = self._replica.ledger
        for event in entry.events:
            if isinstance(event, RunLeased):
                self._wake(event.executor_id)
            elif isinstance(event, _ENDS_A_RUN):
                self._wake_owner(event.run_id)
            elif isinstance(event, JobCancelled):
                job = ledger.job(event.job_id)
                if job is not None and job.run_id:
                    self._wake_owner(job.run_id)

    def _wake_owner(self, run_id: str) -> None:
        head = self._replica.ledger.run_head(run_id)
        if head is not None:
            self._wake(head.executor_id)

    def _wake(self, executor_id: str) -> None:
        news = self._news.get(executor_id)
        if news is not None:
            news.set()

    def now_ms(self) -> int:
        """Return the time by which reports without one are dated."""
        return self._replica.now_ms()

    async def lease(self, request: LeaseRequest, hold_ms: int = 0) -> LeaseReply:
        """Hold one exchange: at once, or after at most `hold_ms` while there is nothing to say.

        Raises LogFailed when what the executor reports can't be stored.
        """
        if not request.executor_id:
            self._log.warning("an executor without an id asked for leases and gets none")
            return LeaseReply()
        self._metrics.exchanges.labels(request.executor_id).inc()
        ledger = self._replica.ledger
        facts = self._roster.receive(ledger, request, self._replica.now_ms())
        if facts:
            await self._replica.append(facts)
        loop = asyncio.get_running_loop()
        news = self._news.setdefault(request.executor_id, asyncio.Event())
        deadline = loop.time() + min(hold_ms, self._max_hold_ms) / 1_000
        while True:
            news.clear()
            exchange = self._roster.answer(ledger, request)
            if exchange.is_news or loop.time() >= deadline:
                reply = await self._reply(exchange)
                self._roster.told(request.executor_id, reply.cancel_run_ids)
                return reply
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await news.wait()

    async def _reply(self, exchange: Exchange) -> LeaseReply:
        ledger = self._replica.ledger
        leases: list[RunLease] = []
        for run in exchange.runs:
            job = ledger.job(run.job_id)
            if job is None:
                continue
            try:
                template = await self._templates.find(job.spec_position, job.spec_index)
            except CorruptEntry as error:
                self._log.error("a job can't be leased", job=run.job_id, reason=str(error))
                continue
            leases.append(lease_of(run, job, template, self._policy))
        # Reading templates may have taken time: what was cancelled meanwhile is not handed out any more.
        right = tuple(lease for lease in leases if still_to_start(ledger, lease.run_id))
        return LeaseReply(cancel_run_ids=exchange.cancel_run_ids, leases=right)

    def refused(self, executor_id: str, count: int) -> None:
        """Count facts that an executor may not report at all."""
        if count:
            self._metrics.reports_dropped.labels(executor_id or "unknown").inc(count)
            self._log.warning("an executor reported what it may not", executor=executor_id or "unknown", facts=count)

    async def report(self, executor_id: str, sequences: tuple[JobSetEvents, ...]) -> None:
        """Take in what an executor says about its runs; what can't be true is dropped. Raises LogFailed."""
        accepted = self._reports.accept(self._replica.ledger, executor_id, sequences, self._replica.now_ms())
        dropped = [drop for drop in accepted.dropped if not drop.is_repeat]
        if dropped:
            self._metrics.reports_dropped.labels(executor_id or "unknown").inc(len(dropped))
            for drop in dropped[:_DROPS_LOGGED]:
                tell = self._log.info if drop.is_late else self._log.warning
                tell(
                    "a report was dropped",
                    executor=executor_id or "unknown",
                    fact=drop.event,
                    job=drop.job_id,
                    run=drop.run_id,
                    reason=f"it {drop.why}",
                    dropped_with_it=len(dropped) - 1,
                )
        if accepted.sequences:
            await self._replica.append(accepted.sequences)


class AgentLink:
    """The control plane for one executor in the same process."""

    def __init__(self, agents: Agents, executor_id: str) -> None:
        self._agents = agents
        self._executor_id = executor_id

    async def lease(self, request: LeaseRequest, hold_ms: int = 0) -> LeaseReply:
        """Hold one exchange."""
        return await self._agents.lease(request, hold_ms)

    async def report(self, sequences: tuple[JobSetEvents, ...]) -> None:
        """Deliver facts about runs."""
        await self._agents.report(self._executor_id, sequences)


class ExecutorApiService(ExecutorApiServicer):
    """`executorapi.ExecutorApi`: the same for executors on other machines, ours and the reference's."""

    def __init__(self, agents: Agents, authenticator: Authenticator, policy: SchedulingPolicy) -> None:
        self._agents = agents
        self._authenticator = authenticator
        self._fleet = ReportedFleet()
        kinds = [kind.name for kind in policy.resource_types]
        self._rules = LeaseRules(
            node_id_label=policy.node_id_label,
            known_resources=frozenset(kinds),
            priority_class_override=policy.priority_class_override or "",
        )

    async def LeaseJobRuns(self, requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
        """One exchange: one request comes, the answer goes out in several messages."""
        require(await self._authenticator.caller(context), EXECUTE_JOBS, "lease runs")
        hold_ms = _number(context, HOLD_METADATA)
        async for message in requests:
            reply = await self._agents.lease(self._fleet.request(message), hold_ms)
            for answer in lease_reply_messages(reply, rules=self._rules):
                yield answer
            return

    async def ReportEvents(self, request: Any, context: Context) -> Any:
        """Take in events of runs."""
        require(await self._authenticator.caller(context), EXECUTE_JOBS, "report events of runs")
        report = executor_report(request, self._agents.now_ms())
        named = _text(context, EXECUTOR_METADATA) or report.executor_id
        self._agents.refused(named, report.dropped)
        await self._agents.report(named, report.sequences)
        return empty()


def _text(context: Context, key: str) -> str:
    for name, value in context.invocation_metadata() or ():
        if name == key:
            return value if isinstance(value, str) else value.decode("utf-8", "replace")
    return ""


def _number(context: Context, key: str) -> int:
    text = _text(context, key)
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidRequest(f"metadata {key} must be a whole number of milliseconds, not {text[:20]!r}")
    return int(text or 0)
