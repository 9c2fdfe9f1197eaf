"""`armada decide`: answers in every form, and mistakes told with file, line and place."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from armada.cli.operator import run
from tests.shared_folder import REPOSITORY

EXAMPLE = REPOSITORY / "docs" / "examples" / "two-queues.json"


def problem(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "id": "small",
        "executors": [{"id": "e", "nodes": [{"id": "n", "total": {"cpu": "2", "memory": "4Gi"}}]}],
        "queues": [{"name": "a"}],
        "jobs": [{"id": f"j{n}", "queue": "a", "submitted": n, "request": {"cpu": "1"}} for n in range(3)],
    }
    return {**values, **changes}


def write(folder: Path, *problems: dict[str, Any]) -> str:
    file = folder / "problems.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in problems), encoding="utf-8")
    return str(file)


def answer_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Any]:
    assert run(["decide", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_documented_example_is_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (REPOSITORY / "docs" / "decide.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in page
    for command, shown in re.findall(r"```console\n\$ armada decide docs/(.*?)\n(.*?)```", page, re.DOTALL):
        arguments = [str(REPOSITORY / "docs" / word) if "/" in word else word for word in command.split()]
        assert run(["decide", *arguments]) == 0
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert printed == [line.rstrip() for line in shown.splitlines()]


def test_json_is_an_answer_that_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [answer] = answer_of(capsys, write(tmp_path, problem()))
    assert answer["id"] == "small"
    [decided] = answer["expected"]
    assert sorted(decided["default"]["scheduled"]) == ["j0", "j1"]
    assert decided["default"]["waiting"] == {"j2": "no_fit"}
    again = write(tmp_path, problem(expected=answer["expected"]))
    assert run(["decide", "--check", again]) == 0
    assert capsys.readouterr().out == "1 problems: 1 equal, 0 different\n"


def test_the_submit_check_tells_where_jobs_can_ever_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [
        {"id": "fits", "queue": "a", "request": {"cpu": "2"}},
        {"id": "too-large", "queue": "a", "request": {"cpu": "3"}},
        {"id": "runs", "queue": "a", "request": {"cpu": "1"}, "run": {"node": "n"}},
        *(
            {"id": f"g{n}", "queue": "a", "request": {"cpu": "2"}, "gang": {"id": "g", "cardinality": 2}}
            for n in (0, 1)
        ),
    ]
    asked = problem(jobs=jobs, submitCheck=True)
    [answer] = answer_of(capsys, write(tmp_path, asked))
    no = {"schedulable": False, "pools": []}
    expected = {"check": {"fits": {"schedulable": True, "pools": ["default"]}, "g0": no, "g1": no, "too-large": no}}
    assert answer == {"id": "small", "expected": expected}
    assert run(["decide", "--check", write(tmp_path, {**asked, "expected": expected})]) == 0
    assert run(["decide", "--check", write(tmp_path, {**asked, "expected": {"check": {"fits": no}}})]) == 1
    assert "fits: {'schedulable': True" in capsys.readouterr().out
    assert run(["decide", write(tmp_path, asked)]) == 0
    shown = capsys.readouterr().out
    assert "fits  can run in default" in shown
    assert "too-large  can never run: pool default: 1 of 1 nodes: 3 cpu asked for, the largest node offers 2" in shown
    assert run(["decide", "--explain", "fits", "--json", write(tmp_path, asked)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"id": "small", "job": "fits", "schedulable": True, "pools": ["default"], "reason": ""}


def test_a_market_shows_prices_and_bills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gangs = {"large": {"size": 1, "priorityClassName": "armada-preemptible", "resources": {"cpu": "9"}}}
    terms = {"enabled": True, "spotPriceCutoff": 0.5, "gangIndicativePricingTimeout": "1s", "gangsToPrice": gangs}
    file = write(
        tmp_path,
        problem(
            config={"pools": [{"name": "default", "experimentalMarketScheduling": terms}]},
            bids=[{"queue": "a", "pool": "default", "band": 0, "queued": 2, "running": 3}],
            resourceUnits={"default": {"cpu": "1"}},
        ),
    )
    assert run(["decide", file]) == 0
    printed = capsys.readouterr().out
    assert "spot price 2" in printed
    assert re.search(r"a\s+2 cpu\s+0\s+6\s+4\n", printed), printed
    assert re.search(r"large\s+no nodes have room for it at any price", printed), printed
    [answer] = answer_of(capsys, file)
    decided = answer["expected"][0]["default"]
    assert decided["spotPrice"] == 2
    assert decided["indicativePrices"] == {"large": "no nodes have room for it at any price"}
    assert decided["queues"]["a"]["billablePriceOverride"] == 0


def test_check_prints_differences_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [answer] = answer_of(capsys, write(tmp_path, problem()))
    decided = answer["expected"][0]["default"]
    del decided["scheduled"]["j1"]
    decided["scheduled"]["j0"]["node"] = "elsewhere"
    decided["waiting"]["j2"] = "queue_limit"
    decided["queues"]["a"]["weight"] = 2
    wrong = write(tmp_path, problem(expected=answer["expected"], deviations=["27.3"]))
    assert run(["decide", "--check", wrong]) == 1
    out = capsys.readouterr().out
    assert "small: 4 differences (known deviations: 27.3)" in out
    assert "scheduled, but not expected: j1" in out
    assert "j0 scheduled with node n, expected elsewhere" in out
    assert "j2 waits for no_fit, expected queue_limit" in out
    assert "queue a: weight is 1.0, expected 2" in out
    assert out.endswith("1 problems: 0 equal, 1 different\n")


def test_gzip_and_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "problems.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(problem()).encode()))
    [from_file] = answer_of(capsys, str(packed))
    with packed.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": stream}))
        [from_input] = answer_of(capsys, "-")
    assert from_file == from_input


def test_later_rounds_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = problem()["jobs"]
    jobs[0]["leaves"] = 1
    [answer] = answer_of(capsys, write(tmp_path, problem(rounds=2, jobs=jobs)))
    assert sorted(answer["expected"][1]["default"]["scheduled"]) == ["j2"]


def test_a_job_that_arrives_late_keeps_its_place_in_submit_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [
        {"id": "late", "queue": "a", "submitted": 0, "arrives": 1, "request": {"cpu": "2"}},
        {"id": "first", "queue": "a", "submitted": 1, "leaves": 1, "request": {"cpu": "2"}},
        {"id": "second", "queue": "a", "submitted": 2, "request": {"cpu": "2"}},
    ]
    [answer] = answer_of(capsys, write(tmp_path, problem(rounds=2, jobs=jobs)))
    assert list(answer["expected"][0]["default"]["scheduled"]) == ["first"]
    assert list(answer["expected"][1]["default"]["scheduled"]) == ["late"]


def test_explain_tells_one_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, problem())
    assert run(["decide", file, "--explain", "j2"]) == 0
    out = capsys.readouterr().out
    assert "waits (no_fit)" in out
    assert "1 node could hold it but is in use" in out
    [told] = answer_of(capsys, file, "--explain", "j0")
    assert told["decision"] == "runs on n at priority 1000 (no-preemption)"


def test_bench_counts_and_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [figures] = answer_of(capsys, write(tmp_path, problem()), "--bench", "3")
    assert (figures["id"], figures["scheduled"], figures["preempted"]) == ("small", 2, 0)
    assert len(figures["seconds"]) == 3
    assert min(figures["seconds"]) > 0
    assert run(["decide", write(tmp_path, problem()), "--bench", "1"]) == 0
    assert "small: 2 scheduled, 0 preempted\n  loading" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": 1}, "unknown field `colour`"),
        (
            {"jobs": [{"id": "j", "queue": "a", "request": {"cpu": "1"}, "colour": 1}]},
            r"jobs\[0\] \(j\): Object contains unknown field `colour`",
        ),
        ({"jobs": [{"id": "j", "queue": "b"}]}, "job j: queue 'b' is not among"),
        ({"jobs": [{"id": "j", "queue": "a", "priorityClass": "gold"}]}, "'gold' is not configured; there is armada-d"),
        ({"jobs": [{"id": "j", "queue": "a"}] * 2}, "jobs: 'j' occurs twice"),
        ({"jobs": [{"id": "", "queue": "a"}]}, "jobs: number 1 has an empty name"),
        ({"jobs": [{"id": "j", "queue": "a", "request": {"cpu": "-x"}}]}, "job j: request: cpu: '-x' is no Kubernetes"),
        (
            {"jobs": [{"id": "j", "queue": "a", "gang": {"id": "g", "cardinality": 0}}]},
            "cardinality must be at least 1",
        ),
        ({"jobs": [{"id": "j", "queue": "a", "arrives": 1, "run": {"node": "n"}}]}, "can't arrive later"),
        ({"rounds": 0}, "rounds must be 1 to"),
        ({"jobs": [{"id": "j", "queue": "a", "priceBand": 9}]}, "job j: priceBand must be 1 .A. to 8"),
        (
            {"bids": [{"queue": "a", "band": 9, "pool": "p", "queued": 1, "running": 1}]},
            "queue a in pool p: band must be",
        ),
        (
            {"bids": [{"queue": "a", "band": 1, "pool": "p", "queued": 1, "running": -1}]},
            "a bid must be a number from 0",
        ),
        ({"resourceUnits": {"p": {"cpu": "x"}}}, "resourceUnits of pool p: cpu: 'x' is no Kubernetes"),
        ({"resourceUnits": {"p": {"cpu": "0"}}}, "resourceUnits of pool p: a unit of '0' of cpu is not above 0"),
        ({"queues": [{"name": "a", "priorityFactor": 5e-324}]}, "queue a: priorityFactor must be from 1e-09 to 1e.300"),
        (
            {"overrides": [{"pool": "p", "queue": "a", "priority": 1e301}]},
            "of queue a in pool p: priority must be from",
        ),
        ({"secondsPerRound": 1e308}, r"secondsPerRound: 1e\+308 seconds are more than a hundred years"),
        (
            {"executors": [{"id": "e", "nodes": [], "heartbeatSecondsAgo": 1e308}]},
            "executor e: heartbeatSecondsAgo: 1e",
        ),
        (
            {"jobs": [{"id": "j", "queue": "a", "run": {"node": "n", "leasedSecondsAgo": -1e308}}]},
            "job j: run.leasedSec",
        ),
        (
            {"jobs": [{"id": "j", "queue": "a", "finished": {"pool": "p", "runningSecondsAgo": 1e308}}]},
            "job j: finished.runningSecondsAgo",
        ),
        ({"jobs": [{"id": "j", "queue": "a", "leaves": -1}]}, "job j: arrives and leaves are rounds"),
        ({"jobs": [{"id": "j", "queue": "a", "request": {"cpu": "-1m"}}]}, "request: cpu: -1m is less than nothing"),
        ({"config": {"maxQueueLookback": 2**70}}, "config.maxQueueLookback: .* is beyond the largest whole number"),
        ({"config": {"pools": [{"name": "p", "color": 1}]}}, r"unknown key config\.pools\[0\]\.color"),
        ({"executors": [{"id": "e", "nodes": [{"id": "n", "total": {"cpu": "1 Gi"}}]}]}, "node n: total: cpu: '1 Gi'"),
        (
            {
                "jobs": [
                    {"id": "i", "queue": "a", "gang": {"id": "g", "cardinality": 2}},
                    {"id": "j", "queue": "a", "gang": {"id": "g", "cardinality": 3}},
                ],
            },
            "job j does not fit its gang",
        ),
    ],
)
def test_mistakes_name_line_and_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], words: str
) -> None:
    file = write(tmp_path, problem(), problem(**changes))
    assert run(["decide", file]) == 2
    message = capsys.readouterr().err
    assert f"{file}, line 2" in message
    assert re.search(words, message), message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{not json}\n", "line 1: not one JSON object on a line"),
        (b"\x1f\x8bbroken", "can't be read"),
        (b"", "no problem in these files"),
        (b"[]\n", "line 1: Expected `object`"),
    ],
)
def test_what_is_no_problem_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    file = tmp_path / "problems.jsonl"
    file.write_bytes(content)
    assert run(["decide", str(file)]) == 2
    assert words in capsys.readouterr().err


def test_a_missing_file_and_contradicting_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["decide", str(tmp_path / "nothing")]) == 2
    assert "can't be read: No such file" in capsys.readouterr().err
    assert run(["decide", write(tmp_path, problem()), "--check", "--bench", "1"]) == 2
    assert "exclude each other" in capsys.readouterr().err
    assert run(["decide", write(tmp_path, problem()), "--check"]) == 2
    assert "there is no expected" in capsys.readouterr().err
    assert run(["decide", write(tmp_path, problem()), "--explain", "nobody"]) == 2
    assert "no problem in these files has a job 'nobody'" in capsys.readouterr().err
    assert run(["decide", write(tmp_path, problem()), "--id", "nothing"]) == 2
    assert "no problem with id 'nothing'" in capsys.readouterr().err


def test_what_is_not_followed_yet_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pools = [{"name": "default", "awayPools": ["other"], "experimentalRunReconciliation": {"enabled": True}}]
    assert run(["decide", write(tmp_path, problem(config={"pools": pools}))]) == 0
    said = capsys.readouterr().err
    assert "experimentalRunReconciliation of pool default is not followed yet" in said
    assert "awayPools" not in said
