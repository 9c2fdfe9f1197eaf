"""The metrics page of a running control plane, as a scraper sees it."""

import asyncio
import gzip
import urllib.request
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from armada.control.measuring.catalogue import SERIES
from tests.integration.plane import Executor, Plane, item, plane


async def scrape(here: Plane, **headers: str) -> str:
    """The page as text."""

    def read() -> str:
        request = urllib.request.Request(f"http://{here.running.addresses['metrics']}/metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - the scheme is written above
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            content = answer.read()
            return (gzip.decompress(content) if answer.headers["Content-Encoding"] == "gzip" else content).decode()

    return await asyncio.to_thread(read)


def families(page: str) -> dict[str, Metric]:
    """The page's series by name."""
    return {family.name: family for family in text_string_to_metric_families(page)}


def value(page: str, name: str, **labels: str) -> float:
    """The one sample of a series with these labels."""
    samples = [sample for sample in families(page)[name].samples if labels.items() <= sample.labels.items()]
    assert len(samples) == 1, samples
    return float(samples[0].value)


async def test_a_leader_shows_its_rounds(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running, "east")
        await executor.exchange()
        await here.client.send(*[item()] * 2)
        await executor.take(2)
        page = await scrape(here)
        assert value(page, "armada_scheduler_leader_status") == 1
        assert value(page, "armada_scheduler_scheduled_jobs", queue="qa", type="free_room") == 2
        assert value(page, "armada_scheduler_node_pool_size", pool="default") == 1
        assert value(page, "armada_scheduler_queue_weight", pool="default", queue="qa") == 1
        assert "# TYPE armada_scheduler_scheduled_jobs counter" in page
        assert "armada_scheduler_scheduled_jobs{" in page
        checks = families(page)["armada_scheduler_submit_check_times"]
        assert [sample.value for sample in checks.samples if sample.name.endswith("_count")] == [1]


async def test_series_carry_their_labels_and_no_others(tmp_path: Path) -> None:
    async with plane(tmp_path, metrics={"jobCheckpointIntervals": ["1h"]}) as here:
        executor = Executor(here.running, "east")
        await executor.exchange()
        await here.client.send(*[item()] * 3)
        leases = await executor.take(3)
        await executor.finish(leases[:1])
        await executor.finish(leases[1:2], "failed")
        await executor.report(leases[2], "pending", "running")
        await here.client.send(item(cpu="500"), item(cpu="60"))
        page = await scrape(here)
        labels = {series.name: set(series.labels) for series in SERIES}
        shown = families(page)
        for name in shown.keys() & labels.keys():
            for sample in shown[name].samples:
                assert sample.labels.keys() - {"le"} == labels[name], name
        assert {"armada_queue_size", "armada_cluster_capacity", "armada_job_run_time_seconds"} <= shown.keys()
        states = "armada_scheduler_job_state_counter_by_queue"
        assert value(page, states, queue="qa", state="succeeded", priorState="running") == 1
        assert value(page, states, queue="qa", state="failed", priorState="running") == 1
        assert value(page, "armada_queue_size", queue="qa", state="running") == 1


async def test_a_scraper_that_prefers_openmetrics_gets_the_same_names(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        plain = await scrape(here)
        page = await scrape(here, Accept="application/openmetrics-text;version=1.0.0", **{"Accept-Encoding": "gzip"})
        assert families(page).keys() == families(plain).keys()


async def test_who_lost_the_lead_shows_nothing_of_it(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        executor = Executor(here.running, "east")
        await executor.exchange()
        await here.client.send(item())
        await executor.take(1)
        assert "armada_scheduler_fair_share" in await scrape(here)
        here.running.control_plane._leader.deposed()
        page = await scrape(here)
        shown = [name for name in families(page) if name.startswith("armada_scheduler_")]
        assert shown == ["armada_scheduler_leader_status"]
        assert value(page, "armada_scheduler_leader_status") == 0


async def test_many_scrapers_at_once_are_all_answered(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.client.send(item())
        pages = await asyncio.gather(*[scrape(here) for _ in range(50)])
        assert all(value(page, "armada_scheduler_leader_status") == 1 for page in pages)


async def test_counts_equal_what_happened(tmp_path: Path) -> None:
    """F085: a hundred jobs of three queues, ten of them tried twice, with scrapers at work meanwhile."""
    async with plane(tmp_path) as here:
        for name in ("qb", "qc"):
            await here.client.create_queue(name)
        executor = Executor(here.running, "east", cpu="200")
        await executor.exchange()
        for name, count in (("qa", 50), ("qb", 30), ("qc", 20)):
            await here.client.send(*[item()] * count, queue=name)
        leases = await executor.take(100)
        other = Executor(here.running, "west")
        await other.exchange()
        scrapes = asyncio.gather(*[scrape(here) for _ in range(10)])
        for lease in leases[:10]:
            await executor.report(lease, "pending", "returned")
            executor.held.pop(lease.run_id)
        again = await other.take(10)
        await executor.finish(leases[10:])
        await other.finish(again)
        await other.report(again[0], "running", "succeeded")  # late, and counted nowhere
        assert all(value(page, "armada_scheduler_leader_status") == 1 for page in await scrapes)
        counted = families(await scrape(here))["armada_scheduler_job_state_counter_by_queue"].samples
        sums: dict[tuple[str, str], float] = {}
        for sample in counted:
            key = sample.labels["queue"], sample.labels["state"]
            sums[key] = sums.get(key, 0) + sample.value
        submitted = {"qa": 50, "qb": 30, "qc": 20}
        handed_back = sum(sums[name, "queued"] for name in submitted) - 100
        assert {name: sums[name, "succeeded"] for name in submitted} == submitted
        assert handed_back == 10
        assert sum(sums[name, "leased"] for name in submitted) == 110
        assert not [key for key in sums if key[1] in {"failed", "cancelled", "preempted"}]
