"""The executor's shell: steps the agent, carries its instructions out, and talks to the control plane.

One task drives the agent; creations, deletions, reports and lease exchanges run beside it and post what came of them.
Nothing is decided here.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

import msgspec
import structlog

from armada.executor.agent import Agent
from armada.executor.clock import wall_clock_ms
from armada.executor.cluster import Cluster, ClusterUnavailable, Creation, LogLine, LogRequest, Outcome, PodDeletion
from armada.executor.holding.stimuli import (
    Acknowledged,
    AgentSettings,
    Changed,
    Created,
    DeletionFailed,
    Draining,
    ExchangeFailed,
    Figures,
    Instructions,
    Listed,
    Replied,
    ReportFailed,
    Stimulus,
)
from armada.executor.journal import Journal
from armada.executor.pods import PodOrder
from armada.model.errors import ArmadaError, InvalidRequest, LimitExceeded, StartupRefused
from armada.model.events import JobSetEvents
from armada.model.leases import LeaseReply, LeaseRequest

EXCHANGE_TIMEOUT_S: Final = 30.0
"""An exchange may take this long, besides the time that the server was asked to hold it."""
REPORT_TIMEOUT_S: Final = 60.0
FLUSH_TIMEOUT_S: Final = 5.0
"""A service that stops waits this long for its facts to be acknowledged."""
HEALTHY_SILENCE_MS: Final = 300_000
"""Without any answer of the control plane for this long the service is unhealthy."""
_WATCH_RETRY_S: Final = 1.0
_WARNING_GAP_S: Final = 10.0
_CLOCK_SLACK_MS: Final = 1_000
"""Clocks that differ by less have not been set: one of them only ticked."""

_logger = structlog.get_logger("armada.executor")


class ControlPlane(Protocol):
    """The other side. Errors are those of `model.errors`; everything but a refusal is tried again."""

    async def lease(self, request: LeaseRequest, hold_ms: int = 0) -> LeaseReply:
        """One exchange. The server may keep it open for `hold_ms` while there is nothing to say; may be cancelled."""
        ...

    async def report(self, sequences: tuple[JobSetEvents, ...]) -> None:
        """Deliver facts; they are durable when this returns."""
        ...


class ExecutorService:
    """One executor: a cluster, a control plane, and the agent between them.

    `clock_ms` is the time that the cluster goes by too; facts are dated by `wall_ms` where the two have parted.
    """

    def __init__(  # noqa: PLR0913 - parts and clocks are handed in, never looked up
        self,
        *,
        cluster: Cluster,
        control_plane: ControlPlane,
        settings: AgentSettings,
        journal: Journal | None = None,
        clock_ms: Callable[[], int] = wall_clock_ms,
        wall_ms: Callable[[], int] | None = None,
    ) -> None:
        self.settings = settings
        self._cluster = cluster
        self._control_plane = control_plane
        self._journal = journal
        self._clock_ms = clock_ms
        self._wall_ms = wall_ms or clock_ms
        self._agent: Agent | None = None
        self._inbox: list[Stimulus] = []
        self._stirred = asyncio.Event()
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._exchange: asyncio.Task[None] | None = None
        self._is_abandoned = False
        self._answered_ms = 0
        self._warned_s: dict[str, float] = {}
        self._is_draining = False
        self._flushed = asyncio.Event()

    # -- life

    async def start(self) -> None:
        """Open the journal and list the cluster. Raises StartupRefused when either is impossible."""
        remembered = self._journal.open() if self._journal is not None else {}
        try:
            listing = await self._cluster.list()
        except ClusterUnavailable as error:
            raise StartupRefused(
                f"the cluster of executor {self.settings.executor_id} can't be listed: {error}"
            ) from error
        self._agent = Agent(self.settings, remembered)
        self._answered_ms = self._clock_ms()
        self._post(Listed(listing))

    async def run(self) -> None:
        """Work until `stop` is called; `start` must have been. Pods go on when it returns."""
        if self._agent is None:
            await self.start()
        self._spawn(self._watch())
        try:
            await self._drive()
        finally:
            await self._end_tasks()
            await self._cluster.close()
            if self._journal is not None:
                self._journal.close()
            self._flushed.set()

    async def stop(self) -> None:
        """Take no more leases, deliver what can be delivered within `FLUSH_TIMEOUT_S`, and end `run`."""
        if self._stopping.is_set():
            return
        self._is_draining = True
        self._post(Draining())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._flushed.wait(), FLUSH_TIMEOUT_S)
        self._stopping.set()
        self._stirred.set()

    @property
    def is_healthy(self) -> bool:
        """False when the control plane has not answered for a long time."""
        return self._clock_ms() - self._answered_ms < HEALTHY_SILENCE_MS

    def figures(self) -> Figures:
        """Counts for metrics."""
        if self._agent is None:
            return Figures(held={}, facts_waiting=0, pods_kept=0, facts_dropped=0, nodes=0)
        return self._agent.figures()

    async def read_log(self, request: LogRequest) -> Sequence[LogLine]:
        """Lines of a pod's output. Raises NotFound, InvalidRequest, ClusterUnavailable."""
        return await self._cluster.read_log(request)

    # -- the loop

    def _post(self, stimulus: Stimulus) -> None:
        self._inbox.append(stimulus)
        self._stirred.set()

    async def _drive(self) -> None:
        agent = self._agent
        if agent is None:
            raise RuntimeError("start() comes first")
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            self._stirred.clear()
            stimuli, self._inbox = self._inbox, []
            instructions = agent.step(self._clock_ms(), stimuli)
            self._carry_out(instructions)
            if self._is_draining and not agent.has_facts:
                self._flushed.set()
            if self._inbox:
                await asyncio.sleep(0)
                continue
            sleep_s = max(instructions.wake_at_ms - self._clock_ms(), 1) / 1000
            timer = loop.call_later(sleep_s, self._stirred.set)
            try:
                await self._stirred.wait()
            finally:
                timer.cancel()

    def _carry_out(self, instructions: Instructions) -> None:
        if instructions.marks and self._journal is not None:
            try:
                self._journal.write(instructions.marks)
            except OSError as error:
                self._warn("journal", f"the journal can't be written: {error}")
        if instructions.delete or instructions.proceed:
            self._spawn(self._delete(instructions.delete, proceed=instructions.proceed))
        if instructions.create:
            self._spawn(self._create(instructions.create))
        if instructions.report:
            self._spawn(self._report(instructions.report))
        if instructions.abandon and self._exchange is not None:
            self._is_abandoned = True
            self._exchange.cancel()
        if instructions.exchange is not None:
            self._is_abandoned = False
            self._exchange = self._spawn(self._lease(instructions.exchange))
        for warning in instructions.warnings:
            _logger.warning(warning, executor=self.settings.executor_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _logger.error(
                "a part of the executor failed", executor=self.settings.executor_id, exc_info=task.exception()
            )

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- the cluster

    async def _watch(self) -> None:
        is_lost = False
        while True:
            try:
                if is_lost:
                    self._post(Listed(await self._cluster.list()))
                    is_lost = False
                self._post(Changed(await self._cluster.changes()))
            except ClusterUnavailable as error:
                is_lost = True
                self._warn("watch", f"the cluster can't be watched: {error}")
                await asyncio.sleep(_WATCH_RETRY_S)

    async def _create(self, orders: Sequence[PodOrder]) -> None:
        try:
            creations = tuple(await self._cluster.create(orders))
        except ClusterUnavailable as error:
            creations = tuple(Creation(order.run_id, Outcome.FAILED, str(error)) for order in orders)
        except Exception as error:  # noqa: BLE001 - whatever a cluster raises, its orders must be answered
            self._warn("create", f"creating pods failed: {error!r}")
            creations = tuple(Creation(order.run_id, Outcome.FAILED, repr(error)) for order in orders)
        self._post(Created(creations))

    async def _delete(self, deletions: tuple[PodDeletion, ...], *, proceed: bool) -> None:
        try:
            await self._cluster.delete(deletions)
        except Exception as error:  # noqa: BLE001 - whatever a cluster raises, the deletions must be tried again
            self._warn("delete", f"deleting pods failed: {error!r}")
            self._post(DeletionFailed(deletions))
        if proceed:
            await self._cluster.proceed()

    # -- the control plane

    async def _lease(self, request: LeaseRequest) -> None:
        # The first answer is wanted at once: pods from before this service wait for it.
        hold_ms = self.settings.hold_ms if self._agent is not None and self._agent.is_heard else 0
        try:
            async with asyncio.timeout(hold_ms / 1000 + EXCHANGE_TIMEOUT_S):
                reply = await self._control_plane.lease(request, hold_ms)
        except asyncio.CancelledError:
            if not self._is_abandoned:
                raise
            self._post(ExchangeFailed(was_abandoned=True))
        except (ArmadaError, TimeoutError, OSError) as error:
            self._warn("lease", f"no leases: {error or type(error).__name__}")
            self._post(ExchangeFailed())
        except Exception:
            self._post(ExchangeFailed())
            raise
        else:
            self._answered_ms = self._clock_ms()
            self._post(Replied(reply))

    async def _report(self, sequences: tuple[JobSetEvents, ...]) -> None:
        try:
            async with asyncio.timeout(REPORT_TIMEOUT_S):
                await self._control_plane.report(_dated(sequences, self._wall_ms() - self._clock_ms()))
        except (InvalidRequest, LimitExceeded) as error:
            self._warn("report", f"a report was refused: {error}")
            self._post(ReportFailed(was_refused=True))
        except (ArmadaError, TimeoutError, OSError) as error:
            self._warn("report", f"a report did not get through: {error or type(error).__name__}")
            self._post(ReportFailed())
        except Exception:
            self._post(ReportFailed())
            raise
        else:
            self._answered_ms = self._clock_ms()
            self._post(Acknowledged())

    def _warn(self, kind: str, text: str) -> None:
        """Say it, but not more often than every few seconds for each kind."""
        now_s = time.monotonic()
        if now_s - self._warned_s.get(kind, -_WARNING_GAP_S) >= _WARNING_GAP_S:
            self._warned_s[kind] = now_s
            _logger.warning(text, executor=self.settings.executor_id)


def _dated(sequences: tuple[JobSetEvents, ...], ahead_ms: int) -> tuple[JobSetEvents, ...]:
    """Facts with times of the machine's clock, which is `ahead_ms` ahead of the one that they were dated by."""
    if abs(ahead_ms) < _CLOCK_SLACK_MS:
        return sequences
    return tuple(
        JobSetEvents(
            sequence.queue,
            sequence.job_set,
            tuple(msgspec.structs.replace(event, at_ms=max(event.at_ms + ahead_ms, 1)) for event in sequence.events),
        )
        for sequence in sequences
    )
