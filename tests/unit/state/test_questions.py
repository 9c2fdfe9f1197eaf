"""What the leader asks, on a ledger with a bit of everything."""

import pytest

from armada.model import events as facts
from armada.model.fleet import ExecutorSettings
from armada.model.jobs import GangSpec, JobShape
from armada.state.questions import QueuedKind
from tests.unit.state.building import SHAPE, Story, leased, queue, submitted, template

OTHER = JobShape(requests=(("cpu", "2"),), priority_class="armada-default")


@pytest.fixture
def told() -> Story:
    """Queues `qa` and `qb`, an executor, and waiting, running and ganged jobs."""
    story = Story()
    story.fact(queue("qa"), queue("qb"))
    story.node()
    story.tell(submitted("a", "b"), submitted("c", of=template(shape=OTHER, pools=("default",))))
    story.tell(submitted("d"), submitted("e", of=template(shape=OTHER, external_job_uri="u")), queue="qb")
    story.tell(submitted("g1", "g2", of=template(gang=GangSpec("g", 2))), queue="qb")
    story.tell(submitted("h1", "h2", of=template(gang=GangSpec("h", 2))))
    story.tell(leased("a"), leased("h1"), leased("h2"))
    return story


def test_queued_jobs_are_told_by_kind(told: Story) -> None:
    assert set(told.ledger.queued_kinds()) == {
        QueuedKind("qa", SHAPE, None),
        QueuedKind("qa", OTHER, ("default",)),
        QueuedKind("qb", SHAPE, None),
        QueuedKind("qb", OTHER, None),
    }
    assert told.ledger.queued_count() == 6
    assert told.ledger.queued_gangs() == (("qb", "g"),)
    assert told.ledger.queued_jobs_of("qa", SHAPE, None) == ("b",)
    assert told.ledger.queued_jobs_of("qb", SHAPE, None) == ("d",)
    assert told.ledger.queued_jobs_of("qa", OTHER, None) == ()


def test_nothing_queued_is_no_trouble() -> None:
    ledger = Story().ledger
    assert (ledger.queued_kinds(), ledger.queued_gangs(), ledger.queued_count()) == ((), (), 0)
    assert ledger.active_queues() == {}
    assert ledger.queued_jobs_of("qa", SHAPE, None) == ()


def test_executors_are_asked_about(told: Story) -> None:
    assert told.ledger.executor_ids() == ("x1",)
    assert told.ledger.unstarted_count("x1") == 3
    assert told.ledger.unstarted_count("nobody") == 0
    told.tell(facts.RunPending(at_ms=1, job_id="a", run_id="a-r"))
    assert told.ledger.unstarted_count("x1") == 2
    assert not told.ledger.is_cordoned("x1")
    told.fact(facts.ExecutorSettingsChanged(at_ms=1, settings=ExecutorSettings(executor_id="x1", cordoned=True)))
    assert told.ledger.is_cordoned("x1")
    assert not told.ledger.is_cordoned("nobody")


def test_confirmed_runs_are_those_that_are_pending_or_running(told: Story) -> None:
    told.tell(
        facts.RunStarted(at_ms=1, job_id="h2", run_id="h2-r"),
        facts.RunPending(at_ms=1, job_id="a", run_id="a-r"),
    )
    assert told.ledger.confirmed_runs("x1") == ("a-r", "h2-r")
    told.tell(facts.JobCancelled(at_ms=2, job_id="a"), facts.JobCancelled(at_ms=2, job_id="h1"))
    assert told.ledger.confirmed_runs("x1") == ("h2-r",)
    assert told.ledger.confirmed_count("x1") == 1
    assert told.ledger.confirmed_count("nobody") == 0
    told.ledger.validate()


def test_active_queues_are_those_with_live_runs(told: Story) -> None:
    told.tell(leased("d"), queue="qb")
    assert told.ledger.active_queues() == {"default": ["qa", "qb"]}
    told.tell(facts.JobCancelled(at_ms=1, job_id="d"), queue="qb")
    assert told.ledger.active_queues() == {"default": ["qa"]}


def test_a_row_is_told_for_jobs_of_the_round_only(told: Story) -> None:
    as_of = told.ledger.next_sequence
    row = told.ledger.row_of("b", as_of)
    assert row is not None
    assert told.ledger.job_at(row, as_of) == "b"
    told.tell(submitted("later"))
    assert told.ledger.row_of("later", as_of) is None
    assert told.ledger.row_of("nobody", as_of) is None
