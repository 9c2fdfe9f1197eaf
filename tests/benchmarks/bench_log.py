"""The log on SQLite: batches of submissions, single facts side by side, one author after another, reading back."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from armada.eventlog.port import Batch
from armada.eventlog.sqlite import SqliteEventLog, SqliteOptions
from armada.model.events import JobSetEvents, JobsSubmitted, RunPending
from armada.model.jobs import JobShape, JobTemplate, NewJob
from tests.benchmarks.figures import Figure

BATCHES: Final = 500
JOBS_A_BATCH: Final = 200
AUTHORS: Final = 10
FACTS: Final = 5_000
_TEMPLATE: Final = JobTemplate(
    shape=JobShape(requests=(("cpu", "1"),), priority_class="armada-default"),
    pod_spec=b"{" + b"x" * 1_500 + b"}",
    namespace="default",
)


def submission(number: int, jobs: int = JOBS_A_BATCH) -> Batch:
    rows = tuple(NewJob(f"01jm{number:010d}{index:012d}", 0) for index in range(jobs))
    submitted = JobsSubmitted(at_ms=number, template=_TEMPLATE, jobs=rows)
    return Batch(batch_id=f"submission-{number}", time_ms=number, sequences=(JobSetEvents("q", "s", (submitted,)),))


def fact(number: int) -> Batch:
    event = RunPending(at_ms=1, job_id="01jm0000000000000000000000", run_id=f"{number:036d}")
    return Batch(batch_id=f"fact-{number}", time_ms=1, sequences=(JobSetEvents("q", "s", (event,)),))


async def _appends(log: SqliteEventLog, batches: list[Batch], authors: int) -> float:
    async def author(own: list[Batch]) -> None:
        for batch in own:
            await log.append(batch)

    begun = time.perf_counter()
    await asyncio.gather(*(author(batches[first::authors]) for first in range(authors)))
    return time.perf_counter() - begun


async def _reads(log: SqliteEventLog) -> tuple[int, float]:
    begun, count, position = time.perf_counter(), 0, 0
    while entries := await log.read(position, 1_000):
        position = entries[-1].position
        count += len(entries)
    return count, time.perf_counter() - begun


async def _figures(folder: Path) -> list[Figure]:
    log = SqliteEventLog.open(folder, options=SqliteOptions(recent_entries=0))
    jobs = BATCHES * JOBS_A_BATCH
    submitting = await _appends(log, [submission(number) for number in range(BATCHES)], AUTHORS)
    together = await _appends(log, [fact(number) for number in range(FACTS)], FACTS)
    alone = await _appends(log, [submission(BATCHES + number, 1) for number in range(100)], 1)
    count, reading = await _reads(log)
    await log.close()
    return [
        Figure(name="log: jobs made durable, 200 a batch", value=jobs / submitting, unit="jobs/s", target=10_000),
        Figure(name="log: single facts made durable together", value=FACTS / together, unit="appends/s", target=10_000),
        Figure(name="log: one author, one append after another", value=alone * 10, unit="ms", target=10),
        Figure(name="log: entries read from disk", value=count / reading, unit="entries/s", note="mixed sizes"),
    ]


def measure() -> Iterator[Figure]:
    """All figures of the log, on this machine's temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_figures(Path(folder)))
