"""Records that come twice, leaders that speak too late, entries that are known already."""

import itertools

import msgspec

from armada.model import events as facts
from armada.model.events import Entry
from armada.model.jobs import NewJob
from armada.model.lifecycle import JobState
from armada.state.ledger import Ledger
from tests.unit.state.building import POLICY, Story, leased, queue, ran, submitted

FAILURE = facts.Failure(reason="it failed")


# -- batches, epochs, positions ---------------------------------------------------------------------------------------


def test_a_repeated_batch_is_void_as_a_whole(story: Story) -> None:
    story.tell(facts.JobReprioritised(at_ms=1, job_id="q", priority=5), batch_id="b")
    story.tell(facts.JobReprioritised(at_ms=1, job_id="q", priority=6))
    position = story.tell(facts.JobReprioritised(at_ms=1, job_id="q", priority=5), batch_id="b")
    assert story.ledger.void_rows(position) == {(-1, -1)}
    job = story.ledger.job("q")
    assert job is not None
    assert job.priority == 6


def test_the_sequences_of_one_batch_are_no_repeats(story: Story) -> None:
    for ordinal, name in enumerate("abc"):
        story.tell(submitted(name), batch_id="b", ordinal=ordinal)
    assert all(story.ledger.has_job(name) for name in "abc")
    for ordinal in range(3):
        position = story.tell(submitted(f"again-{ordinal}"), batch_id="b", ordinal=ordinal)
        assert story.ledger.void_rows(position) == {(-1, -1)}


def test_only_the_next_epoch_counts_and_old_leaders_are_void() -> None:
    story = Story()
    story.fact(queue())
    for epoch, holder in ((1, "r1"), (2, "r2")):
        story.fact(facts.LeadershipClaimed(at_ms=1, epoch=epoch, holder=holder), epoch=epoch)
        assert (story.ledger.epoch, story.ledger.holder) == (epoch, holder)
    story.tell(submitted("a"), epoch=0)
    for epoch in (1, 3):
        position = story.tell(leased("a"), epoch=epoch)
        assert story.ledger.void_rows(position) == {(-1, -1)}
    story.tell(leased("a"), epoch=2)
    assert story.ledger.job_state("a") == JobState.LEASED
    unstamped = story.fact(facts.LeadershipClaimed(at_ms=1, epoch=3, holder="r3"), epoch=0)
    assert story.ledger.void_rows(unstamped) == {(0, -1)}


def test_an_entry_at_or_below_the_position_is_known_already(story: Story) -> None:
    digest, position = story.ledger.digest(), story.ledger.position
    for entry in story.entries:
        story.ledger.apply(entry)
    assert (story.ledger.digest(), story.ledger.position) == (digest, position)


def mixed_run() -> list[Entry]:
    """Success, retry, cancel, preemption, reprioritisation: what F056 wants recorded."""
    story = Story()
    story.fact(queue())
    story.node()
    story.tell(submitted("good", "again", "gone", "victim", NewJob("named", 3, "client")))
    story.tell(*(leased(name) for name in ("good", "again", "victim")))
    story.tell(*ran("good"), facts.RunStarted(at_ms=20, job_id="again", run_id="again-r"))
    story.tell(
        facts.RunFailed(at_ms=22, job_id="again", run_id="again-r", failure=FAILURE),
        facts.JobRequeued(at_ms=22, job_id="again", avoid_nodes=("n1",)),
    )
    story.tell(facts.JobCancelRequested(at_ms=23, job_id="gone"), facts.JobCancelled(at_ms=23, job_id="gone"))
    story.tell(
        facts.RunPreempted(at_ms=24, job_id="victim", run_id="victim-r", kind="urgency", reason="room"),
        facts.JobPreempted(at_ms=24, job_id="victim", failure=FAILURE),
    )
    story.tell(facts.JobReprioritised(at_ms=25, job_id="named", priority=9))
    story.fact(facts.RunsReleased(at_ms=26, run_ids=("good-r", "victim-r")))
    story.tell(leased("again", "again-2"), *ran("again", "again-2"))
    return story.entries


def replayed(entries: list[Entry]) -> Ledger:
    """A ledger that was told entries under fresh positions, whatever theirs were."""
    ledger = Ledger(POLICY)
    for position, entry in enumerate(entries, start=1):
        ledger.apply(msgspec.structs.replace(entry, position=position))
        ledger.validate()
    return ledger


def test_f056_records_that_come_twice_change_nothing() -> None:
    """F056: the whole log again, then its last third again; every message doubled at its own position."""
    entries = mixed_run()
    once = replayed(entries)
    again = replayed([*entries, *entries, *entries[-len(entries) // 3 :]])
    assert again.digest() == once.digest()
    doubled = Ledger(POLICY)
    for entry in itertools.chain.from_iterable((entry, entry) for entry in entries):
        doubled.apply(entry)
    assert doubled.digest() == once.digest()
    assert again.counts() == once.counts()


def test_f056_every_message_doubled_under_a_position_of_its_own() -> None:
    """Positions differ then, and with them only where a job's spec is found."""
    entries = mixed_run()
    once = replayed(entries)
    doubled = replayed([copy for entry in entries for copy in (entry, entry)])
    for job_id in ("good", "again", "gone", "victim", "named"):
        first, second = once.job(job_id), doubled.job(job_id)
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert msgspec.structs.replace(second, spec_position=first.spec_position) == first
