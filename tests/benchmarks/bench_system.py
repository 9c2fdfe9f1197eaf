"""The whole system as users meet it: `armada up` in one process, a client in another, two cores for both."""

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.benchmarks.figures import Figure
from tests.benchmarks.system import Client, Server, running, submission, wait_for_running

LATENCY_JOBS: Final = 25
IDLE_S: Final = 20.0
SETTLE_S: Final = 5.0
SUBMITTED_JOBS: Final = 100_000
BATCH: Final = 200
CONNECTIONS: Final = 4
SHORT_JOBS: Final = 10_000
SHORT_JOBS_LIMIT_S: Final = 300.0


def measure() -> Iterator[Figure]:
    """A second start; from nothing to the first job; latency, idleness; submissions; short jobs on three clusters."""
    yield second_start()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        yield first_job(server)
        yield from latency(server)
        yield from idleness(server, "idle, this machine as the cluster")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "--simulate", "3x100") as server:
        yield from submissions(server)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "--simulate", "3x100") as server:
        yield from short_jobs(server)
        yield from idleness(server, "idle, three clusters after 10,000 jobs")


def second_start() -> Figure:
    """Seconds until `armada server` is ready, kernels loaded: the best of three after a first start."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = []
        for _ in range(4):
            with running(Path(folder), verb="server") as server:
                seconds.append(server.ready_s)
    return Figure(
        name="armada server, second start: ready",
        value=min(seconds[1:]),
        unit="s",
        target=4.0,
        note="kernels taken from the cache before it says so",
    )


def first_job(server: Server) -> Figure:
    """Seconds from starting the process with an empty folder to the first job running."""
    client = Client(server.address)
    client.create_queue("first")
    stream = client.follow("first", "first")
    client.submit(submission("first", "first", 1, command=["sleep", "1"]))
    seconds = wait_for_running(stream) - server.spawned_s
    stream.cancel()
    client.close()
    return Figure(name="start to first job running", value=seconds, unit="s", target=5.0, reference="81 s")


def latency(server: Server) -> Iterator[Figure]:
    """Milliseconds from submit to the event `running`, one job at a time."""
    client = Client(server.address)
    client.create_queue("latency")
    seconds = []
    for number in range(LATENCY_JOBS):
        job_set = f"latency-{number}"
        stream = client.follow("latency", job_set)
        request = submission("latency", job_set, 1, command=["true"])
        time.sleep(0.2)  # let the last job end: the server is idle when asked
        asked_s = time.perf_counter()
        client.submit(request)
        seconds.append(wait_for_running(stream) - asked_s)
        stream.cancel()
    client.close()
    yield Figure(
        name="submit to running, median",
        value=statistics.median(seconds) * 1000,
        unit="ms",
        target=300.0,
        reference="9.1 s; 3.7 s with its limits opened",
        note=f"worst of {LATENCY_JOBS}: {max(seconds) * 1000:.0f} ms",
    )


def idleness(server: Server, name: str) -> Iterator[Figure]:
    """Memory, and the share of one core, of a server with nothing to do."""
    time.sleep(SETTLE_S)
    start_s, start_cpu_s = time.perf_counter(), server.cpu_s()
    time.sleep(IDLE_S)
    share = (server.cpu_s() - start_cpu_s) / (time.perf_counter() - start_s)
    reference = "1.0 GiB in 23 processes"
    yield Figure(name=f"{name}: memory", value=server.resident_mb(), unit="MB", target=250.0, reference=reference)
    yield Figure(name=f"{name}: CPU", value=share * 100, unit="% of a core", target=2.0)


def submissions(server: Server) -> Iterator[Figure]:
    """Jobs a second that are accepted and durable, in batches, over several connections; they wait, nothing runs."""
    first = Client(server.address)
    first.create_queue("deep")
    first.cordon("deep")
    request = submission("deep", "deep", BATCH, command=["sleep", "1"], is_simulated=True)
    batches = SUBMITTED_JOBS // BATCH // CONNECTIONS

    def send(_: int) -> int:
        client = Client(server.address)
        accepted = sum(len(client.submit(request)) for _ in range(batches))
        client.close()
        return accepted

    start_s, start_cpu_s = time.perf_counter(), server.cpu_s()
    with ThreadPoolExecutor(CONNECTIONS) as senders:
        accepted = sum(senders.map(send, range(CONNECTIONS)))
    taken_s, cpu_s = time.perf_counter() - start_s, server.cpu_s() - start_cpu_s
    first.close()
    yield Figure(
        name="submissions",
        value=accepted / taken_s,
        unit="jobs/s",
        target=10_000,
        note=f"{accepted:,} jobs in batches of {BATCH}; {cpu_s / accepted * 1e6:.0f} us of server CPU a job",
    )


def short_jobs(server: Server) -> Iterator[Figure]:
    """Jobs of one second from submission to success, and the server's CPU for one of them."""
    client = Client(server.address)
    client.create_queue("short")
    request = submission("short", "short", BATCH, command=["sleep", "1"], is_simulated=True)
    ends: dict[str, int] = {}
    watcher = threading.Thread(target=count_ends, args=(client, "short", ends), daemon=True)
    start_s, start_cpu_s = time.perf_counter(), server.cpu_s()
    watcher.start()
    for _ in range(SHORT_JOBS // BATCH):
        client.submit(request)
    watcher.join(SHORT_JOBS_LIMIT_S)
    taken_s, cpu_s = time.perf_counter() - start_s, server.cpu_s() - start_cpu_s
    client.close()
    if ends.get("succeeded", 0) != SHORT_JOBS:
        raise RuntimeError(f"after {taken_s:.0f} s: {ends}")
    yield Figure(
        name="short jobs, submit to success",
        value=SHORT_JOBS / taken_s,
        unit="jobs/s",
        target=1000,
        reference="19; 487 with its limits opened",
        note=f"{SHORT_JOBS:,} jobs of 1 s on 3 x 100 simulated nodes, one stream following",
    )
    yield Figure(
        name="short jobs: CPU of the process",
        value=cpu_s / SHORT_JOBS * 1000,
        unit="ms a job",
        target=1.0,
        reference="2.8 ms",
    )


def count_ends(client: Client, job_set: str, ends: dict[str, int]) -> None:
    """Follow a job set until as many jobs as `SHORT_JOBS` have ended, counting how."""
    stream = client.follow(job_set, job_set)
    left = SHORT_JOBS
    for message in stream:
        kind = message.message.WhichOneof("events")
        if kind in {"succeeded", "failed", "cancelled"}:
            ends[kind] = ends.get(kind, 0) + 1
            left -= 1
            if not left:
                break
    stream.cancel()
