"""Whatever facts the log holds, sensible or not, the history agrees with the ledger, in whatever portions it is fed."""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from armada.model.events import (
    Event,
    Failure,
    JobCancelled,
    JobFailed,
    JobPreempted,
    JobPreemptRequested,
    JobRejected,
    JobReprioritised,
    JobRequeued,
    JobsSubmitted,
    JobSucceeded,
    QueueCreated,
    RunFailed,
    RunLeaseExpired,
    RunPending,
    RunPreempted,
    RunReturned,
    RunsReleased,
    RunStarted,
    RunSucceeded,
)
from armada.model.fleet import Queue
from armada.model.jobs import NewJob
from armada.model.lifecycle import JobState, RunState
from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger
from armada.views.history import History
from armada.views.projector import Projector
from tests.unit.views.story import ListedLog, entry, leased, template

QUEUE: Final = "alice"
JOBS: Final = tuple(f"{number:026}" for number in range(3))
RUNS: Final = 3
FAILURE: Final = Failure(reason="ended")
RUN_KINDS: Final = (RunPending, RunStarted, RunSucceeded, RunLeaseExpired)
JOB_KINDS: Final = (JobSucceeded, JobCancelled, JobRequeued)


def run_id(job_id: str, number: int) -> str:
    """One of three runs that a job may have."""
    return f"{job_id}-run-{number}"


def possible_facts() -> list[Event]:
    """Facts about three jobs with up to three runs each; in most states most of them follow from nothing."""
    facts: list[Event] = []
    for client_id in ("", "mine"):
        for count in range(1, len(JOBS) + 1):
            new = tuple(NewJob(job_id, 1, client_id) for job_id in JOBS[:count])
            facts.append(JobsSubmitted(at_ms=1, template=template(), jobs=new))
    for job_id in JOBS:
        facts += [kind(at_ms=2, job_id=job_id) for kind in JOB_KINDS]
        facts += [
            JobFailed(at_ms=3, job_id=job_id, failure=FAILURE),
            JobPreempted(at_ms=4, job_id=job_id, failure=FAILURE),
            JobPreemptRequested(at_ms=5, job_id=job_id, reason="asked", requestor="anna"),
            JobRejected(at_ms=6, job_id=job_id, reason="too large"),
            JobReprioritised(at_ms=7, job_id=job_id, priority=7),
        ]
        for number in range(RUNS):
            run = run_id(job_id, number)
            facts += [leased(job_id, run, 8, number), RunsReleased(at_ms=9, run_ids=(run,))]
            facts += [kind(at_ms=10, job_id=job_id, run_id=run) for kind in RUN_KINDS]
            facts += [RunFailed(at_ms=11, job_id=job_id, run_id=run, failure=FAILURE)]
            facts += [RunReturned(at_ms=12, job_id=job_id, run_id=run, failure=FAILURE)]
            facts += [RunPreempted(at_ms=13, job_id=job_id, run_id=run, kind="api", reason="asked")]
    return facts


entries = st.lists(st.lists(st.sampled_from(possible_facts()), min_size=1, max_size=4), max_size=25)
portions = st.lists(st.integers(1, 8), max_size=10)


@given(entries, portions)
@settings(max_examples=100)
def test_history_and_ledger_agree(told: list[list[Event]], sizes: list[int]) -> None:
    log = ListedLog()
    log.add(QueueCreated(at_ms=1, queue=Queue(name=QUEUE)), queue="", job_set="")
    for events in told:
        log.add(*events, queue=QUEUE)
    ledger = Ledger(SchedulingPolicy())
    for each_entry in log.entries:
        ledger.apply(each_entry)
    gone = departed(log)
    jobs, runs = asyncio.run(projected(log, ledger, sizes))
    for job_id in JOBS:
        state = ledger.job_state(job_id)
        if job_id in gone:
            assert jobs[job_id].is_terminal, "only ended jobs leave the ledger, and an end is final"
        elif state is not None:
            assert jobs[job_id] is state
    for each in (run_id(job_id, number) for job_id in JOBS if job_id not in gone for number in range(RUNS)):
        run_state = ledger.run_state(each)
        if run_state is not None:
            assert runs[each] is run_state
        elif each in runs:
            assert runs[each].is_terminal, "only ended runs leave the ledger"


def departed(log: ListedLog) -> set[str]:
    """Jobs that left the ledger at some moment, though their ids may have been submitted once more afterwards."""
    ledger = Ledger(SchedulingPolicy())
    gone: set[str] = set()
    held: set[str] = set()
    events = [(whole, event) for whole in log.entries for event in whole.events]
    for position, (whole, event) in enumerate(events, start=1):
        ledger.apply(entry(position, event, queue=whole.queue, job_set=whole.job_set))
        now = {job_id for job_id in JOBS if ledger.has_job(job_id)}
        gone |= held - now
        held = now
    return gone


async def projected(
    log: ListedLog, ledger: Ledger, sizes: list[int]
) -> tuple[dict[str, JobState], dict[str, RunState]]:
    """States of jobs and runs in a history that was fed the log in portions."""
    with tempfile.TemporaryDirectory() as folder:
        history = History.open(Path(folder) / "history.db")
        try:
            reached = 0
            projector = Projector(log, history, ledger.effective, lambda: reached)
            for size in [*sizes, len(log.entries)]:
                reached = min(reached + size, len(log.entries))
                await projector.flush()
            jobs = await history.states(JOBS)
            ids = [run_id(job_id, number) for job_id in JOBS for number in range(RUNS)]
            runs = {each.run_id: each.state for each in (await history.runs(ids)).values()}
        finally:
            await history.close()
    return jobs, runs
