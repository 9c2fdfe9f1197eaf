"""The leader's loop: claims, survives a failing log, gives way, checkpoints."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from armada.control.cycle import Leader
from armada.control.leasing import Roster
from armada.control.rounds.cadence import Cadence
from armada.model.errors import EpochLost, LogFailed, LogFull, StartupRefused
from armada.model.events import ExecutorReported, JobSetEvents, JobsSubmitted, QueueCordoned, QueueCreated
from armada.model.fleet import Queue
from armada.model.jobs import JobShape, JobTemplate, NewJob
from armada.model.lifecycle import JobState
from armada.runtime.telemetry import make_log
from armada.server.leader import LeaderLoop
from armada.server.upkeep.checkpoints import Checkpoints
from armada.state.checkpoint import Taken
from armada.state.ledger import Ledger
from tests.unit.control.world import node
from tests.unit.server.fakes import Followed

LOG = make_log("error", "json")
TEMPLATE = JobTemplate(
    shape=JobShape(requests=(("cpu", "1"),), priority_class="armada-default"), pod_spec=b"{}", namespace="ns"
)


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
    leading.log.failure = LogFailed("the database is locked")
    task = asyncio.create_task(leading.loop.run())
    await asyncio.sleep(0.05)
    assert not leading.log.entries
    leading.log.failure = None
    async with asyncio.timeout(5):
        await leading.loop.until_leading()
    await stopped(task)


async def test_who_can_store_nothing_does_not_start(leading: Leading) -> None:
    leading.log.failure = LogFull("the disk is full")
    task = asyncio.create_task(leading.loop.run())
    async with asyncio.timeout(5):
        with pytest.raises(StartupRefused, match="the disk is full"):
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

    monkeypatch.setattr("armada.server.leader.decide", broken)
    task = asyncio.create_task(leading.loop.run())
    async with asyncio.timeout(5):
        await leading.loop.until_leading()
    reported = ExecutorReported(at_ms=1, executor_id="east", pool="default", nodes=(node("n1"),))
    await leading.replica.append((JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")), reported)),))
    jobs = JobsSubmitted(at_ms=1, template=TEMPLATE, jobs=(NewJob("j" * 26, 0),))
    await leading.replica.append((JobSetEvents("qa", "s", (jobs,)),))
    async with asyncio.timeout(5):
        while not leading.leader.failures:  # noqa: ASYNC110 - no bell for it
            await asyncio.sleep(0.01)
    assert not task.done()
    await stopped(task)
    assert "RuntimeError: a round that can't be decided" in leading.leader.failures["default"].reason
    counted = {family.series.name: dict(family.samples) for family in leading.leader.tally.families()}
    assert counted["armada_scheduler_pool_scheduling_outcome"] == {("default", "failure", "error"): 1}


async def test_a_fresh_job_on_an_idle_cluster_is_leased_at_once(leading: Leading) -> None:
    """Within 100 ms, the best of some: a busy machine may be late, a period that is waited for always is."""
    task = asyncio.create_task(leading.loop.run())
    async with asyncio.timeout(5):
        await leading.loop.until_leading()
    reported = ExecutorReported(at_ms=1, executor_id="east", pool="default", nodes=(node("n1"),))
    await leading.replica.append((JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")), reported)),))
    took_s: list[float] = []
    for number in range(5):
        job_id = f"{number:026d}"
        jobs = JobsSubmitted(at_ms=1, template=TEMPLATE, jobs=(NewJob(job_id, 0),))
        started = time.perf_counter()
        await leading.replica.append((JobSetEvents("qa", "s", (jobs,)),))
        async with asyncio.timeout(60):
            while leading.replica.ledger.job_state(job_id) is not JobState.LEASED:  # noqa: ASYNC110 - no bell for it
                await asyncio.sleep(0.001)
        took_s.append(time.perf_counter() - started)
    assert min(took_s) < 0.1
    await stopped(task)


async def test_a_clock_that_jumps_makes_nobody_lost(leading: Leading) -> None:
    task = asyncio.create_task(leading.loop.run())
    async with asyncio.timeout(5):
        await leading.loop.until_leading()
    reported = ExecutorReported(at_ms=1, executor_id="east", pool="default", nodes=(node("n1"),))
    await leading.replica.append((JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")), reported)),))
    jobs = JobsSubmitted(at_ms=1, template=TEMPLATE, jobs=(NewJob("j" * 26, 0),))
    await leading.replica.append((JobSetEvents("qa", "s", (jobs,)),))
    async with asyncio.timeout(5):
        while leading.replica.ledger.job_state("j" * 26) is not JobState.LEASED:  # noqa: ASYNC110 - no bell for it
            await asyncio.sleep(0.01)
    ten_hours_later = leading.replica.now_ms() + 36_000_000
    leading.replica.now_ms = lambda: ten_hours_later
    await leading.replica.append((JobSetEvents("", "", (QueueCordoned(at_ms=1, name="qa", cordoned=True),)),))
    await asyncio.sleep(0.1)
    assert leading.replica.ledger.job_state("j" * 26) is JobState.LEASED
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


async def test_checkpoints_are_made_outside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop only copies: what is folded while a thread makes the bytes is not part of them."""
    threads: list[threading.Thread] = []
    going_on = threading.Event()
    packed = Taken.packed

    def slowly(taken: Taken) -> bytes:
        threads.append(threading.current_thread())
        assert going_on.wait(10)
        return packed(taken)

    monkeypatch.setattr(Taken, "packed", slowly)
    async with Followed() as here:
        first = JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="first")),))
        second = JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="second")),))
        await here.replica.append((first,))
        saving = asyncio.create_task(Checkpoints(here.replica, entries=1, interval_s=1, log=LOG).save())
        await asyncio.sleep(0)
        await here.replica.append((second,))
        going_on.set()
        await saving
        (saved,) = here.log.checkpoints
        assert saved.position == 1
        assert list(Ledger.from_bytes(saved.payload, here.policy).queues) == ["first"]
        assert threads != [threading.main_thread()]


async def test_a_checkpoint_that_can_not_be_saved_is_no_disaster() -> None:
    async with Followed() as here:
        await here.replica.append((JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")),)),))
        here.log.failure = LogFailed("gone")
        checkpoints = Checkpoints(here.replica, entries=1, interval_s=1, log=LOG)
        await checkpoints.save()
        assert not here.log.checkpoints
