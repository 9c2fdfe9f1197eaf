"""The last entries, kept within bounds."""

from armada.eventlog.recent import RecentEntries
from armada.model.events import Entry, JobSucceeded


def entries(first: int, last: int) -> list[Entry]:
    event = JobSucceeded(at_ms=1, job_id="j")
    return [
        Entry(position=position, batch_id="b", time_ms=1, epoch=0, queue="q", job_set="s", events=(event,))
        for position in range(first, last + 1)
    ]


def positions(found: list[Entry] | None) -> list[int] | None:
    return None if found is None else [entry.position for entry in found]


def test_it_answers_only_for_what_it_holds() -> None:
    recent = RecentEntries(max_entries=100, max_bytes=1_000)
    assert recent.after(0, 10) is None
    recent.add(entries(5, 9), [1] * 5)
    assert recent.after(3, 10) is None
    assert positions(recent.after(4, 2)) == [5, 6]
    assert positions(recent.after(7, 10)) == [8, 9]
    assert positions(recent.after(9, 10)) == []


def test_the_oldest_leave_when_there_are_too_many() -> None:
    recent = RecentEntries(max_entries=10, max_bytes=1_000)
    for first in range(1, 100, 3):
        recent.add(entries(first, first + 2), [1] * 3)
        last = first + 2
        held = positions(recent.after(last - 5, 100)) if last > 5 else positions(recent.after(0, 100))
        assert held == list(range(max(1, last - 4), last + 1))
        if last > 10:
            assert recent.after(last - 11, 100) is None


def test_the_oldest_leave_when_they_are_too_large() -> None:
    recent = RecentEntries(max_entries=100, max_bytes=100)
    recent.add(entries(1, 4), [30] * 4)
    assert recent.after(2, 10) is None
    assert positions(recent.after(3, 10)) == [4]
    recent.add(entries(5, 5), [500])
    assert recent.after(4, 10) is None
    recent.add(entries(6, 6), [1])
    assert positions(recent.after(5, 10)) == [6]


def test_what_was_trimmed_is_forgotten() -> None:
    recent = RecentEntries()
    recent.add(entries(1, 9), [1] * 9)
    recent.forget_below(4)
    assert recent.after(0, 10) is None
    assert positions(recent.after(3, 10)) == [4, 5, 6, 7, 8, 9]
    recent.forget_below(100)
    assert recent.after(3, 10) is None
