"""How fast the history takes in the log, and what a job costs there."""

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from armada.model.events import Event
from armada.views.history import History
from armada.views.projector import Projector
from tests.benchmarks.figures import Figure
from tests.unit.views.story import ListedLog, submitted, success

JOBS: Final = 50_000
SUBMITTED_TOGETHER: Final = 200
REPORTED_TOGETHER: Final = 100
EVENTS_PER_JOB: Final = 6


def full_log() -> ListedLog:
    """The lives of `JOBS` jobs, each submitted, leased, started and done."""
    log = ListedLog()
    chance = random.Random(1)
    job_ids = [f"01{number:024d}" for number in range(JOBS)]
    for start in range(0, JOBS, SUBMITTED_TOGETHER):
        log.add(submitted(*job_ids[start : start + SUBMITTED_TOGETHER]))
    for start in range(0, JOBS, REPORTED_TOGETHER):
        lives = [success(job_id, f"{chance.getrandbits(128):032x}") for job_id in job_ids[start:][:REPORTED_TOGETHER]]
        for step in range(3):
            log.add(*(life[step] for life in lives))
        ends: list[Event] = [event for life in lives for event in life[3:]]
        log.add(*ends)
    return log


async def project(entries_per_write: int) -> tuple[float, float]:
    """Take the log in, so many entries a write; returns events a second and microseconds of CPU a job."""
    log = full_log()
    with tempfile.TemporaryDirectory() as folder:
        history = History.open(Path(folder) / "history.db")
        reached = 0
        projector = Projector(log, history, lambda entry: entry, lambda: reached)
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        while reached < len(log.entries):
            reached = min(reached + entries_per_write, len(log.entries))
            await projector.flush()
        taken_s, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
        await history.close()
    return JOBS * EVENTS_PER_JOB / taken_s, cpu_s / JOBS * 1e6


def measure() -> Iterator[Figure]:
    """Rebuilding (large writes) and living (small ones)."""
    rate, cpu_us = asyncio.run(project(4000))
    yield Figure(
        name="history: rebuild", value=rate, unit="events/s", target=10_000, note=f"{cpu_us:.0f} us of CPU a job"
    )
    rate, cpu_us = asyncio.run(project(8))
    yield Figure(
        name="history: small writes", value=rate, unit="events/s", target=10_000, note=f"{cpu_us:.0f} us a job"
    )
