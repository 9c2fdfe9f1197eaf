"""`armada up`, killed at random moments under load: nothing acknowledged is lost, and every job ends exactly once."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import grpc
import grpc.aio
import pytest
from armada_client.armada import job_pb2, submit_pb2

from tests.armada_process import ArmadaUp
from tests.integration.plane import Client, item

KILLS = 20
BATCH = 20
ENDED = {"SUCCEEDED", "FAILED", "CANCELLED", "PREEMPTED", "REJECTED"}
TERMINAL = {"succeeded", "failed", "cancelled"}


async def submit_until_it_dies(address: str, acknowledged: list[str]) -> None:
    """Submit batches as fast as the server takes them, and cancel one job of every other batch."""
    client = Client(address)
    try:
        while True:
            job_ids = await client.send(*[item("50m")] * BATCH)
            acknowledged.extend(job_ids)
            if len(acknowledged) % (2 * BATCH) == 0:
                cancel = submit_pb2.JobCancelRequest(job_ids=job_ids[:1], queue="qa", job_set_id="s")
                await client.submit.CancelJobs(cancel)
            await asyncio.sleep(0.05)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise
    finally:
        await client.channel.close()


async def states(client: Client, job_ids: list[str]) -> Counter[str]:
    """How many of the jobs are in which state."""
    found: Counter[str] = Counter()
    for start in range(0, len(job_ids), 500):
        asked = job_pb2.JobStatusRequest(job_ids=job_ids[start : start + 500])
        answer = await client.jobs.GetJobStatus(asked)
        found.update(submit_pb2.JobState.Name(state) for state in answer.job_states.values())
    return found


async def until_all_have_ended(client: Client, job_ids: list[str], seconds: float) -> Counter[str]:
    """Wait for the last job; return the states at the end."""
    async with asyncio.timeout(seconds):
        while set(found := await states(client, job_ids)) - ENDED:
            assert "UNKNOWN" not in found, f"acknowledged jobs are missing: {found}"
            await asyncio.sleep(0.5)
    return found


async def told_by_job(client: Client) -> tuple[dict[str, list[str]], Counter[str]]:
    """The terminal events, and the number of leases, of every job of the set."""
    ends: dict[str, list[str]] = {}
    leases: Counter[str] = Counter()
    for kind, message in await client.told():
        if kind in TERMINAL:
            ends.setdefault(message.job_id, []).append(kind)
        leases[message.job_id] += kind == "leased"
    return ends, leases


@pytest.mark.timeout(900)
def test_killed_again_and_again_it_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(20)
    acknowledged: list[str] = []
    for kill in range(KILLS):
        with ArmadaUp(tmp_path, "--simulate", "2x10") as running:
            running.wait_ready()
            asyncio.run(load_and_kill(running, acknowledged, chance.uniform(0.05, 1.5), is_first=kill == 0))
    with ArmadaUp(tmp_path, "--simulate", "2x10") as running:
        running.wait_ready()
        asyncio.run(check(running.url, acknowledged))
        assert running.stop() == 0


async def load_and_kill(running: ArmadaUp, acknowledged: list[str], after_s: float, *, is_first: bool) -> None:
    """Kill the process while three clients submit."""
    if is_first:
        client = Client(running.url)
        await client.create_queue("qa")
        await client.channel.close()
    clients = [asyncio.create_task(submit_until_it_dies(running.url, acknowledged)) for _ in range(3)]
    await asyncio.sleep(after_s)
    await asyncio.to_thread(running.kill)
    await asyncio.gather(*clients)


async def check(address: str, acknowledged: list[str]) -> None:
    """Every acknowledged job is there and ends, and no job of the set ends twice."""
    client = Client(address)
    try:
        await until_all_have_ended(client, acknowledged, seconds=120)
        ends, leases = await told_by_job(client)
        assert set(acknowledged) <= set(ends)
        assert {job_id: kinds for job_id, kinds in ends.items() if len(kinds) != 1} == {}
        assert {job_id: count for job_id, count in leases.items() if count > 1} == {}
        assert len(acknowledged) > KILLS * BATCH
    finally:
        await client.channel.close()
