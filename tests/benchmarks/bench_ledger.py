"""The ledger: how fast it folds, how much room a million jobs take, what a round's input and a checkpoint cost."""

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from armada.model import events as facts
from armada.model.events import Entry, Event
from armada.model.fleet import Node, Queue
from armada.model.jobs import JobShape, JobTemplate, NewJob
from armada.model.policy import SchedulingPolicy
from armada.scheduling.readiness.warming import warm_up
from armada.scheduling.round import schedule
from armada.state.ledger import Ledger
from armada.state.pools import Circumstances
from tests.benchmarks.figures import Figure

JOBS: Final = 1_000_000
MANY_JOBS: Final = 5_000_000
BATCH: Final = 200
QUEUES: Final = 10
SETS: Final = 1_000
NODES: Final = 1_000
RUNS: Final = 80_000
POLICY: Final = SchedulingPolicy()
SHAPES: Final = tuple(
    JobShape(requests=(("cpu", f"{index + 1}00m"), ("memory", "1Gi")), priority_class="armada-default")
    for index in range(50)
)


class Writer:
    """Tells a ledger entries; the time counts that it takes to apply them, not to make them."""

    def __init__(self) -> None:
        self.ledger = Ledger(POLICY)
        self.spent_s = 0.0
        self._position = 0

    def tell(self, place: tuple[str, str], events: tuple[Event, ...]) -> None:
        self._position += 1
        entry = Entry(
            position=self._position,
            batch_id=f"batch-{self._position}",
            time_ms=self._position,
            epoch=0,
            queue=place[0],
            job_set=place[1],
            events=events,
        )
        begun = time.process_time()
        self.ledger.apply(entry)
        self.spent_s += time.process_time() - begun


def place_of(batch: int) -> tuple[str, str]:
    return f"q{batch % QUEUES}", f"set-{batch % SETS}"


def job_id(batch: int, number: int) -> str:
    return f"01jm{batch:010d}{number:012d}"


def submit_all(writer: Writer, *, client_ids: bool, jobs: int = JOBS) -> None:
    """A million jobs in batches of 200, of 50 shapes, 10 queues and 1,000 job sets."""
    writer.tell(("", ""), tuple(facts.QueueCreated(at_ms=1, queue=Queue(name=f"q{index}")) for index in range(QUEUES)))
    for batch in range(jobs // BATCH):
        template = JobTemplate(shape=SHAPES[batch % len(SHAPES)], pod_spec=b"{}", namespace="default")
        rows = tuple(
            NewJob(job_id(batch, number), number % 7, f"client-{batch}-{number}" if client_ids else "")
            for number in range(BATCH)
        )
        writer.tell(place_of(batch), (facts.JobsSubmitted(at_ms=batch, template=template, jobs=rows, owner="ann"),))


def run_some(writer: Writer) -> int:
    """Lease, start and end jobs; return the number of events."""
    count = 0
    for batch in range(RUNS // BATCH):
        names = [job_id(batch, number) for number in range(BATCH)]
        steps: tuple[tuple[Event, ...], ...] = (
            tuple(
                facts.RunLeased(
                    at_ms=1,
                    job_id=name,
                    run_id=f"run-{name}",
                    executor_id="x1",
                    node_id=f"n{index}",
                    node_name=f"n{index}",
                    pool="default",
                    priority=1000,
                )
                for index, name in enumerate(names)
            ),
            tuple(facts.RunPending(at_ms=2, job_id=name, run_id=f"run-{name}") for name in names),
            tuple(facts.RunStarted(at_ms=3, job_id=name, run_id=f"run-{name}") for name in names),
            tuple(facts.RunSucceeded(at_ms=4, job_id=name, run_id=f"run-{name}") for name in names),
            tuple(facts.JobSucceeded(at_ms=4, job_id=name) for name in names),
        )
        for step in steps:
            writer.tell(place_of(batch), step)
            count += len(step)
        writer.tell(("", ""), (facts.RunsReleased(at_ms=5, run_ids=tuple(f"run-{name}" for name in names)),))
        count += 1
    return count


def resident_mb() -> float:
    """The memory of this process in use."""
    with open("/proc/self/statm") as statm:  # noqa: PTH123 - a kernel file, not a path of ours
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Memory(msgspec.Struct, frozen=True):
    """What a process with queued jobs takes, in MB: the ledger, a snapshot beside it, the most during a round."""

    ledger_mb: float
    snapshot_mb: float
    peak_mb: float


def memory(jobs: int, *, client_ids: bool) -> Memory:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_ledger", str(jobs), "with" if client_ids else "without"]
    return msgspec.json.decode(subprocess.run(command, capture_output=True, check=True).stdout, type=Memory)


def seconds(work: Callable[[], object]) -> float:
    """The best of five calls."""
    best = float("inf")
    for _ in range(5):
        begun = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begun)
    return best


def report_nodes(writer: Writer) -> None:
    """A fleet of 1,000 nodes."""
    total = {"cpu": "32", "memory": "256Gi"}
    nodes = tuple(
        Node(node_id=f"n{index}", name=f"n{index}", executor_id="x1", pool="default", total=total)
        for index in range(NODES)
    )
    writer.tell(("", ""), (facts.ExecutorReported(at_ms=1, executor_id="x1", pool="default", nodes=nodes),))


def snapshot_s(writer: Writer) -> float:
    """A round's input after 100 jobs got another priority."""
    report_nodes(writer)
    circumstances = Circumstances(executors=frozenset({"x1"}))
    changes = tuple(
        facts.JobReprioritised(at_ms=1, job_id=job_id(0, number), priority=number % 9) for number in range(100)
    )

    def change_and_read() -> None:
        writer.tell(place_of(0), changes)
        writer.ledger.pool_snapshot("default", circumstances)

    change_and_read()
    return seconds(change_and_read)


def measure() -> Iterator[Figure]:
    """All figures of the ledger."""
    rate, many = 100_000, "1,000,000 queued"
    writer = Writer()
    submit_all(writer, client_ids=False)
    yield Figure(name="ledger: submitted jobs folded", value=JOBS / writer.spent_s, unit="jobs/s", target=rate)
    input_ms = snapshot_s(writer) * 1e3
    yield Figure(name=f"ledger: a round's input, {many}, 100 changes", value=input_ms, unit="ms", target=50)
    writer.spent_s = 0.0
    events = run_some(writer)
    yield Figure(name="ledger: facts of runs folded", value=events / writer.spent_s, unit="events/s", target=rate)
    payload, ledger = writer.ledger.to_bytes(), writer.ledger
    yield Figure(name="ledger: checkpoint written", value=seconds(ledger.to_bytes), unit="s", target=3)
    taking_up_s = seconds(lambda: Ledger.from_bytes(payload, POLICY))
    yield Figure(name="ledger: checkpoint taken up", value=taking_up_s, unit="s", target=3)
    yield from memory_figures()


def memory_figures() -> Iterator[Figure]:
    """Bytes a queued job, and whether five millions fit."""
    for client_ids, note in ((False, ""), (True, "; with client ids")):
        used = memory(JOBS, client_ids=client_ids)
        yield Figure(
            name="memory of a queued job, ledger and snapshot",
            value=used.snapshot_mb * 1e6 / JOBS,
            unit="bytes",
            target=300,
            reference="7 KB",
            note=f"1,000,000 jobs: ledger {used.ledger_mb:.0f} MB, with snapshot {used.snapshot_mb:.0f} MB{note}",
        )
    used = memory(MANY_JOBS, client_ids=True)
    yield Figure(
        name="memory of the process, 5,000,000 queued, at most",
        value=used.peak_mb,
        unit="MB",
        target=3_000,
        note=f"ledger {used.ledger_mb:.0f} MB, with snapshot {used.snapshot_mb:.0f} MB; most so far, a round included",
    )


def _main() -> None:
    jobs, client_ids = int(sys.argv[1]), sys.argv[2] == "with"
    warm_up()
    gc.collect()
    before = resident_mb()
    writer = Writer()
    report_nodes(writer)
    submit_all(writer, client_ids=client_ids, jobs=jobs)
    gc.collect()
    ledger_mb = resident_mb() - before
    snapshot = writer.ledger.pool_snapshot("default", Circumstances(executors=frozenset({"x1"})))
    gc.collect()
    snapshot_mb = resident_mb() - before
    schedule(snapshot)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    sys.stdout.write(msgspec.json.encode(Memory(ledger_mb, snapshot_mb, peak_mb)).decode())


if __name__ == "__main__":
    _main()
