"""The leader's loop: claims, survives a failing log, gives way, checkpoints."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from armada.control.cycle import Cadence, Leader
from armada.control.leasing import Roster
from armada.model.errors import EpochLost, LogFailed, LogFull
from armada.model.events import JobSetEvents, QueueCreated
from armada.model.fleet import Queue
from armada.runtime.telemetry import make_log
from armada.server.leader import Checkpoints, LeaderLoop
from armada.state.ledger import Ledger
from tests.unit.server.fakes import Followed

LOG = make_log("error", "json")


class Leading(Followed):
    """A followed log with a leader on it."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = ThreadPoolExecutor(1)
        cadence = Cadence(round_delay_ms=0, fleet_settle_ms=0)
        self.leader = Leader(self.policy, cadence, "me", self.replica.now_ms())
        self.loop = LeaderLoop(self.replica, self.leader, Roster(), rounds=self.rounds, metrics=self.metrics, log=LOG)


@pytest.fixture
async def leading() -> AsyncIterator[Leading]:
    async with Leading() as here:
        yield here
        here.rounds.shutdown()


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_it_claims_the_lead(leading: Leading) -> None:
    task = asyncio.create_task(leading.loop.run())
    async with asyncio.timeout(5):
        await leading.loop.until_leading()
    assert (leading.replica.ledger.epoch, leading.replica.ledger.holder) == (1, "me")
    await stopped(task)


async def test_a_failing_log_is_tried_again(leading: Leading) -> None:
    leading.log.failure = LogFull("the disk is full")
    task = asyncio.create_task(leading.loop.run())
    await asyncio.sleep(0.05)
    assert not leading.log.entries
    leading.log.failure = None
    async with asyncio.timeout(5):
        await leading.loop.until_leading()
    await stopped(task)


async def test_who_lost_the_epoch_follows_only(leading: Leading) -> None:
    leading.log.failure = EpochLost("another replica has claimed the epoch")
    async with asyncio.timeout(5):
        await leading.loop.run()
    assert not leading.leader.leads(leading.replica.ledger)
    step = leading.leader.step(leading.replica.ledger, {}, leading.replica.now_ms())
    assert (step.sequences, step.round) == ((), None)


async def test_rounds_that_fail_do_not_stop_the_loop(leading: Leading, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("a round that can't be decided")

    monkeypatch.setattr("armada.server.leader.schedule", broken)
    task = asyncio.create_task(leading.loop.run())
    async with asyncio.timeout(5):
        await leading.loop.until_leading()
    await leading.replica.append((JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")),)),))
    await asyncio.sleep(0.05)
    assert not task.done()
    await stopped(task)


async def test_checkpoints_are_saved_when_enough_has_happened() -> None:
    async with Followed() as here:
        checkpoints = Checkpoints(here.replica, entries=3, interval_s=3_600, log=LOG)
        task = asyncio.create_task(checkpoints.run())
        for number in range(3):
            await here.replica.append((JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name=f"q{number}")),)),))
        async with asyncio.timeout(5):
            while not here.log.checkpoints:  # noqa: ASYNC110 - the log has no bell for it
                await asyncio.sleep(0.01)
        (saved,) = here.log.checkpoints
        assert saved.position == 3
        assert list(Ledger.from_bytes(saved.payload, here.policy).queues) == ["q0", "q1", "q2"]
        await stopped(task)


async def test_a_checkpoint_that_can_not_be_saved_is_no_disaster() -> None:
    async with Followed() as here:
        await here.replica.append((JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")),)),))
        here.log.failure = LogFailed("gone")
        checkpoints = Checkpoints(here.replica, entries=1, interval_s=1, log=LOG)
        await checkpoints.save()
        assert not here.log.checkpoints
