"""The crash proof: `armada up`, killed again and again under load, loses nothing and runs nothing twice.

One folder, one port, real jobs and simulated ones, clients that never stop asking. Another course of kills:
`CRASH_SEED=7 CRASH_KILLS=60 pytest -s tests/end_to_end/test_crash.py`.
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from armada.eventlog.sqlite import SqliteEventLog
from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger
from tests.end_to_end.crashing import verdict
from tests.end_to_end.crashing.kills import Lives
from tests.end_to_end.crashing.load import STORIES, Load
from tests.end_to_end.crashing.marks import Marks, processes_with

# ruff: noqa: T201 - the seed and what happened are shown by pytest when the proof fails, and with -s

KILLS: Final = int(os.environ.get("CRASH_KILLS", "20"))
SUBMITTERS: Final = 3
END_LIMIT_S: Final = 90.0
GONE_LIMIT_S: Final = 10.0
LOOK_S: Final = 0.1


def drawn_seed() -> int:
    """The same course of kills in CI, another one at a desk each time."""
    if "CRASH_SEED" in os.environ:
        return int(os.environ["CRASH_SEED"])
    return 1 if os.environ.get("CI") else random.SystemRandom().randrange(1_000_000)


@pytest.mark.timeout(600)
def test_nothing_is_lost_or_run_twice_over_twenty_kills(tmp_path: Path) -> None:
    seed = drawn_seed()
    print(f"CRASH_SEED={seed} CRASH_KILLS={KILLS}")
    assert asyncio.run(faults_of(tmp_path, seed)) == []
    assert asyncio.run(difference_when_replayed(tmp_path / "data")) == ""


async def faults_of(folder: Path, seed: int) -> list[str]:
    """Kill, restart and ask; return all faults."""
    marks = folder / "marks"
    marks.mkdir()
    lives = Lives(folder, random.Random(seed))
    load = Load(lives.address, marks, seed)
    load.on_acknowledged = lives.acknowledged
    began_s = time.monotonic()
    async with asyncio.TaskGroup() as clients:
        following = [clients.create_task(load.follow(story)) for story in STORIES]
        submitting = [clients.create_task(load.submit(number)) for number in range(SUBMITTERS)]
        for number in range(KILLS):
            await lives.live_and_die(number)
        print(f"{KILLS} kills in {time.monotonic() - began_s:.0f} s:", *lives.moments, sep="\n  ")
        load.finish()
        with lives.start() as last:
            await asyncio.to_thread(last.wait_ready)
            await asyncio.gather(*submitting)
            await load.acts_done()
            faults = [fault async for fault in faults_of_the_living(load, folder)]
            for each in following:
                each.cancel()
            await load.close()
            assert await asyncio.to_thread(last.stop) == 0
    print(
        f"{len(load.jobs)} jobs in {load.batches} batches, {load.lost} answers lost, {time.monotonic() - began_s:.0f} s"
    )
    found = Marks.read(marks)
    faults += verdict.faults_of_marks(load.jobs, found, load.leases(), load.cancelled_s)
    faults += verdict.faults_of_course(load, found, lives.killed_s)
    return faults


async def faults_of_the_living(load: Load, folder: Path) -> AsyncIterator[str]:
    """Wait until all jobs have ended, then ask the server about each; last, look for processes that are too many."""
    try:
        async with asyncio.timeout(END_LIMIT_S):
            while not load.jobs.keys() <= load.ended:  # noqa: ASYNC110 - events come in by the thousand
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        kinds = Counter(load.jobs[job_id][0].name for job_id in load.jobs.keys() - load.ended)
        yield f"jobs that never ended: {dict(kinds)}"
    states = await load.states()
    for fault in verdict.faults_of_reads(load.jobs, states, await load.details()):
        yield fault
    for story in STORIES:
        whole = await load.whole_story(story)
        for fault in verdict.faults_of_stream(load.told[story], whole):
            yield f"{'/'.join(story)}: {fault}"
    for fault in verdict.faults_of_events(load.jobs, load.all_told()):
        yield fault
    try:
        async with asyncio.timeout(GONE_LIMIT_S):
            while left := processes_with(str(folder / "data" / "pods")):  # noqa: ASYNC110 - /proc has to be asked
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        yield f"processes are left over: {left}"


async def difference_when_replayed(folder: Path) -> str:
    """A ledger from the last checkpoint and the entries behind it is the one that all entries add up to."""
    log = SqliteEventLog.open(folder)
    try:
        checkpoint = await log.latest_checkpoint()
        assert checkpoint is not None
        taken_up, anew = Ledger.from_bytes(checkpoint.payload, SchedulingPolicy()), Ledger(SchedulingPolicy())
        for ledger in (taken_up, anew):
            while entries := await log.read(ledger.position, 1_000):
                for entry in entries:
                    ledger.apply(entry)
            ledger.validate()
        live = [job_id for queue in anew.queues for job_id in anew.jobs_in_queue(queue)]
        if live:
            return f"jobs live on in the ledger: {live[:5]}"
        return "" if taken_up.digest() == anew.digest() else "the checkpoint adds up to another ledger"
    finally:
        await log.close()
