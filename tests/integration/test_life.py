"""Starting, stopping, and what keeps a control plane from starting."""

import asyncio
import contextlib
import shutil
import signal
import socket
import sqlite3
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
from armada_client.armada import job_pb2

from armada import assembly
from armada.model.errors import StartupRefused
from tests.integration.plane import Client, item, plane, settings_for
from tests.small_disk import small_disk


async def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    async with plane(tmp_path):
        with pytest.raises(StartupRefused, match=r"in use"):
            async with assembly.serving(settings_for(tmp_path)):
                pass


@pytest.mark.parametrize("which", ["grpc_port", "http_port", "metrics_port"])
async def test_a_port_in_use_is_named(tmp_path: Path, which: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartupRefused, match=rf"{which.removesuffix('_port')}: can't listen on 127.0.0.1:{port}"):
            async with assembly.serving(settings_for(tmp_path, **{which: port})):
                pass
    async with plane(tmp_path) as here:
        assert await here.client.send(item())


async def test_strangers_are_not_let_in_unasked(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match="allow_anonymous_anywhere"):
        async with assembly.serving(settings_for(tmp_path, host="::")):
            pass
    with pytest.raises(StartupRefused, match="no address"):
        async with assembly.serving(settings_for(tmp_path, host="no-such-host.invalid")):
            pass
    async with assembly.serving(settings_for(tmp_path, host="localhost")) as running:
        assert running.grpc_address.startswith("localhost:")


@pytest.mark.parametrize(
    ("section", "content", "named"),
    [
        ("submission", {"maxPodSpecSizeByte": 1}, "maxPodSpecSizeByte"),
        ("submission", {"allowedPriorityClassNames": ["x"]}, "defaultPriorityClassName"),
        ("scheduling", {"maxRetry": 3}, "maxRetry"),
        ("scheduling", {"defaultPriorityClassName": "gold"}, "gold"),
    ],
)
async def test_wrong_rules_are_named(tmp_path: Path, section: str, content: Mapping[str, object], named: str) -> None:
    with pytest.raises(StartupRefused, match=named):
        async with assembly.serving(settings_for(tmp_path, **{section: content})):
            pass


async def test_pages_say_how_it_is(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(item())

        def read(which: str, path: str) -> tuple[int, str]:
            with urllib.request.urlopen(f"http://{here.running.addresses[which]}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()

        assert (await asyncio.to_thread(read, "http", "/health"))[0] == 204
        status, text = await asyncio.to_thread(read, "metrics", "/metrics")
        assert status == 200
        assert 'armada_queue_size{queueName="qa",queue="qa",state="queued"} 1' in text
        assert "armada_log_appends_total" in text


async def test_a_restart_uses_the_checkpoint(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        job_ids = await here.client.send(*[item()] * 20)
        position = here.running.control_plane.replica.ledger.position
    async with plane(tmp_path) as here:
        saved = await here.running.control_plane.replica.log.latest_checkpoint()
        assert saved is not None
        assert saved.position >= position
        answer = await here.client.jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=job_ids))
        assert len(answer.job_states) == 20


async def test_a_damaged_checkpoint_costs_only_time(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        (job_id,) = await here.client.send(item())
    for file in (tmp_path / "checkpoints").iterdir():
        file.write_bytes(b"damaged")
    async with plane(tmp_path) as here:
        assert await here.client.state(job_id) == "QUEUED"


async def test_an_older_copy_of_the_log_is_refused_and_named(tmp_path: Path) -> None:
    folder, copy = tmp_path / "here", tmp_path / "copy"
    async with plane(folder):
        pass
    shutil.copytree(folder, copy)
    async with plane(folder) as here:
        await here.client.send(item())
    for file in folder.glob("log.db*"):
        file.unlink()
    shutil.copy(copy / "log.db", folder / "log.db")
    with pytest.raises(StartupRefused, match=r"here: the log ends at entry \d+, but there is a checkpoint of entry"):
        async with assembly.serving(settings_for(folder)):
            pass
    shutil.rmtree(folder / "checkpoints")
    async with plane(folder) as here:
        await here.client.send(item())


async def test_an_entry_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(item())
    shutil.rmtree(tmp_path / "checkpoints")
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as database, database:
        database.execute("UPDATE entries SET payload = x'00' WHERE position = 2")
    with pytest.raises(StartupRefused, match="entry 2 of the log"):
        async with assembly.serving(settings_for(tmp_path)):
            pass


async def test_a_start_on_a_full_disk_is_refused_and_does_no_damage(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4) as disk:
        folder, ballast = disk / "here", disk / "ballast"
        async with plane(folder) as here:
            (job_id,) = await here.client.send(item())
        with contextlib.suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(b"x" * 4_096)
                file.flush()
        with pytest.raises(StartupRefused, match="the disk is full"):
            async with assembly.serving(settings_for(folder)):
                pass
        ballast.unlink()
        async with plane(folder) as here:
            assert await here.client.state(job_id) == "QUEUED"


async def test_the_lead_is_taken_anew_at_each_start(tmp_path: Path) -> None:
    epochs = []
    for _ in range(2):
        async with plane(tmp_path) as here:
            epochs.append(here.running.control_plane.replica.ledger.epoch)
    assert epochs == [1, 2]


async def test_everything_runs_in_one_process(tmp_path: Path) -> None:
    """`armada up` with this machine and simulated clusters, stopped by a signal."""
    ready: dict[str, str] = {}
    settings = settings_for(tmp_path, simulate="2x3")

    async def use() -> None:
        async with asyncio.timeout(60):
            while not ready:  # noqa: ASYNC110 - told by a plain callback
                await asyncio.sleep(0.02)
        client = Client(ready["grpc"])
        await client.create_queue("qa")
        job_ids = await client.send(*[item() for _ in range(20)])
        for job_id in job_ids:
            await client.until(job_id, "SUCCEEDED", seconds=30)
        await client.channel.close()
        signal.raise_signal(signal.SIGTERM)

    running = asyncio.create_task(assembly._up(settings, ready.update))
    await use()
    assert await running == 0
    assert ready["clusters"] == "machine, sim-1, sim-2"
    assert ready["data"] == str(tmp_path)


async def test_an_executor_may_live_in_another_process(tmp_path: Path) -> None:
    """`armada executor` against `armada server`, over gRPC."""
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("clusters:\n  - id: far\n    pool: default\n    nodes: [{name: w, count: 2}]\n")
    ready: dict[str, str] = {}
    async with plane(tmp_path / "server") as here:
        settings = settings_for(tmp_path / "executor", simulate_file=fleet, server_url=here.running.grpc_address)
        executing = asyncio.create_task(assembly._execute(settings, ready.update))
        job_ids = await here.client.send(*[item() for _ in range(5)])
        for job_id in job_ids:
            await here.client.until(job_id, "SUCCEEDED", seconds=30)
        assert ready["clusters"] == "far"

        def read() -> str:
            with urllib.request.urlopen(f"http://{ready['metrics']}/metrics", timeout=5) as answer:
                return str(answer.read().decode())

        page = await asyncio.to_thread(read)
        assert 'armada_executor_nodes{executor="far"} 2.0' in page
        signal.raise_signal(signal.SIGINT)
        assert await executing == 0
