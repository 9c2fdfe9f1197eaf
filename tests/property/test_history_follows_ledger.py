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
from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger
from armada.views.history import History
from armada.views.projector import Projector
from tests.unit.views.story import ListedLog, leased, template

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
@settings(max_examples=60)
def test_history_and_ledger_agree(told: list[list[Event]], sizes: list[int]) -> None:
    log = ListedLog()
    log.add(QueueCreated(at_ms=1, queue=Queue(name=QUEUE)), queue="", job_set="")
    for events in told:
        log.add(*events, queue=QUEUE)
    ledger = Ledger(SchedulingPolicy())
    seen_jobs: dict[str, int] = {}
    seen_runs: dict[str, int] = {}
    for entry in log.entries:
        ledger.apply(entry)
        # What has left the ledger keeps the state that it left with.
        for job_id in JOBS:
            state = ledger.job_state(job_id)
            seen_jobs.update({job_id: int(state)} if state is not None else {})
            for number in range(RUNS):
                run_state = ledger.run_state(run_id(job_id, number))
                seen_runs.update({run_id(job_id, number): int(run_state)} if run_state is not None else {})
    jobs, runs = asyncio.run(projected(log, ledger, sizes))
    assert {job_id: jobs.get(job_id) for job_id in seen_jobs} == seen_jobs
    assert {each: runs.get(each) for each in seen_runs} == seen_runs


async def projected(log: ListedLog, ledger: Ledger, sizes: list[int]) -> tuple[dict[str, int], dict[str, int]]:
    """States of jobs and runs in a history that was fed the log in portions."""
    with tempfile.TemporaryDirectory() as folder:
        history = History.open(Path(folder) / "history.db")
        try:
            reached = 0
            projector = Projector(log, history, ledger.effective, lambda: reached)
            for size in [*sizes, len(log.entries)]:
                reached = min(reached + size, len(log.entries))
                await projector.flush()
            jobs = {job_id: int(state) for job_id, state in (await history.states(JOBS)).items()}
            ids = [run_id(job_id, number) for job_id in JOBS for number in range(RUNS)]
            runs = {each.run_id: int(each.state) for each in (await history.runs(ids)).values()}
        finally:
            await history.close()
    return jobs, runs
