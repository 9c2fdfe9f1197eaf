"""The journal over restarts, torn lines and rewrites."""

from pathlib import Path

import pytest

from armada.executor import journal as journals
from armada.executor.holding.runs import Mark, Remembered, marks_of, remember
from armada.executor.journal import Journal
from armada.model.errors import StartupRefused


def created(run_id: str) -> Mark:
    return Mark("c", run_id, 0, f"job-{run_id}", "q", "s")


def known(run_id: str, told: int = 0, *, cancelled: bool = False) -> Remembered:
    return Remembered(job_id=f"job-{run_id}", queue="q", job_set="s", told=told, is_cancelled=cancelled)


def test_marks_add_up() -> None:
    marks = [
        created("a"),
        Mark("t", "a", 2),
        Mark("t", "a", 1),
        created("b"),
        Mark("x", "b"),
        created("c"),
        Mark("f", "c"),
        Mark("t", "nobody", 3),
        Mark("f", "nobody"),
        Mark("?", "a"),
    ]
    runs = remember(marks, {})
    assert runs == {"a": known("a", 2), "b": known("b", cancelled=True)}
    assert remember(marks_of(runs), {}) == runs


def test_a_journal_is_read_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "deep" / "e.journal")
    assert journal.open() == {}
    journal.write([created("a"), Mark("t", "a", 1)])
    journal.write([created("b")])
    # The process may be killed here: nothing is closed.
    again = Journal(tmp_path / "deep" / "e.journal")
    assert again.open() == {"a": known("a", 1), "b": known("b")}
    again.close()
    journal.close()


def test_a_torn_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "e.journal"
    path.write_bytes(b'["c","a",0,"job-a","q","s"]\n["t","a",2]\nnonsense\n["c","b",0,"jo')
    journal = Journal(path)
    assert journal.open() == {"a": known("a", 2)}
    journal.close()


def test_the_file_is_rewritten_when_most_of_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "REWRITE_LINES", 100)
    journal = Journal(tmp_path / "e.journal")
    journal.open()
    journal.write([created("kept")])
    for number in range(1_000):
        journal.write([created(f"r{number}"), Mark("t", f"r{number}", 3), Mark("f", f"r{number}")])
    journal.close()
    assert len((tmp_path / "e.journal").read_bytes().splitlines()) < 300
    again = Journal(tmp_path / "e.journal")
    assert again.open() == {"kept": known("kept")}
    again.close()


def test_a_place_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupRefused, match="journal"):
        Journal(tmp_path / "file" / "e.journal").open()
