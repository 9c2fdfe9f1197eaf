"""The published client, asyncio: `python -m tests.compatibility.asyncio_journey ADDRESS QUEUE`."""

import asyncio
import sys
from typing import Any

import grpc
from armada_client.asyncio_client import ArmadaAsyncIOClient
from armada_client.typings import JobState

from tests.compatibility import asking


async def journey(client: Any, queue: str) -> asking.Told:
    """Everything a user does, in order."""
    told = asking.Told()
    told.facts["health"] = [(await client.submit_health()).status, (await client.event_health()).status]
    await client.create_queue(client.create_queue_request(name=queue, priority_factor=asking.QUEUE_FACTOR))
    told.facts["factor"] = (await client.get_queue(queue)).priority_factor
    told.facts["listed"] = queue in [each.name for each in await client.get_queues()]

    answer = await client.submit_jobs(queue, "many", asking.items(client, asking.JOBS, 0.2))
    ids = [item.job_id for item in answer.job_response_items]
    told.facts["submitted"] = len(set(ids))
    states = (await client.get_job_status(ids[:500])).job_states
    told.facts["known_at_once"] = len(states) == 500 and JobState.UNKNOWN.value not in states.values()

    stream = await client.get_job_events_stream(queue, "many")
    async for message in stream:
        told.take(client.unmarshal_event_response(message))
        if len(told.terminal) == asking.JOBS:
            break
    client.unwatch_events(stream)
    told.facts["ended_once"] = set(told.terminal.values()) == {1} and set(told.terminal) == set(ids)
    details = (await client.get_job_details(ids[:2])).job_details
    told.facts["runs"] = [len(details[job_id].job_runs) for job_id in ids[:2]]

    middle = len(told.message_ids) // 2
    resumed = await client.get_job_events_stream(queue, "many", from_message_id=told.message_ids[middle])
    told.facts["resumed"] = (await anext(resumed)).id == told.message_ids[middle + 1]
    client.unwatch_events(resumed)

    later = await client.submit_jobs(queue, "later", asking.items(client, 4, 600))
    waiting = [item.job_id for item in later.job_response_items]
    changed = await client.reprioritize_jobs(7.0, waiting[:1], "later", queue)
    told.facts["reprioritised"] = dict(changed.reprioritization_results) == {waiting[0]: ""}
    cancelled = await client.cancel_jobs(queue, "later", waiting[1])
    told.facts["cancelled"] = list(cancelled.cancelled_ids) == [waiting[1]]
    await client.cancel_jobset(queue, "later", [])
    ends = set()
    async for message in await client.get_job_events_stream(queue, "later"):
        event = client.unmarshal_event_response(message)
        if event.type.value == "cancelled":
            ends.add(event.message.job_id)
        if len(ends) == len(waiting):
            break
    told.facts["set_cancelled"] = ends == set(waiting)
    final = (await client.get_job_status([*waiting, "nope"])).job_states
    told.facts["final"] = sorted({JobState(state).name for state in final.values()})
    await client.delete_queue(queue)
    return told


async def main() -> None:
    """Connect, do everything, print what happened."""
    async with grpc.aio.insecure_channel(sys.argv[1], compression=grpc.Compression.Gzip) as channel:
        (await journey(ArmadaAsyncIOClient(channel), sys.argv[2])).say()


if __name__ == "__main__":
    asyncio.run(main())
