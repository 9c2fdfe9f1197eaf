"""The journey of jobs through the control plane over gRPC: read your writes, executors, restarts."""

import asyncio
from pathlib import Path

import grpc
import pytest
from armada_client.armada import job_pb2, submit_pb2

from armada.model.errors import LogFull
from tests.integration.plane import Executor, gang_item, item, plane


async def test_a_job_goes_its_way(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        (job_id,) = await here.client.send(item())
        (lease,) = await executor.take()
        assert (lease.job_id, lease.node_name, lease.owner) == (job_id, "n1", "anonymous")
        assert await here.client.state(job_id) == "LEASED"
        await executor.finish([lease])
        assert await here.client.state(job_id) == "SUCCEEDED"
        told = ["submitted", "queued", "leased", "pending", "running", "succeeded"]
        assert await here.client.kinds(job_id) == told
        answer = await here.client.jobs.GetJobDetails(
            job_pb2.JobDetailsRequest(job_ids=[job_id], expand_job_run=True, expand_job_spec=True)
        )
        details = answer.job_details[job_id]
        assert submit_pb2.JobState.Name(details.state) == "SUCCEEDED"
        assert details.job_runs[0].run_id == lease.run_id
        assert details.job_spec.pod_spec.activeDeadlineSeconds == 259_200


async def test_what_was_answered_is_known_on_every_connection(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        others = [here.connection() for _ in range(5)]
        for _ in range(20):
            (job_id,) = await here.client.send(item())
            assert {await other.state(job_id) for other in others} == {"QUEUED"}
            await here.client.submit.CancelJobs(
                submit_pb2.JobCancelRequest(job_ids=[job_id], queue="qa", job_set_id="s")
            )
            assert {await other.state(job_id) for other in others} == {"CANCELLED"}
        for other in others:
            await other.channel.close()


async def test_a_held_exchange_answers_as_soon_as_there_is_a_lease(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        loop = asyncio.get_running_loop()
        holding = asyncio.create_task(executor.exchange(20_000))
        await asyncio.sleep(0.2)
        started = loop.time()
        await here.client.send(item())
        reply = await holding
        assert len(reply.leases) == 1
        assert loop.time() - started < 2.0


async def test_a_held_exchange_answers_when_a_run_is_cancelled(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        (job_id,) = await here.client.send(item())
        (lease,) = await executor.take()
        holding = asyncio.create_task(executor.exchange(20_000))
        await asyncio.sleep(0.1)
        await here.client.submit.CancelJobs(submit_pb2.JobCancelRequest(job_id=job_id, queue="qa", job_set_id="s"))
        assert (await holding).cancel_run_ids == (lease.run_id,)
        assert not executor.held
        assert (await executor.exchange()).cancel_run_ids == ()


async def test_an_exchange_without_news_ends_in_time(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        reply = await executor.exchange(300)
        assert (reply.cancel_run_ids, reply.leases) == ((), ())


async def test_jobs_survive_a_restart(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        running_id, done_id = await here.client.send(item(), item())
        running, done = await executor.take(2)
        await executor.report(running, "pending", "running")
        await executor.finish([done])
        (queued_id,) = await here.client.send(item("1000"), job_set="waits")
        (cancelled_id,) = await here.client.send(item("32"), job_set="gone")
        await here.client.submit.CancelJobSet(submit_pb2.JobSetCancelRequest(queue="qa", job_set_id="gone"))
    async with plane(tmp_path) as here:
        assert await here.client.state(running_id) == "RUNNING"
        assert await here.client.state(done_id) == "SUCCEEDED"
        assert await here.client.state(cancelled_id) == "CANCELLED"
        again = Executor(here.running)
        again.held = {running.run_id: "running"}
        await again.exchange()
        await again.report(running, "succeeded")
        assert await here.client.state(running_id) == "SUCCEEDED"
        assert await here.client.until(queued_id, "REJECTED", "QUEUED") in {"REJECTED", "QUEUED"}


async def test_a_gang_is_leased_whole(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        await here.client.send(gang_item("g", 3), gang_item("g", 3))
        assert (await executor.exchange(300)).leases == ()
        await here.client.send(gang_item("g", 3))
        assert len((await executor.exchange(10_000)).leases) == 3


async def test_twenty_calls_with_one_client_id_are_one_job(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        answers = await asyncio.gather(*[here.client.send(item(client_id="c"), item()) for _ in range(20)])
        assert len({first for first, _ in answers}) == 1
        assert len({second for _, second in answers}) == 20
        kinds = [kind for kind, _ in await here.client.told()]
        assert kinds.count("submitted") == 21


async def test_concurrent_members_of_a_gang_find_each_other(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        await asyncio.gather(*[here.client.send(gang_item("g", 4)) for _ in range(6)])
        assert len(await executor.take(4)) == 4
        kinds = [kind for kind, _ in await here.client.told()]
        assert (kinds.count("submitted"), kinds.count("failed")) == (6, 2)


async def test_a_cancel_of_the_queue_covers_what_was_answered_before(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running, cpu="8")
        await executor.exchange()
        job_ids = await here.client.send(*[item()] * 500)
        every = [submit_pb2.QUEUED, submit_pb2.LEASED, submit_pb2.PENDING, submit_pb2.RUNNING]
        await here.connection().queues.CancelOnQueue(submit_pb2.QueueCancelRequest(name="qa", jobStates=every))
        answer = await here.client.jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=job_ids))
        assert set(answer.job_states.values()) == {submit_pb2.CANCELLED}


async def test_cancelled_jobs_are_never_handed_out(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        for _ in range(30):
            (job_id,) = await here.client.send(item())
            cancel = submit_pb2.JobCancelRequest(job_id=job_id, queue="qa", job_set_id="s")
            await asyncio.gather(here.client.submit.CancelJobs(cancel), executor.exchange(20))
            executor.ever_leased.clear()
            await executor.exchange()
            assert job_id not in executor.ever_leased
            assert (await here.client.kinds(job_id))[-1] == "cancelled"
        await executor.exchange()
        assert not executor.held


@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_late_reports_do_not_revive_a_job(tmp_path: Path, end: str) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        (job_id,) = await here.client.send(item())
        (lease,) = await executor.take()
        if end == "cancelled":
            await here.client.submit.CancelJobSet(submit_pb2.JobSetCancelRequest(queue="qa", job_set_id="s"))
        else:
            await executor.finish([lease], "failed")
        told = await here.client.kinds(job_id)
        await executor.report(lease, "running", "succeeded")
        await executor.report(lease, "failed")
        assert await here.client.kinds(job_id) == told
        assert await here.client.state(job_id) == end.upper()
    async with plane(tmp_path) as here:
        assert await here.client.state(job_id) == end.upper()


async def test_reports_about_others_change_no_stream(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        east, west = Executor(here.running), Executor(here.running, "west")
        await east.exchange()
        (job_id,) = await here.client.send(item())
        (lease,) = await east.take()
        told = await here.client.kinds(job_id)
        await west.report(lease, "pending", "running", "succeeded")
        assert await here.client.kinds(job_id) == told
        metrics = here.running.control_plane.metrics.registry
        assert metrics.get_sample_value("armada_reports_dropped_total", {"executor": "west"}) == 3


async def test_reasons_can_be_read_back_after_a_restart(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        (job_id,) = await here.client.send(item(priority_class="armada-preemptible"))
        (lease,) = await executor.take()
        await executor.report(lease, "pending", "running")
        await here.client.submit.PreemptJobs(
            submit_pb2.JobPreemptRequest(queue="qa", job_set_id="s", job_ids=[job_id], reason="node repair 42")
        )
        await executor.report(lease, "failed")
        await executor.exchange()
    async with plane(tmp_path) as here:
        answer = await here.client.jobs.GetJobErrors(job_pb2.JobErrorsRequest(job_ids=[job_id]))
        assert "Preempted by anonymous - node repair 42" in answer.job_errors[job_id]
        failed = [message for kind, message in await here.client.told() if kind == "failed"]
        assert [message.reason for message in failed] == ["Preempted by anonymous - node repair 42"]


async def test_who_cancelled_and_why_can_be_read_back(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        (job_id,) = await here.client.send(item())
        await here.client.submit.CancelJobs(
            submit_pb2.JobCancelRequest(job_id=job_id, queue="qa", job_set_id="s", reason="wrong input")
        )
    async with plane(tmp_path) as here:
        request = job_pb2.JobDetailsRequest(job_ids=[job_id])
        details = (await here.client.jobs.GetJobDetails(request)).job_details[job_id]
        assert details.cancel_reason == "wrong input"
        assert details.cancel_user == "anonymous"


async def test_the_winner_of_a_preemption_is_named(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running, cpu="2")
        await executor.exchange()
        (victim,) = await here.client.send(item("2", priority_class="armada-preemptible"))
        (lease,) = await executor.take()
        await executor.report(lease, "pending", "running")
        (urgent,) = await here.client.send(item("2", priority_class="armada-urgent"))
        await executor.take()
        assert await here.client.state(victim) == "PREEMPTED"
        preempted = [message for kind, message in await here.client.told() if kind == "preempted"]
        assert [urgent in message.reason for message in preempted] == [True]
        assert "by urgency" in preempted[0].reason


async def test_a_repeat_after_a_failed_append_makes_a_real_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with plane(tmp_path) as here:
        log = here.running.control_plane.replica.log

        async def fails(*_: object, **__: object) -> int:
            raise LogFull("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(log, "append", fails)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await here.client.send(item(client_id="c"))
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await here.client.stream() == []
        (job_id,) = await here.client.send(item(client_id="c"))
        assert await here.client.state(job_id) == "QUEUED"
        assert await here.client.send(item(client_id="c")) == [job_id]


async def test_other_calls_on_a_queue_cover_what_was_answered_before(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        job_ids = await here.client.send(*[item("100m", priority_class="armada-preemptible")] * 50)
        await here.client.submit.ReprioritizeJobs(
            submit_pb2.JobReprioritizeRequest(queue="qa", job_set_id="s", new_priority=7)
        )
        kinds = [kind for kind, _ in await here.client.told()]
        assert kinds.count("reprioritized") == 50
        await executor.take(50)
        await here.client.queues.PreemptOnQueue(submit_pb2.QueuePreemptRequest(name="qa"))
        answer = await here.client.jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=job_ids))
        assert set(answer.job_states.values()) == {submit_pb2.PREEMPTED}


async def test_what_is_asked_for_too_much_is_refused(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        for call in (
            here.client.jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=["x"] * 501)),
            here.client.jobs.GetJobDetails(job_pb2.JobDetailsRequest(job_ids=["x"] * 501)),
            here.client.jobs.GetJobErrors(job_pb2.JobErrorsRequest(job_ids=["x"] * 501)),
            here.client.jobs.GetJobRunDetails(job_pb2.JobRunDetailsRequest(run_ids=["x"] * 501)),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_queues_at_work_are_known_by_pool(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running)
        await executor.exchange()
        await here.client.create_queue("idle")
        await here.client.send(item())
        (lease,) = await executor.take()
        active = (await here.client.jobs.GetActiveQueues(job_pb2.GetActiveQueuesRequest())).active_queues_by_pool
        assert {pool: list(queues.queues) for pool, queues in active.items()} == {"default": ["qa"]}
        await executor.finish([lease])
        active = (await here.client.jobs.GetActiveQueues(job_pb2.GetActiveQueuesRequest())).active_queues_by_pool
        assert dict(active) == {}


async def test_a_queue_with_live_jobs_is_not_deleted(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(item())
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await here.client.queues.DeleteQueue(submit_pb2.QueueDeleteRequest(name="qa"))
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        await here.client.submit.CancelJobSet(submit_pb2.JobSetCancelRequest(queue="qa", job_set_id="s"))
        await here.client.queues.DeleteQueue(submit_pb2.QueueDeleteRequest(name="qa"))
