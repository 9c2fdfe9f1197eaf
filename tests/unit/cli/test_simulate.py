"""`armada simulate`: results as files, the same bytes twice, and mistakes told with file, place and remedy."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from armada.cli.operator import run
from armada.cli.simulating.showing import clock
from armada.simulation.whatif.results import JOB_COLUMNS, QUEUE_COLUMNS
from tests.shared_folder import REPOSITORY
from tests.unit.simulation.whatif import fleet, node, queue, template, workload

EXAMPLES = REPOSITORY / "docs" / "examples" / "simulation"
FILES = ["jobs.parquet", "queue_length.png", "queue_stats.parquet", "report.html", "share.png", "utilisation.png"]

pytestmark = pytest.mark.timeout(400)  # whoever comes first may have to compile the kernels


def write(file: Path, values: Any) -> Path:
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    return file


def files(folder: Path) -> tuple[Path, Path]:
    """A file of one cluster and a file of a small workload."""
    jobs = workload(queue("a", template(3, priorityClassName="armada-preemptible")), queue("b", template(2)))
    return write(folder / "clusters.yaml", fleet(node(cpu="2"))), write(folder / "jobs.yaml", {**jobs, "randomSeed": 3})


def simulate(clusters: Path | str, workloads: Path | str, out: Path, *more: str) -> int:
    return run(["simulate", "--clusters", str(clusters), "--workloads", str(workloads), "--out", str(out), *more])


def table(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return found


def test_results_are_files_and_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert simulate(*files(tmp_path), out, "--enableFastForward") == 0
    assert sorted(path.name for path in out.iterdir()) == FILES
    jobs, rounds = table(out / "jobs.parquet"), table(out / "queue_stats.parquet")
    assert tuple(jobs[0]) == JOB_COLUMNS
    assert tuple(rounds[0]) == QUEUE_COLUMNS
    assert [job["state"] for job in jobs] == ["SUCCEEDED"] * 5
    assert max(job["finished_time"] for job in jobs) == 180.0
    assert [row["ts"] for row in rounds if row["queue"] == "a"][:2] == [0.0, 10.0]
    assert all((out / name).read_bytes().startswith(b"\x89PNG") for name in FILES if name.endswith(".png"))
    printed = capsys.readouterr()
    assert "00:03:00 of virtual time" in printed.out
    assert "(seed 3)" in printed.out
    assert printed.err == ""
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 3
    assert "http" not in page.replace("http-equiv", "")


def test_the_page_shows_the_example_and_every_column_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    page = (REPOSITORY / "docs" / "simulate.md").read_text(encoding="utf-8")
    for name in ("clusters.yaml", "workload.yaml"):
        assert (EXAMPLES / name).read_text(encoding="utf-8") in page
    columns = {*JOB_COLUMNS, *QUEUE_COLUMNS}
    assert {name for name in columns if f"`{name}`" not in page} == set()
    run(["simulate", "--help"])
    options = {word.split("=")[0] for word in re.findall(r"--[a-zA-Z-]+", capsys.readouterr().out)}
    assert {option for option in options if option not in page} == {"--help"}


def test_units_stand_in_the_files(tmp_path: Path) -> None:
    assert simulate(*files(tmp_path), tmp_path / "out", "--fast-forward") == 0
    schema = pq.read_schema(tmp_path / "out" / "queue_stats.parquet")
    assert schema.field("allocated_memory").metadata[b"description"] == b"megabytes (1,000,000 bytes)"
    assert str(schema.field("num_evicted").type) == "int32"


def test_the_same_seed_gives_the_same_bytes_in_any_process(tmp_path: Path) -> None:
    arguments = ["--clusters", str(EXAMPLES / "clusters.yaml"), "--workloads", str(EXAMPLES / "workload.yaml")]
    arguments += ["--enableFastForward", "--seed", "11"]
    assert run(["simulate", *arguments, "--out", str(tmp_path / "one")]) == 0
    again = [sys.executable, "-m", "armada", "simulate", *arguments, "--out", str(tmp_path / "two")]
    subprocess.run(again, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "99"})
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert run(["simulate", *arguments[:-1], "12", "--out", str(tmp_path / "three")]) == 0
    assert (tmp_path / "one" / "jobs.parquet").read_bytes() != (tmp_path / "three" / "jobs.parquet").read_bytes()


def test_every_cluster_meets_every_workload(tmp_path: Path) -> None:
    clusters, jobs = files(tmp_path)
    write(tmp_path / "clusters-large.yaml", fleet(node(cpu="100")))
    trace = tmp_path / "day.swf"
    trace.write_text("; a day\n1 0 -1 60 2 -1 -1 2 -1 -1 1 5 -1 -1 -1 -1 -1 -1\n", encoding="ascii")
    out = tmp_path / "out"
    assert simulate(tmp_path / "clusters*.yaml", tmp_path / "[jd]*", out, "--fast-forward") == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "clusters-day",
        "clusters-jobs",
        "clusters-large-day",
        "clusters-large-jobs",
        "report.html",
    ]
    ends = {path.name: max(row["finished_time"] for row in table(path / "jobs.parquet")) for path in out.glob("*-*")}
    assert ends["clusters-jobs"] == 180.0
    assert ends["clusters-large-jobs"] == 60.0
    [traced] = table(out / "clusters-day" / "jobs.parquet")
    assert (traced["queue"], traced["cpu"]) == ("user-5", 2.0)
    assert (clusters, jobs) == (tmp_path / "clusters.yaml", tmp_path / "jobs.yaml")


def test_the_configuration_counts(tmp_path: Path) -> None:
    clusters, jobs = files(tmp_path)
    plain = {"maximumResourceFractionToSchedule": {"cpu": 0.5}, "maximumSchedulingRate": 0.001}
    for number, values in enumerate(({"scheduling": plain}, plain)):
        config = write(tmp_path / f"config-{number}.yaml", values)
        out = tmp_path / f"out-{number}"
        assert simulate(clusters, jobs, out, "--config", str(config), "--fast-forward") == 0
        rounds = table(out / "queue_stats.parquet")
        # One cpu a round; the rate, which would allow a job every thousand seconds, is left out.
        assert sum(row["num_scheduled"] for row in rounds if row["ts"] == 0.0) <= 2
        assert max(row["finished_time"] for row in table(out / "jobs.parquet")) < 300.0


def test_the_limit_stops_it_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert simulate(*files(tmp_path), out, "--hardTerminationMinutes", "1.5", "--schedulerCyclePeriodSeconds", "5") == 0
    states = [row["state"] for row in table(out / "jobs.parquet")]
    assert states == ["SUCCEEDED"] * 2 + ["CANCELLED"] * 3
    assert {row["ts"] % 5 for row in table(out / "queue_stats.parquet")} == {0.0}
    warning = "3 jobs had not ended and 0 had not been submitted when it stopped at 00:01:30: the time was up"
    assert f"Warning: {warning}" in capsys.readouterr().err
    assert warning in (out / "report.html").read_text(encoding="utf-8")


def test_jobs_that_can_never_run_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clusters, _ = files(tmp_path)
    jobs = write(tmp_path / "big.yaml", workload(queue("a", template(cpu="3", id="big"))))
    assert simulate(clusters, jobs, tmp_path / "out") == 0
    assert "Warning: jobs of template big can never run: pool default: 1 of 1 nodes" in capsys.readouterr().err


def test_logs_are_a_line_for_each_cycle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(*files(tmp_path), tmp_path / "out", "--fast-forward", "--logs") == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "00:00:00 leased=2 preempted=0 queued=3 running=2 done=0 of 5"
    assert lines[-1] == "00:03:00 leased=0 preempted=0 queued=0 running=0 done=5 of 5"


def test_a_profile_is_written(tmp_path: Path) -> None:
    assert simulate(*files(tmp_path), tmp_path / "out", "--fast-forward", "--profile", str(tmp_path / "profile")) == 0
    assert (tmp_path / "profile").stat().st_size > 1_000


def test_results_are_not_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    assert simulate(*files(tmp_path), out) == 1
    assert capsys.readouterr().err == f"Error: {out} is not empty: choose another --out, or add --overwrite\n"
    assert simulate(*files(tmp_path), out, "--overwrite", "--fast-forward") == 0
    assert (out / "mine.txt").read_text() == "keep"
    assert simulate(*files(tmp_path), out / "mine.txt") == 1
    assert "is no folder" in capsys.readouterr().err
    assert simulate(*files(tmp_path), out / "mine.txt" / "below") == 1
    assert "the results can't be written" in capsys.readouterr().err


def test_mistakes_name_file_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clusters, jobs = files(tmp_path)
    out = tmp_path / "out"

    def told(*arguments: Any) -> str:
        assert simulate(*arguments) == 2
        assert not out.exists()
        return capsys.readouterr().err

    wrong = write(tmp_path / "wrong.yaml", workload(queue("a", template(0))))
    assert told(clusters, wrong, out) == (
        f"Error: {wrong}: queues[0].jobTemplates[0].number: 0 is not from 1 to 5,000,000\n"
    )
    assert "--workloads nowhere*: no file matches" in told(clusters, "nowhere*", out)
    assert "only folders match" in told(tmp_path, jobs, out)
    config = write(tmp_path / "config.yaml", {"maxQueueLookBack": 3})
    assert f"{config}: unknown key maxQueueLookBack" in told(clusters, jobs, out, "--config", str(config))
    trace = tmp_path / "trace.swf.gz"
    trace.write_bytes(b"not packed")
    assert f"{trace}: it can't be read" in told(clusters, trace, out)
    unknown = write(tmp_path / "class.yaml", workload(queue("a", template(priorityClassName="x"))))
    place = f"{unknown}: queues[0].jobTemplates[0].priorityClassName"
    assert f"{place}: the configuration has no priority class 'x'; it has armada-default" in told(
        clusters, unknown, out
    )
    for option in ("--hardTerminationMinutes", "--schedulerCyclePeriodSeconds"):
        for number in ("nan", "inf", "x"):
            assert told(clusters, jobs, out, option, number).startswith("Error: ")
    for memory in ("many", "-1Gi", "8Ei"):
        assert "Error: --trace-memory: " in told(clusters, jobs, out, "--trace-memory", memory)


def test_remarks_are_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clusters, _ = files(tmp_path)
    jobs = write(tmp_path / "odd.yaml", {**workload(queue("a", template())), "extra": 1})
    assert simulate(clusters, jobs, tmp_path / "out", "--fast-forward") == 0
    assert f"Warning: {jobs}: extra: unknown, not looked at" in capsys.readouterr().err


def test_help_and_mistakes_load_nothing_heavy() -> None:
    code = (
        "import sys; from armada.cli.operator import run; run(['simulate', '--help'])\n"
        "assert not {'numpy', 'numba', 'pyarrow', 'matplotlib', 'rich.progress'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_clock() -> None:
    assert [clock(seconds) for seconds in (0, 59.6, 3_661, 90_061)] == [
        "00:00:00",
        "00:01:00",
        "01:01:01",
        "1d 01:01:01",
    ]
