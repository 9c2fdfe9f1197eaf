"""The comparison itself: it can fail."""

import pytest

from tests.vectors.api.matching import Matcher, events_by_job

JOB = "01kabcdefghjkmnpqrstvwxyz0"
OTHER = "01kabcdefghjkmnpqrstvwxyz1"


def test_a_placeholder_is_bound_at_first_sight_and_then_required() -> None:
    matcher = Matcher()
    assert matcher.differences({"jobId": "<job:1>"}, {"jobId": JOB}) == []
    assert matcher.differences({"name": "armada-<job:1>-0"}, {"name": f"armada-{JOB}-0"}) == []
    assert matcher.differences({"jobId": "<job:1>"}, {"jobId": OTHER}) == [f"jobId: {OTHER!r}, recorded '<job:1>'"]
    assert matcher.request({"jobIds": ["<job:1>"]}) == {"jobIds": [JOB]}


def test_ids_as_keys_are_bound_too() -> None:
    matcher = Matcher()
    assert matcher.differences({"<job:1>": "QUEUED"}, {JOB: "QUEUED"}) == []
    assert matcher.bound == {"<job:1>": JOB}
    assert matcher.differences({"<job:1>": "x"}, {OTHER: "x"}) != []


@pytest.mark.parametrize(
    ("recorded", "seen"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": "x"}, {}),
        ({}, {"a": "x"}),
        ({"a": ["x"]}, {"a": ["x", "y"]}),
        ({"a": ["x", "y"]}, {"a": ["y", "x"]}),
        ({"a": {"b": "1"}}, {"a": {"b": "2"}}),
        ({"message": "words"}, {"message": ""}),
        ({"owner": "alice"}, {"owner": "bob"}),
        ({"t": "<ts>"}, {"t": ""}),
        ({"a": [1]}, {"a": {"b": 1}}),
        ({"reason": "x"}, {"reason": "y"}),
    ],
)
def test_differences_are_seen(recorded: object, seen: object) -> None:
    assert Matcher().differences(recorded, seen) != []


@pytest.mark.parametrize(
    ("recorded", "seen"),
    [
        ({"a": "", "b": {"c": False, "d": "0"}, "e": []}, {}),
        ({"message": "words"}, {"message": "other words"}),
        ({"failed": {"reason": "words"}}, {"failed": {"reason": "other words"}}),
        ({"owner": "alice"}, {"owner": "anonymous"}),
        ({"created": "<ts>", "id": "<msgid:t:1:0:0>"}, {"created": "2026-01-31T12:00:00Z", "id": "7:0:0:1"}),
    ],
)
def test_what_is_free_is_free(recorded: object, seen: object) -> None:
    assert Matcher().differences(recorded, seen) == []


def test_unknown_ids_of_requests_are_made_up_once() -> None:
    matcher = Matcher()
    first = matcher.request(["<job:7>", "<uuid:1>"])
    assert matcher.request(["<job:7>", "<uuid:1>"]) == first
    assert len(first[0]) == 26
    assert len(first[1]) == 36


def test_the_order_among_jobs_is_free_but_not_that_of_one() -> None:
    assert events_by_job(["a 1", "a 2", "b 1"]) == events_by_job(["a 2", "a 1", "b 1"])
    assert events_by_job(["a 1", "b 1"]) != events_by_job(["b 1", "a 1"])
