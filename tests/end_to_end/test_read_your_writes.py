"""What a call has answered, every later call on any connection knows: many connections, all at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final

import pytest
from armada_client.armada import event_pb2, job_pb2, submit_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.apimachinery.pkg.api.resource.generated_pb2 import Quantity

from tests.armada_process import ArmadaUp
from tests.end_to_end.crashing.load import Line, opened

CONNECTIONS: Final = 40
ROUNDS: Final = 3
BATCH: Final = 5
LIVE: Final = ("QUEUED", "LEASED", "PENDING", "RUNNING")
_names = count()

Story = tuple[str, str]
"""A queue and a job set."""
Call = Callable[[Line, Story, list[str]], Awaitable[None]]
"""A call that concerns jobs of a story."""


@asynccontextmanager
async def lines(address: str, number: int) -> AsyncIterator[list[Line]]:
    """Connections of their own, also below gRPC."""
    made = [Line(address) for _ in range(number)]
    try:
        yield made
    finally:
        for line in made:
            await line.close()


def endless(**more: Any) -> submit_pb2.JobSubmitRequestItem:
    """A job that runs on, on a simulated node, until somebody ends it."""
    amounts = {"cpu": Quantity(string="100m"), "memory": Quantity(string="16Mi")}
    container = core.Container(
        name="main",
        image="busybox",
        command=["sleep", "3600"],
        resources=core.ResourceRequirements(requests=amounts, limits=amounts),
    )
    pod = core.PodSpec(containers=[container], terminationGracePeriodSeconds=0, priorityClassName="armada-preemptible")
    return submit_pb2.JobSubmitRequestItem(namespace="n", pod_spec=pod, **more)


async def new_queue(line: Line) -> str:
    name = f"reads-{next(_names)}"
    await line.queues.CreateQueue(submit_pb2.Queue(name=name, priority_factor=1.0))
    return name


async def submitted(line: Line, queue: str, *items: submit_pb2.JobSubmitRequestItem, job_set: str = "s") -> list[str]:
    request = submit_pb2.JobSubmitRequest(queue=queue, job_set_id=job_set, job_request_items=items)
    return [row.job_id for row in (await line.submit.SubmitJobs(request)).job_response_items]


async def states(line: Line, job_ids: list[str]) -> dict[str, str]:
    answer = await line.jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=job_ids))
    return {job_id: submit_pb2.JobState.Name(state) for job_id, state in answer.job_states.items()}


async def told(line: Line, queue: str, job_set: str = "s") -> dict[str, list[str]]:
    """Kinds of events by job, as the stream has them now."""
    found: dict[str, list[str]] = {}
    request = event_pb2.JobSetRequest(queue=queue, id=job_set, errorIfMissing=True)
    async for message in line.events.GetJobSetEvents(request):
        kind, event = opened(message)
        found.setdefault(event.job_id, []).append(kind)
    return found


# -- one read each


async def status_knows(line: Line, _story: Story, job_ids: list[str]) -> None:
    known = await states(line, job_ids)
    assert set(known) == set(job_ids)
    assert set(known.values()) <= set(LIVE), known


async def details_know(line: Line, story: Story, job_ids: list[str]) -> None:
    asked = job_pb2.JobDetailsRequest(job_ids=job_ids, expand_job_spec=True, expand_job_run=True)
    details = (await line.jobs.GetJobDetails(asked)).job_details
    assert set(details) == set(job_ids)
    for known in details.values():
        assert (known.queue, known.jobset) == story
        assert list(known.job_spec.pod_spec.containers[0].command) == ["sleep", "3600"]


async def errors_know(line: Line, _story: Story, job_ids: list[str]) -> None:
    errors = (await line.jobs.GetJobErrors(job_pb2.JobErrorsRequest(job_ids=job_ids))).job_errors
    assert dict(errors) == dict.fromkeys(job_ids, "")


async def stream_knows(line: Line, story: Story, job_ids: list[str]) -> None:
    kinds = await told(line, *story)
    assert set(job_ids) <= set(kinds)
    assert {tuple(kinds[job_id][:2]) for job_id in job_ids} == {("submitted", "queued")}


async def new_priority_counts(line: Line, story: Story, job_ids: list[str]) -> None:
    request = submit_pb2.JobReprioritizeRequest(queue=story[0], job_set_id=story[1], job_ids=job_ids, new_priority=7)
    answer = await line.submit.ReprioritizeJobs(request)
    assert dict(answer.reprioritization_results) == dict.fromkeys(job_ids, "")
    asked = job_pb2.JobDetailsRequest(job_ids=job_ids, expand_job_spec=True)
    details = (await line.jobs.GetJobDetails(asked)).job_details
    assert {known.job_spec.priority for known in details.values()} == {7}


READS: Final[tuple[Call, ...]] = (
    status_knows,
    details_know,
    errors_know,
    stream_knows,
    new_priority_counts,
)


async def test_a_submitted_job_is_known_to_every_call_on_any_connection(up: ArmadaUp) -> None:
    async with lines(up.url, CONNECTIONS) as own, lines(up.url, CONNECTIONS) as others:
        queue = await new_queue(own[0])

        async def write_and_read(number: int) -> None:
            writer, other, story = own[number], others[-1 - number], (queue, f"set-{number}")
            for _ in range(ROUNDS):
                job_ids = await submitted(writer, queue, *[endless()] * BATCH, job_set=story[1])
                assert len(set(job_ids)) == BATCH
                await asyncio.gather(*(read(line, story, job_ids) for read in READS for line in (writer, other)))
                await cancelled_everywhere(writer, other, story, job_ids)

        await asyncio.gather(*map(write_and_read, range(CONNECTIONS)))


async def cancelled_everywhere(writer: Line, other: Line, story: Story, job_ids: list[str]) -> None:
    """Cancel on one connection; the other one sees nothing else from then on."""
    request = submit_pb2.JobCancelRequest(job_ids=job_ids, queue=story[0], job_set_id=story[1])
    assert list((await writer.submit.CancelJobs(request)).cancelled_ids) == job_ids
    assert set((await states(other, job_ids)).values()) == {"CANCELLED"}
    details = (await other.jobs.GetJobDetails(job_pb2.JobDetailsRequest(job_ids=job_ids))).job_details
    assert {submit_pb2.JobState.Name(known.state) for known in details.values()} == {"CANCELLED"}
    kinds = await told(other, *story)
    assert {kinds[job_id][-1] for job_id in job_ids} == {"cancelled"}


async def test_what_a_stream_has_told_every_call_knows(up: ArmadaUp) -> None:
    """The other way round: whoever hears of an end from the stream finds it in status, details and errors."""
    async with lines(up.url, 3) as (writer, watcher, reader):
        queue = await new_queue(writer)
        failing = endless(annotations={"armadaproject.io/sim": "runtime=50ms,exit=4"})
        job_ids = set(await submitted(writer, queue, *[failing] * 30))
        request = event_pb2.JobSetRequest(queue=queue, id="s", watch=True)
        async for message in watcher.events.GetJobSetEvents(request):
            kind, event = opened(message)
            if kind != "failed":
                continue
            job_id = event.job_id
            assert await states(reader, [job_id]) == {job_id: "FAILED"}
            errors = (await reader.jobs.GetJobErrors(job_pb2.JobErrorsRequest(job_ids=[job_id]))).job_errors
            assert errors[job_id] != ""
            asked = job_pb2.JobDetailsRequest(job_ids=[job_id], expand_job_run=True)
            known = (await reader.jobs.GetJobDetails(asked)).job_details[job_id]
            assert submit_pb2.JobState.Name(known.state) == "FAILED"
            assert job_pb2.JobRunState.Name(known.job_runs[0].state) == "RUN_STATE_FAILED"
            job_ids.discard(job_id)
            if not job_ids:
                break


async def test_one_client_id_on_many_connections_is_one_job(up: ArmadaUp) -> None:
    """Field case F065, and in one moment."""
    async with lines(up.url, 20) as many:
        queue = await new_queue(many[0])
        for turn in range(5):
            items = [endless(client_id=f"{turn}-{number}") for number in range(3)]
            answers = await asyncio.gather(*(submitted(line, queue, *items) for line in many))
            assert len({tuple(answer) for answer in answers}) == 1
            assert len(set(answers[0])) == 3
        kinds = await told(many[-1], queue)
        assert len(kinds) == 15
        assert {sorted(each).count("submitted") for each in kinds.values()} == {1}
        await cancel_set(many[0], (queue, "s"), [])


async def test_a_new_queue_takes_jobs_at_once_from_anybody(up: ArmadaUp) -> None:
    async with lines(up.url, 10) as many:
        for turn in range(10):
            queue = await new_queue(many[turn])
            await asyncio.gather(*(submitted(line, queue, endless()) for line in many))
            assert len(await told(many[turn - 1], queue)) == 10
            await cancel_set(many[0], (queue, "s"), [])
            await many[1].queues.DeleteQueue(submit_pb2.QueueDeleteRequest(name=queue))


ALL_STATES: Final = [submit_pb2.JobState.Value(state) for state in LIVE]


async def cancel_queue(line: Line, story: Story, _job_ids: list[str]) -> None:
    await line.queues.CancelOnQueue(submit_pb2.QueueCancelRequest(name=story[0], jobStates=ALL_STATES))


async def cancel_set(line: Line, story: Story, _job_ids: list[str]) -> None:
    await line.submit.CancelJobSet(submit_pb2.JobSetCancelRequest(queue=story[0], job_set_id=story[1]))


async def cancel_ids(line: Line, story: Story, job_ids: list[str]) -> None:
    await line.submit.CancelJobs(submit_pb2.JobCancelRequest(queue=story[0], job_set_id=story[1], job_ids=job_ids))


@pytest.mark.parametrize("cancel", [cancel_queue, cancel_set, cancel_ids])
async def test_a_cancel_covers_everything_that_was_answered_before_it(up: ArmadaUp, cancel: Call) -> None:
    """Field case F124: 500 jobs, and the cancel right behind the answer, on another connection."""
    async with lines(up.url, 2) as (writer, other):
        queue = await new_queue(writer)
        for _ in range(3):
            job_ids = await submitted(writer, queue, *[endless()] * 500)
            await cancel(other, (queue, "s"), job_ids)
            assert Counter((await states(writer, job_ids)).values()) == {"CANCELLED": 500}


async def test_a_reprioritisation_of_a_set_covers_everything_that_was_answered_before_it(up: ArmadaUp) -> None:
    async with lines(up.url, 2) as (writer, other):
        queue = await new_queue(writer)
        job_ids = await submitted(writer, queue, *[endless()] * 500)
        request = submit_pb2.JobReprioritizeRequest(queue=queue, job_set_id="s", new_priority=9)
        await other.submit.ReprioritizeJobs(request)
        asked = job_pb2.JobDetailsRequest(job_ids=job_ids, expand_job_spec=True)
        details = (await writer.jobs.GetJobDetails(asked)).job_details
        assert Counter(known.job_spec.priority for known in details.values()) == {9: 500}
        await cancel_set(other, (queue, "s"), job_ids)


async def test_a_preemption_of_a_queue_covers_every_run_that_was_told_before_it(up: ArmadaUp) -> None:
    async with lines(up.url, 3) as (writer, watcher, other):
        queue = await new_queue(writer)
        job_ids = set(await submitted(writer, queue, *[endless()] * 40))
        running: set[str] = set()
        request = event_pb2.JobSetRequest(queue=queue, id="s", watch=True)
        async for message in watcher.events.GetJobSetEvents(request):
            kind, event = opened(message)
            if kind == "running":
                running.add(event.job_id)
            if running == job_ids:
                break
        await other.queues.PreemptOnQueue(submit_pb2.QueuePreemptRequest(name=queue))
        assert Counter((await states(writer, sorted(job_ids))).values()) == {"PREEMPTED": 40}
        kinds = await told(writer, queue)
        assert {tuple(each[-2:]) for each in kinds.values()} == {("preempted", "failed")}
