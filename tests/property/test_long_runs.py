"""Long runs (`make nightly`) repeat by their seed; a broken law gives a small problem that `armada decide` reads."""

from pathlib import Path
from typing import Any

import pytest

from armada.cli.problems.reading import read_problems
from tests.nightly.chunks import LAWS, Chunk, Law, decide_chunk
from tests.nightly.run import chunks_of, report
from tests.oracle.strategies import problems


def test_a_run_has_so_many_examples_of_every_law() -> None:
    chunks = chunks_of(7, ["a", "b"], 600)
    assert [chunk.examples for chunk in chunks if chunk.law == "b"] == [250, 250, 100]
    assert len(set(chunks)) == len(chunks)


def test_a_broken_law_gives_the_same_small_problem_every_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(problem: dict[str, Any]) -> list[str]:
        return ["there are three jobs"] if len(problem["jobs"]) >= 3 else []

    monkeypatch.setitem(LAWS, "few jobs", Law("problems have few jobs", problems, broken))
    verdict, again = (decide_chunk(Chunk("few jobs", 1, 1, 200)) for _ in range(2))
    assert verdict == again
    assert verdict.complaints == ["there are three jobs"]
    (problem,) = read_problems((report(verdict, tmp_path),))
    assert len(problem.problem.jobs) == 3


def test_a_law_that_holds_has_nothing_to_complain_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LAWS, "true", Law("problems are problems", problems, lambda _: []))
    assert decide_chunk(Chunk("true", 1, 1, 20)).complaints == []


def test_that_a_problem_can_not_be_decided_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(problem: dict[str, Any]) -> list[str]:
        raise KeyError(problem["id"])

    monkeypatch.setitem(LAWS, "crash", Law("problems can be decided", problems, broken))
    assert decide_chunk(Chunk("crash", 1, 1, 20)).complaints == ["KeyError: 'drawn'"]
