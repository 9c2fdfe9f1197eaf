"""What must hold after the last restart, checked job by job; each function returns faults in words."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from armada_client.armada import event_pb2

from tests.end_to_end.crashing.jobs import KINDS, Kind
from tests.end_to_end.crashing.load import Load, Story, ends, opened
from tests.end_to_end.crashing.marks import Marks

START_SLACK_S: Final = 2.0
"""A process that was being started when its job was cancelled may show up this much later."""
LEAST_JOBS_A_KILL: Final = 5
_ENDS_RUN: Final = frozenset({"lease_returned", "lease_expired", "preempted", "succeeded", "failed", "cancelled"})

Jobs = Mapping[str, tuple[Kind, Story]]


def faults_of_stream(
    told: Sequence[event_pb2.EventStreamMessage], whole: Sequence[event_pb2.EventStreamMessage]
) -> Iterator[str]:
    """A stream that was resumed after each kill says what one from the beginning says: nothing twice or not at all."""
    positions = [tuple(map(int, message.id.split(":")))[:3] for message in whole]
    if positions != sorted(set(positions)):
        yield "message ids of a stream do not grow"
    heard, said = Counter(message.id for message in told), Counter(message.id for message in whole)
    if heard != said:
        yield f"a resumed stream missed {sorted(said - heard)[:5]} and heard {sorted(heard - said)[:5]} too much"
    elif [message.SerializeToString(deterministic=True) for message in told] != [
        message.SerializeToString(deterministic=True) for message in whole
    ]:
        yield "a resumed stream heard other words than one from the beginning"


def faults_of_events(jobs: Jobs, whole: Iterable[event_pb2.EventStreamMessage]) -> Iterator[str]:
    """Every acknowledged job and no other: one submission, one live run at a time, one end, of its kind's sort."""
    by_job: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for message in whole:
        kind, event = opened(message)
        by_job[event.job_id].append((kind, event))
    yield from (f"{job_id} was acknowledged and is missing" for job_id in sorted(set(jobs) - set(by_job)))
    yield from (f"{job_id} was never acknowledged: submitted twice?" for job_id in sorted(set(by_job) - set(jobs)))
    for job_id, events in by_job.items():
        if job_id in jobs:
            sort, _ = jobs[job_id]
            yield from (f"{job_id} ({sort.name}): {fault}" for fault in _faults_of_job(sort, events))


def _faults_of_job(kind: Kind, events: list[tuple[str, Any]]) -> Iterator[str]:
    names = [name for name, _ in events]
    if names.count("submitted") != 1 or names[0] != "submitted":
        yield f"submitted {names.count('submitted')} times: {names}"
    is_live = False
    for name in names:
        if name == "leased" and is_live:
            yield f"leased while a run is live: {names}"
        is_live = name == "leased" or (is_live and name not in _ENDS_RUN)
    last = [name for name, event in events if ends(name, event)]
    if last != [kind.end]:
        yield f"must end once, with {kind.end}, but said {names}"
    elif names[-1] != kind.end:
        yield f"something follows its end: {names}"


def faults_of_marks(jobs: Jobs, marks: Marks, leases: Mapping[str, int], shown_s: Mapping[str, float]) -> Iterator[str]:
    """No container ran twice, none began after its job's cancellation was shown, and what succeeded ran to its end."""
    yield from (f"{job_id} was never acknowledged, and ran" for job_id in sorted(marks.job_ids() - set(jobs)))
    for job_id, (kind, _) in jobs.items():
        for container in kind.containers if kind.is_real else ():
            starts, finished = marks.of(job_id, container, "start"), marks.of(job_id, container, "end")
            name = f"{job_id} ({kind.name}), container {container}"
            if marks.of(job_id, container, "twice"):
                yield f"{name}: two of it were alive at once: {starts}"
            if len(starts) > leases.get(job_id, 0) or len({mark.run_id for mark in starts}) != len(starts):
                yield f"{name}: started {len(starts)} times with {leases.get(job_id, 0)} leases: {starts}"
            if kind.end == "succeeded" and len(finished) != 1:
                yield f"{name}: reached its end {len(finished)} times"
            late = [mark for mark in starts if mark.at_s > shown_s.get(job_id, mark.at_s) + START_SLACK_S]
            if late:
                yield f"{name}: began {late[0].at_s - shown_s[job_id]:.2f} s after its cancellation was shown"


def faults_of_reads(jobs: Jobs, states: Mapping[str, str], details: Mapping[str, Any]) -> Iterator[str]:
    """Status and details agree with how each job had to end."""
    for job_id, (kind, story) in jobs.items():
        state = states.get(job_id, "nothing")
        expected = {"PREEMPTED", "FAILED"} if kind.name == "preempted" else {kind.end.upper()}
        if state not in expected:
            yield f"{job_id} ({kind.name}): its status is {state}"
        known = details.get(job_id)
        if known is None:
            yield f"{job_id} ({kind.name}): has no details"
        elif (known.queue, known.jobset) != story:
            yield f"{job_id} ({kind.name}): details say queue {known.queue}, job set {known.jobset}"
        elif kind.end == "succeeded" and len(known.job_runs) != 1:
            yield f"{job_id} ({kind.name}): has {len(known.job_runs)} runs"


def faults_of_course(load: Load, marks: Marks, killed_s: Sequence[float]) -> Iterator[str]:
    """It proves something only if kills met work: processes that lived through one, and answers that got lost."""
    survivors = 0
    for job_id, (kind, _) in load.jobs.items():
        starts, finished = marks.of(job_id, "main", "start"), marks.of(job_id, "main", "end")
        if kind.name == "long" and starts and finished and starts[0].pid == finished[0].pid:
            survivors += any(starts[0].at_s < at_s < finished[0].at_s for at_s in killed_s)
    if not survivors:
        yield "no process that lived through a kill was taken over and seen to its end"
    if len(load.jobs) < LEAST_JOBS_A_KILL * len(killed_s) or load.lost < len(killed_s):
        yield f"too little was going on: {len(load.jobs)} jobs, {load.lost} lost answers"
    missing = {kind.name for kind in KINDS} - {kind.name for kind, _ in load.jobs.values()}
    if missing:
        yield f"kinds of jobs that were never submitted: {sorted(missing)}"
