"""Submit and QueueService: parse, decide, append, wait until folded, answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from armada.control.commands import changing, queues
from armada.control.commands.permissions import known_queue
from armada.control.commands.situation import Situation
from armada.control.commands.submission.submitting import Submitting, settled_ids
from armada.model.errors import ArmadaError
from armada.model.events import JobSetEvents
from armada.model.jobs import GANG_ID
from armada.model.policy import SchedulingPolicy
from armada.model.submission import Caller, QueueRequest, Submission, SubmissionPolicy
from armada.runtime.identifiers import JobIds
from armada.runtime.telemetry import Metrics
from armada.server.authentication import Authenticator
from armada.server.replica import Replica
from armada.state.ledger import Ledger
from armada.wire import jobs as wire_jobs
from armada.wire import queues as wire_queues
from armada.wire.services import QueueServicer, SubmitServicer, empty, healthy

# ruff: noqa: N802, D102 - methods carry the API's names, and the API says what they do

Context = Any
"""A gRPC call's context (grpc.aio.ServicerContext of whatever messages)."""


class Desk:
    """What all commands share: the ledger they are decided on, the rules, and the way into the log."""

    def __init__(
        self,
        replica: Replica,
        authenticator: Authenticator,
        submission: SubmissionPolicy,
        scheduling: SchedulingPolicy,
        metrics: Metrics,
    ) -> None:
        self.replica = replica
        self.metrics = metrics
        self.submission = submission
        self._authenticator = authenticator
        self._scheduling = scheduling

    async def situation(self, context: Context) -> Situation:
        """Return the situation that a call meets."""
        caller = await self._authenticator.caller(context)
        return self.situation_of(caller)

    def situation_of(self, caller: Caller) -> Situation:
        """Return the situation as it is for this caller now."""
        return Situation(
            ledger=self.replica.ledger,
            caller=caller,
            submission=self.submission,
            scheduling=self._scheduling,
            now_ms=self.replica.now_ms(),
        )

    async def store(self, sequences: tuple[JobSetEvents, ...]) -> None:
        """Append facts and wait until they count here; nothing is no work."""
        if sequences:
            await self.replica.append(sequences)


def _brings_gangs(submission: Submission) -> bool:
    return any(GANG_ID in job.item.annotations for job in submission.jobs)


class QueueCalls:
    """The calls about queues that both services offer."""

    desk: Desk

    async def CreateQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(queues.create(at, wire_queues.queue_request(request)))
        return empty()

    async def UpdateQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(queues.update(at, wire_queues.queue_request(request)))
        return empty()

    async def CreateQueues(self, request: Any, context: Context) -> Any:
        caller = (await self.desk.situation(context)).caller
        failed = await self._each(caller, wire_queues.queue_requests(request), queues.create)
        return wire_queues.create_response(
            [(queues.owned_by(caller, asked) if queues.may_create(caller) else asked, text) for asked, text in failed]
        )

    async def UpdateQueues(self, request: Any, context: Context) -> Any:
        caller = (await self.desk.situation(context)).caller
        return wire_queues.update_response(await self._each(caller, wire_queues.queue_requests(request), queues.update))

    async def _each(
        self,
        caller: Caller,
        requests: list[QueueRequest],
        decide: Callable[[Situation, QueueRequest], tuple[JobSetEvents, ...]],
    ) -> list[tuple[QueueRequest, str]]:
        """Carry out one request after the other; return those that failed, with the reason."""
        failed: list[tuple[QueueRequest, str]] = []
        for request in requests:
            try:
                await self.desk.store(decide(self.desk.situation_of(caller), request))
            except ArmadaError as error:
                failed.append((request, f"{error.code}: {error}"))
        return failed

    async def DeleteQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(queues.delete(at, request.name))
        return empty()

    async def GetQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        return wire_queues.queue_message(known_queue(at.ledger, request.name))

    async def GetQueues(self, request: Any, context: Context) -> AsyncIterator[Any]:
        at = await self.desk.situation(context)
        for queue in queues.listing(at.ledger, request.num):
            yield wire_queues.listed(queue)
        yield wire_queues.end_of_listing()


class QueueService(QueueCalls, QueueServicer):
    """`api.QueueService`."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def CordonQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(queues.cordon(at, request.name, cordoned=True))
        return empty()

    async def UncordonQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(queues.cordon(at, request.name, cordoned=False))
        return empty()

    async def CancelOnQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(changing.cancel_on_queue(at, wire_queues.cancel_on_queue(request)))
        return empty()

    async def PreemptOnQueue(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(changing.preempt_on_queue(at, wire_queues.preempt_on_queue(request)))
        return empty()


class SubmitService(QueueCalls, SubmitServicer):
    """`api.Submit`."""

    def __init__(self, desk: Desk, job_ids: JobIds) -> None:
        self.desk = desk
        self._job_ids = job_ids
        self._submitting = Submitting(desk.submission)
        self._gang_turns: dict[str, asyncio.Lock] = {}

    async def SubmitJobs(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        submission = wire_jobs.submission(request)
        # A gang may be completed by several requests: one that brings members waits for the one before it, so that
        # it is decided on what that one stored.
        async with self._turn(at.ledger, submission):
            decision = self._submitting.decide(at, submission, self._job_ids.draw)
            if not decision.sequences:
                return wire_jobs.submit_response(decision.job_ids)
            position = await self.desk.replica.append(decision.sequences)
        self.desk.metrics.submitted.inc(len(set(decision.job_ids)))
        return wire_jobs.submit_response(settled_ids(at.ledger, submission, decision, position))

    def _turn(self, ledger: Ledger, submission: Submission) -> contextlib.AbstractAsyncContextManager[None]:
        if submission.queue not in ledger.queues or not _brings_gangs(submission):
            return contextlib.nullcontext()
        return self._gang_turns.setdefault(submission.queue, asyncio.Lock())

    async def CancelJobs(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        job_ids, sequences = changing.cancel(at, wire_jobs.cancellation(request))
        await self.desk.store(sequences)
        return wire_jobs.cancel_response(job_ids)

    async def CancelJobSet(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        await self.desk.store(changing.cancel_set(at, wire_jobs.set_cancellation(request)))
        return empty()

    async def ReprioritizeJobs(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        results, sequences = changing.reprioritise(at, wire_jobs.reprioritisation(request))
        await self.desk.store(sequences)
        return wire_jobs.reprioritise_response(results)

    async def PreemptJobs(self, request: Any, context: Context) -> Any:
        at = await self.desk.situation(context)
        results, sequences = changing.preempt(at, wire_jobs.preemption(request))
        await self.desk.store(sequences)
        return wire_jobs.preempt_response(results)

    async def Health(self, request: Any, context: Context) -> Any:
        del request
        await self.desk.situation(context)
        return healthy()
