"""The leader's loop: ask what is due, do it, ask again."""

import asyncio
import time
from concurrent.futures import Executor
from functools import partial
from typing import Final

from armada.control.cycle import Leader, Step
from armada.control.leasing import Roster
from armada.control.outcome import Outcome, RoundOrder
from armada.control.reports import cleaned_text
from armada.control.rounds.capsules import RoundEnd
from armada.control.rounds.deciding import RoundBroken, decide
from armada.model.errors import EpochLost, LogFailed, LogFull, StartupRefused
from armada.model.events import Entry
from armada.runtime.supervision import Backoff
from armada.runtime.telemetry import Log, Metrics
from armada.scheduling.decisions import Decisions, Termination
from armada.server.replica import Replica
from armada.server.upkeep.capsules import Capsules

MAX_REASON_CHARS: Final = 500
"""Characters of an unexpected error that a report shows."""
CLOCK_JUMP_MS: Final = 2_000
"""When wall clock and steady clock disagree by more, the wall clock was set, or the machine slept."""


class LeaderLoop:
    """Carries out what the leader decides. Rounds run in a thread; everything else on the event loop."""

    def __init__(  # noqa: PLR0913 - the parts it works with are handed in, never looked up
        self,
        replica: Replica,
        leader: Leader,
        roster: Roster,
        *,
        rounds: Executor,
        metrics: Metrics,
        log: Log,
        capsules: Capsules | None = None,
    ) -> None:
        self._replica = replica
        self._leader = leader
        self._roster = roster
        self._rounds = rounds
        self._metrics = metrics
        self._log = log
        self._capsules = capsules
        self._news = asyncio.Event()
        self._claimed = asyncio.Event()
        self._refusal: LogFull | None = None
        self._clocks = (replica.now_ms(), time.monotonic())
        replica.on_entry(self._notice)
        replica.after_fold(self._news.set)

    def _notice(self, entry: Entry) -> None:
        self._leader.notice(entry, self._replica.now_ms())

    def wake(self) -> None:
        """Ask what is due now: the leader has heard something that the log does not hold."""
        self._news.set()

    async def until_leading(self) -> None:
        """Return once this replica leads.

        Raises:
            StartupRefused: the log is full or can't be written, so it can't lead.
        """
        await self._claimed.wait()
        if self._refusal is not None:
            raise StartupRefused(str(self._refusal)) from self._refusal

    async def run(self) -> None:
        """Lead until cancelled or deposed."""
        backoff = Backoff()
        while True:
            self._news.clear()
            self._look_at_clocks()
            step = self._step()
            if self._leader.leads(self._replica.ledger):
                self._refusal = None
                self._claimed.set()
            try:
                await self._carry_out(step)
                backoff.reset()
            except EpochLost as error:
                self._log.warning("another replica leads now: this one only follows", reason=str(error))
                self._leader.deposed()
                return
            except LogFailed as error:
                if isinstance(error, LogFull) and not self._claimed.is_set():
                    self._refusal = error
                    self._claimed.set()
                wait_s = backoff.draw_s()
                self._log.error("the log can't be written: trying again", reason=str(error), wait_s=round(wait_s, 2))
                self._leader.interrupted(self._replica.ledger, self._replica.now_ms())
                await asyncio.sleep(wait_s)

    def _step(self) -> Step:
        """Ask what is due, say what is odd; note how long it took where new kinds of jobs were looked at on the way."""
        started = time.perf_counter()
        step = self._leader.step(self._replica.ledger, self._roster.heartbeats(), self._replica.now_ms())
        if looked_at := self._leader.looked_at():
            self._leader.tally.checked(looked_at, _ms_since(started))
        for warning in step.warnings:
            self._log.warning(warning)
        return step

    def _look_at_clocks(self) -> None:
        """Give executors time to call after the clock has jumped: silence is measured by it."""
        wall_ms, steady_s = self._replica.now_ms(), time.monotonic()
        jumped_ms = (wall_ms - self._clocks[0]) - (steady_s - self._clocks[1]) * 1_000
        self._clocks = (wall_ms, steady_s)
        if abs(jumped_ms) > CLOCK_JUMP_MS:
            self._log.warning("the clock has jumped", seconds=round(jumped_ms / 1_000))
            self._leader.forgive(wall_ms)
            self._roster.forgive(wall_ms)

    async def _carry_out(self, step: Step) -> None:
        if step.sequences:
            started = time.perf_counter()
            await self._replica.append(step.sequences, epoch=step.epoch)
            self._leader.tally.reconciled(_ms_since(started))
        elif step.round is not None:
            await self._decide(step.round, step.epoch)
        else:
            await self._rest(step.wake_at_ms)

    async def _rest(self, wake_at_ms: int | None) -> None:
        limit_s = None if wake_at_ms is None else max(0.0, (wake_at_ms - self._replica.now_ms()) / 1_000)
        try:
            async with asyncio.timeout(limit_s):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _decide(self, order: RoundOrder, epoch: int) -> None:
        started = time.perf_counter()
        decisions: Decisions | None = None
        try:
            loop = asyncio.get_running_loop()
            clock = partial(_ms_since, started)
            decisions = await loop.run_in_executor(self._rounds, decide, order, self._leader.policy, clock)
            seconds = time.perf_counter() - started
            outcome = self._leader.finish(self._replica.ledger, order, decisions, self._replica.now_ms())
        except Exception as error:  # noqa: BLE001 - its pool fails with it, and a capsule is kept; the others go on
            self._failed(order, decisions, error)
            return
        if decisions.termination is Termination.TIMEOUT:
            self._log.error("a round took too long: nothing is decided", pool=order.pool, seconds=round(seconds, 1))
        if self._capsules is not None:
            self._capsules.keep(RoundEnd(order=order, finished_ms=self._replica.now_ms(), decisions=decisions))
        self._metrics.round_seconds.labels(order.pool).observe(seconds)
        self._leader.tally.decided(
            order.pool,
            decisions.termination.name.lower(),
            seconds * 1_000,
            counts=decisions.termination is not Termination.TIMEOUT,
        )
        await self._store(outcome, epoch, started)
        while (held := self._leader.next_held(self._replica.ledger, self._replica.now_ms())) is not None:
            await self._store(held, epoch, started)

    def _failed(self, order: RoundOrder, decisions: Decisions | None, error: Exception) -> None:
        """Note that a round failed, and keep it so that it can be looked into."""
        self._log.error("a round failed", pool=order.pool, exc_info=error)
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, RoundBroken):
            decisions, reason = error.decisions, str(error)
        if self._capsules is not None:
            now_ms = self._replica.now_ms()
            self._capsules.keep(RoundEnd(order=order, finished_ms=now_ms, decisions=decisions, failure=reason))
        self._leader.failed_round(order.pool, cleaned_text(reason, MAX_REASON_CHARS), self._replica.now_ms())

    async def _store(self, outcome: Outcome, epoch: int, started: float) -> None:
        """Append what came of a round that began at `started`."""
        leased = sum(outcome.leased_by_queue.values())
        if leased or outcome.preempted:
            self._metrics.leased.labels(outcome.pool).inc(leased)
            self._metrics.preempted.labels(outcome.pool).inc(outcome.preempted)
            self._log.debug(
                "a round decided",
                pool=outcome.pool,
                leased=leased,
                preempted=outcome.preempted,
                dropped=outcome.dropped,
                milliseconds=round(_ms_since(started), 1),
            )
        if outcome.sequences:
            await self._replica.append(outcome.sequences, epoch=epoch)
        self._leader.tally.stored(outcome.pool, outcome.leased_by_kind, _ms_since(started))


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1_000
