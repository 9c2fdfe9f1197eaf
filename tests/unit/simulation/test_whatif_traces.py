"""Traces in the Standard Workload Format: how lines become jobs, and lines that can't."""

import gzip
from typing import Any

import pytest

from armada.model.errors import InvalidRequest
from armada.simulation.whatif.specs import Delay, WorkloadSpec
from armada.simulation.whatif.traces import TraceRules, largest_node_processors, read_trace
from tests.shared_folder import recordings
from tests.unit.simulation.test_whatif_reading import read_fleet
from tests.unit.simulation.whatif import MIXED, finished, fleet, node, rows


def line(**fields: Any) -> str:
    """A line with -1 wherever nothing is said."""
    names = ["job", "submit", "wait", "run", "used", "time", "memory_used", "asked", "asked_time", "memory_asked"]
    names += ["status", "user", "group", "program", "queue", "partition", "after", "think"]
    values = {"job": 1, "submit": 0, "run": 60, "asked": 1, **fields}
    return " ".join(str(values.get(name, -1)) for name in names)


def trace(*lines: str, **rules: Any) -> WorkloadSpec:
    return read_trace(lines, "trace", TraceRules(**{"pod_processors": 4, **rules}), [])


def test_a_line_becomes_a_job_of_its_user() -> None:
    spec = trace(
        "; Version: 2.2",
        "",
        line(job=7, submit=100, run=30.5, used=3, memory_asked=1024, user=12),
        line(job=8, submit=160, user=3),
    )
    assert [queue.name for queue in spec.queues] == ["user-12", "user-3"]
    [first] = spec.queues[0].templates
    assert (first.id, first.place, first.number, first.job_set) == ("7", "line 3", 1, "user-12")
    assert first.runtime == Delay(30_500)
    assert first.requests == (("cpu", "1"), ("memory", str(1024 * 1024)))
    [second] = spec.queues[1].templates
    assert (first.earliest_ms, second.earliest_ms) == (0, 60_000)


@pytest.mark.parametrize(
    ("by", "name"), [("user", "user-1"), ("group", "group-2"), ("queue", "queue-3"), ("none", "trace")]
)
def test_queues_are_what_the_caller_says(by: str, name: str) -> None:
    assert [queue.name for queue in trace(line(user=1, group=2, queue=3), queues_by=by).queues] == [name]
    assert [queue.name for queue in trace(line(), queues_by=by).queues] == [name.partition("-")[0]]


@pytest.mark.parametrize(
    ("processors", "members", "cpu"), [(1, 1, "1"), (4, 1, "4"), (5, 2, "3"), (8, 2, "4"), (10, 3, "4"), (9, 3, "3")]
)
def test_jobs_larger_than_a_pod_become_gangs(processors: int, members: int, cpu: str) -> None:
    [job] = trace(line(asked=processors), memory_per_processor=100).queues[0].templates
    assert (job.number, job.gang_cardinality) == (members, members)
    assert job.requests == (("cpu", cpu), ("memory", str(100 * int(cpu))))


def test_processors_and_memory_asked_for_come_before_those_used() -> None:
    def requests(**fields: Any) -> tuple[tuple[str, str], ...]:
        return trace(line(**fields)).queues[0].templates[0].requests

    assert requests(asked=2, used=3, memory_asked=1, memory_used=9) == (("cpu", "2"), ("memory", "2048"))
    assert requests(asked=-1, used=3, memory_used=1) == (("cpu", "3"), ("memory", "3072"))


def test_a_job_follows_another_after_its_think_time() -> None:
    spec = trace(line(job=1), line(job=2, submit=5, after=1, think=30), line(job=3, submit=6, after=99))
    templates = {each.id: each for each in spec.queues[0].templates}
    assert (templates["2"].dependencies, templates["2"].after_dependencies_ms) == (("1",), 30_000)
    assert templates["3"].dependencies == ()
    simulation, _ = finished(fleet(), spec, MIXED, cycle_ms=1_000, fast_forward=True)
    assert [row["submitted_time"] for row in rows(simulation)] == [0.0, 6.0, 90.0]


def test_jobs_that_never_ran_are_left_out_and_counted() -> None:
    remarks: list[str] = []
    lines = [line(job=1), line(job=2, run=-1), line(job=3, asked=0)]
    spec = read_trace(lines, "t", TraceRules(pod_processors=1), remarks)
    assert spec.job_count == 1
    assert remarks == ["2 of 3 jobs never ran and are left out"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], r"there is no job"),
        (["1 2 3"], r"^line 1: a job has 18 numbers, this line has 3"),
        ([";", line(run="x")], r"^line 2: .* all 18 fields are numbers"),
        ([line(submit=-5)], r"^line 1: field 2 is -5"),
        ([line(run="nan")], r"^line 1: field 4 is nan"),
        ([line(asked="inf")], r"^line 1: all 18 fields are finite"),
        ([line(asked=10**7)], r"^line 1: .* give pods more processors"),
        ([line(job=1), line(job=1)], r"two lines have the same job number"),
        (["; " + "x" * 10_000], r"^line 1: it has more than 10,000 characters"),
    ],
)
def test_mistakes(lines: list[str], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        trace(*lines)


def test_the_largest_node_decides_how_large_pods_may_be() -> None:
    assert largest_node_processors(read_fleet(fleet(node(cpu="3500m"), node(cpu="2")))) == 3
    assert largest_node_processors(read_fleet(fleet(node(cpu="500m")))) == 1


@pytest.mark.parametrize(
    ("name", "jobs", "left_out", "queues"),
    [("HPC2N-2002-alea-subset.swf.gz", 3_145, 25, 17), ("lublin_256.swf.gz", 10_000, 0, 1)],
)
def test_real_traces_are_read_whole(name: str, jobs: int, left_out: int, queues: int) -> None:
    remarks: list[str] = []
    with gzip.open(recordings().parent / "traces" / name, "rt", encoding="utf-8", errors="replace") as lines:
        spec = read_trace(lines, name, TraceRules(pod_processors=256), remarks)
    assert [remark.split(" ")[0] for remark in remarks] == ([str(left_out)] if left_out else [])
    assert (spec.job_count, len(spec.queues)) == (jobs, queues)
