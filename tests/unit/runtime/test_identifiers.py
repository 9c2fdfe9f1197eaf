"""Drawn ids: ULIDs in order, whatever the clock does."""

import re

from armada.model.jobs import JOB_ID_LENGTH
from armada.runtime.identifiers import JobIds, batch_id, replica_name, wall_clock_ms


def test_job_ids_are_ulids_in_lower_case() -> None:
    (job_id,) = JobIds(lambda: 1_700_000_000_000).draw(1)
    assert len(job_id) == JOB_ID_LENGTH
    assert re.fullmatch(r"[0-7][0-9a-hjkmnp-tv-z]{25}", job_id)
    assert job_id.startswith("01hf7yat00")


def test_each_id_is_greater_than_the_one_before_even_when_the_clock_goes_back() -> None:
    times = iter([5_000, 5_000, 4_000, 6_000])
    drawing = JobIds(lambda: next(times))
    drawn = [job_id for _ in range(4) for job_id in drawing.draw(50)]
    assert drawn == sorted(set(drawn))


def test_nothing_is_drawn_for_nothing() -> None:
    assert JobIds().draw(0) == []


def test_two_drawers_do_not_meet() -> None:
    assert not set(JobIds().draw(100)) & set(JobIds().draw(100))


def test_other_ids_differ_each_time() -> None:
    assert batch_id() != batch_id()
    assert replica_name() != replica_name()
    assert wall_clock_ms() > 1_700_000_000_000
