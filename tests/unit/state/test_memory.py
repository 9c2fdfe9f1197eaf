"""What is remembered of the past, and for how long."""

import hypothesis.strategies as st
from hypothesis import given

from armada.model.events import Entry, JobCancelled, JobSucceeded, RunsReleased
from armada.model.jobs import NewJob
from armada.state.memory import WHOLE_ENTRY, Remembered, Voids, fingerprint, without
from tests.unit.state.building import submitted


def test_fingerprints_tell_texts_and_their_borders_apart() -> None:
    prints = {fingerprint(*parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ()]}
    assert len(prints) == 6
    assert fingerprint("ab", "c") == fingerprint("ab", "c")


def test_a_text_is_found_by_its_fingerprint() -> None:
    memory = Remembered(limit=100, text_bytes=4)
    for text in ("", "abcd", "a text that is too long", "ü", "\0"):
        memory.add(fingerprint(text), 1, text)
        assert memory.text(fingerprint(text)) == text
    assert memory.text(fingerprint("never")) is None
    assert fingerprint("never") not in memory
    memory.validate()


def test_the_oldest_leave_beyond_the_limit() -> None:
    memory = Remembered(limit=10)
    for number in range(5_000):
        memory.add(fingerprint(str(number)), number)
    assert len(memory) == 10
    assert [number for number in range(5_000) if fingerprint(str(number)) in memory] == list(range(4_990, 5_000))
    memory.validate()


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=300))
def test_it_is_a_queue_and_a_dictionary(steps: list[tuple[int, bool]]) -> None:
    memory, plain = Remembered(limit=50, text_bytes=2), dict[bytes, tuple[int, str]]()
    for time, (number, forgets) in enumerate(steps):
        key, text = fingerprint(str(number)), str(number)
        if forgets:
            memory.forget_before(time - 20)
            plain = {one: kept for one, kept in plain.items() if kept[0] >= time - 20}
        elif key not in memory:
            memory.add(key, time, text)
            plain[key] = (time, text)
            while len(plain) > 50:
                del plain[next(iter(plain))]
        assert (key in memory) == (key in plain)
    assert {key: memory.text(key) for key in plain} == {key: text for key, (_, text) in plain.items()}
    memory.validate()
    restored = Remembered(limit=50, text_bytes=2)
    restored.restore(memory.columns())
    restored.validate()
    assert restored.columns() == memory.columns()
    assert {key: restored.text(key) for key in plain} == {key: text for key, (_, text) in plain.items()}


def test_it_grows_without_losing_anything() -> None:
    memory = Remembered(limit=100_000, text_bytes=8)
    for number in range(5_000):
        memory.add(fingerprint(str(number)), number, str(number))
    memory.forget_before(1_000)
    for number in range(5_000, 9_000):
        memory.add(fingerprint(str(number)), number, str(number))
    assert all(memory.text(fingerprint(str(number))) == str(number) for number in range(1_000, 9_000))
    assert all(fingerprint(str(number)) not in memory for number in range(1_000))
    memory.validate()


def test_voids_are_found_by_position_and_forgotten_below_one() -> None:
    voids = Voids(limit=100)
    for position in (3, 3, 7, 9):
        voids.add(position, len(voids), -1)
    assert voids.at(3) == {(0, -1), (1, -1)}
    assert voids.at(7) == {(2, -1)}
    assert voids.at(8) == voids.at(100) == voids.at(1) == frozenset()
    voids.forget_below(7)
    assert voids.at(3) == frozenset()
    assert voids.at(7) == {(2, -1)}
    restored = Voids()
    restored.restore(voids.columns())
    assert restored.columns() == voids.columns() == ((7, 2, -1), (9, 3, -1))


def test_the_oldest_voids_are_forgotten_beyond_the_limit() -> None:
    voids = Voids(limit=100)
    for position in range(1, 1_001):
        voids.add(position, 0, -1)
    assert len(voids) <= 100
    assert voids.at(1_000) == {(0, -1)}
    assert voids.at(1) == frozenset()


ENTRY = Entry(
    position=1,
    batch_id="b",
    time_ms=1,
    epoch=0,
    queue="q",
    job_set="s",
    events=(submitted("a", "b", "c"), JobSucceeded(at_ms=4, job_id="a"), JobCancelled(at_ms=5, job_id="b")),
)


def test_an_entry_without_voids_is_the_same_object() -> None:
    assert without(ENTRY, frozenset()) is ENTRY


def test_void_parts_leave_and_the_others_keep_their_places() -> None:
    kept = without(ENTRY, frozenset({(0, 1), (1, -1)}))
    submission = kept.events[0]
    assert getattr(submission, "jobs", None) == (NewJob("a", 0), NewJob("c", 0))
    assert getattr(submission, "template", None) is getattr(ENTRY.events[0], "template", None)
    assert kept.events[1] == RunsReleased(at_ms=4, run_ids=())
    assert kept.events[2] is ENTRY.events[2]


def test_of_a_void_entry_nothing_is_left_but_places() -> None:
    kept = without(ENTRY, frozenset({WHOLE_ENTRY}))
    assert getattr(kept.events[0], "jobs", None) == ()
    assert kept.events[1:] == (RunsReleased(at_ms=4, run_ids=()), RunsReleased(at_ms=5, run_ids=()))
