"""The published client, synchronous: `python -m tests.compatibility.sync_journey ADDRESS QUEUE`."""

import sys

import grpc
from armada_client.client import ArmadaClient
from armada_client.typings import JobState

from tests.compatibility import asking


def journey(client: ArmadaClient, queue: str) -> asking.Told:
    """Everything a user does, in order."""
    told = asking.Told()
    told.facts["health"] = [client.submit_health().status, client.event_health().status]
    client.create_queue(client.create_queue_request(name=queue, priority_factor=asking.QUEUE_FACTOR))
    told.facts["factor"] = client.get_queue(queue).priority_factor
    told.facts["listed"] = queue in [each.name for each in client.get_queues()]

    answer = client.submit_jobs(queue, "many", asking.items(client, asking.JOBS, 0.2))
    ids = [item.job_id for item in answer.job_response_items]
    told.facts["submitted"] = len(set(ids))
    states = client.get_job_status(ids[:500]).job_states
    told.facts["known_at_once"] = len(states) == 500 and JobState.UNKNOWN.value not in states.values()

    stream = client.get_job_events_stream(queue, "many")
    for message in stream:
        told.take(client.unmarshal_event_response(message))
        if len(told.terminal) == asking.JOBS:
            break
    client.unwatch_events(stream)
    told.facts["ended_once"] = set(told.terminal.values()) == {1} and set(told.terminal) == set(ids)
    details = client.get_job_details(ids[:2]).job_details
    told.facts["runs"] = [len(details[job_id].job_runs) for job_id in ids[:2]]

    middle = len(told.message_ids) // 2
    resumed = client.get_job_events_stream(queue, "many", from_message_id=told.message_ids[middle])
    told.facts["resumed"] = next(resumed).id == told.message_ids[middle + 1]
    client.unwatch_events(resumed)

    later = client.submit_jobs(queue, "later", asking.items(client, 4, 600))
    waiting = [item.job_id for item in later.job_response_items]
    changed = client.reprioritize_jobs(7.0, waiting[:1], "later", queue)
    told.facts["reprioritised"] = dict(changed.reprioritization_results) == {waiting[0]: ""}
    told.facts["cancelled"] = list(client.cancel_jobs(queue, "later", waiting[1]).cancelled_ids) == [waiting[1]]
    client.cancel_jobset(queue, "later", [])
    ends = set()
    for message in client.get_job_events_stream(queue, "later"):
        event = client.unmarshal_event_response(message)
        if event.type.value == "cancelled":
            ends.add(event.message.job_id)
        if len(ends) == len(waiting):
            break
    told.facts["set_cancelled"] = ends == set(waiting)
    final = client.get_job_status([*waiting, "nope"]).job_states
    told.facts["final"] = sorted({JobState(state).name for state in final.values()})
    client.delete_queue(queue)
    return told


if __name__ == "__main__":
    with grpc.insecure_channel(sys.argv[1], compression=grpc.Compression.Gzip) as channel:
        journey(ArmadaClient(channel), sys.argv[2]).say()
