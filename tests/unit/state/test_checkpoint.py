"""Checkpoints: the whole ledger as bytes, and a ledger that goes on as if nothing had happened."""

import pytest

from armada.model import events as facts
from armada.model.errors import CorruptEntry
from armada.model.fleet import PriorityClass
from armada.model.growth import MemoryGrowth
from armada.model.jobs import GangSpec, NewJob
from armada.model.policy import RetryPolicy, SchedulingPolicy
from armada.state import checkpoint
from armada.state.ledger import Ledger
from tests.unit.state.building import POLICY, Story, leased, queue, submitted, template
from tests.unit.state.test_repeats import mixed_run

FAILURE = facts.Failure(reason="it failed")


def busy() -> Story:
    """A ledger with something of everything, and with rows that were freed and used again."""
    story = Story()
    story.fact(queue("qa"), queue("qb"))
    story.node("n1")
    story.node("n2", "x2")
    story.tell(*(submitted(f"early-{index}") for index in range(20)))
    story.tell(*(facts.JobCancelled(at_ms=1, job_id=f"early-{index}") for index in range(0, 20, 2)))
    story.tell(submitted("a", "b", of=template(gang=GangSpec("g", 2, "zone"), fail_fast=True)), queue="qb")
    story.tell(
        submitted(NewJob("01h00000000000000000000000", -4, "client"), of=template(pools=("other",))), job_set="t"
    )
    story.tell(leased("early-1"), leased("early-3", node_id="n2", executor_id="x2"))
    story.tell(
        facts.RunFailed(at_ms=9, job_id="early-1", run_id="early-1-r", failure=FAILURE),
        facts.JobRequeued(at_ms=9, job_id="early-1", avoid_nodes=("n1",), growth=MemoryGrowth(factor=1.5)),
        facts.JobPreemptRequested(at_ms=9, job_id="early-3"),
        facts.JobCancelled(at_ms=9, job_id="nobody"),
    )
    story.tell(leased("early-1", "second"), facts.RunStarted(at_ms=10, job_id="early-1", run_id="second"))
    story.fact(facts.LeadershipClaimed(at_ms=1, epoch=1, holder="r1"), epoch=1)
    story.fact(facts.RetryPolicySet(at_ms=1, policy=RetryPolicy(name="p", retry_limit=2)))
    return story


def restored(story: Story) -> Ledger:
    return Ledger.from_bytes(story.ledger.to_bytes(), POLICY)


def test_everything_comes_back() -> None:
    story = busy()
    ledger = restored(story)
    ledger.validate()
    assert ledger.digest() == story.ledger.digest()
    assert ledger.to_bytes() == story.ledger.to_bytes()
    assert (ledger.position, ledger.time_ms, ledger.epoch, ledger.holder) == (12, 12, 1, "r1")
    for name in ("early-1", "early-3", "early-5", "a", "b", "01h00000000000000000000000", "early-0"):
        assert ledger.job(name) == story.ledger.job(name)
        assert ledger.runs_of_job(name) == story.ledger.runs_of_job(name)
    assert ledger.executors == story.ledger.executors
    assert ledger.queues == story.ledger.queues
    assert ledger.retry_policies == story.ledger.retry_policies == {"p": RetryPolicy(name="p", retry_limit=2)}
    assert ledger.counts() == story.ledger.counts()
    assert ledger.gang("qb", "g") == story.ledger.gang("qb", "g")
    assert ledger.client_job("qa", "client") == "01h00000000000000000000000"
    assert [ledger.void_rows(entry.position) for entry in story.entries] == [
        story.ledger.void_rows(entry.position) for entry in story.entries
    ]


def test_what_was_taken_is_not_touched_by_later_facts() -> None:
    """A thread makes the bytes while the ledger goes on: rows are freed and used again, memories grow and forget."""
    story = busy()
    taken, then, digest = story.ledger.taken(), story.ledger.to_bytes(), story.ledger.digest()
    story.tell(*(facts.JobCancelled(at_ms=20, job_id=f"early-{index}") for index in range(1, 20, 2)))
    story.fact(facts.RunsReleased(at_ms=20, run_ids=("second", "early-1-r", "early-3-r")))
    story.tell(*(submitted(NewJob(f"late-{index}", 1, f"late-{index}")) for index in range(3_000)))
    story.tell(submitted("c", of=template(gang=GangSpec("h", 2, "zone"))), queue="qb")
    story.fact(
        facts.QueueDeleted(at_ms=20, name="qa"),
        facts.RetryPolicySet(at_ms=20, policy=RetryPolicy(name="q", retry_limit=1)),
    )
    story.node("n3", "x3")
    story.ledger.forget_voids(story.ledger.position)
    assert story.ledger.to_bytes() != then
    assert taken.packed() == then
    assert Ledger.from_bytes(taken.packed(), POLICY).digest() == digest


def test_an_empty_ledger_comes_back() -> None:
    ledger = Ledger.from_bytes(Ledger(POLICY).to_bytes(), POLICY)
    ledger.validate()
    assert ledger.digest() == Ledger(POLICY).digest()


@pytest.mark.parametrize("cut", range(len(mixed_run()) + 1))
def test_checkpoint_and_tail_equal_a_replay_from_zero(cut: int) -> None:
    entries = mixed_run()
    whole, ledger = Ledger(POLICY), Ledger(POLICY)
    for entry in entries:
        whole.apply(entry)
    for entry in entries[:cut]:
        ledger.apply(entry)
    ledger = Ledger.from_bytes(ledger.to_bytes(), POLICY)
    for entry in entries[max(0, cut - 2) :]:
        ledger.apply(entry)
    ledger.validate()
    assert ledger.digest() == whole.digest()
    assert ledger.to_bytes() == whole.to_bytes()


def test_a_batch_may_be_cut_in_two_by_a_checkpoint() -> None:
    story = Story()
    story.tell(submitted("a"), batch_id="b", ordinal=0)
    story.ledger = restored(story)
    story.tell(submitted("b"), batch_id="b", ordinal=1)
    assert story.ledger.has_job("b")
    position = story.tell(submitted("c"), batch_id="b", ordinal=0)
    assert story.ledger.void_rows(position) == {(-1, -1)}


def test_the_digest_sees_every_change() -> None:
    story = busy()
    digests = {story.ledger.digest()}
    for event in (
        facts.JobReprioritised(at_ms=1, job_id="early-5", priority=1),
        facts.JobCancelRequested(at_ms=1, job_id="early-5"),
        facts.JobReprioritised(at_ms=1, job_id="early-7", priority=1),
        facts.JobCancelled(at_ms=1, job_id="early-3"),
        facts.JobCancelled(at_ms=1, job_id="early-5"),
    ):
        story.tell(event, batch_id="", time_ms=11)
        digests.add(story.ledger.digest())
    story.tell(facts.QueueCordoned(at_ms=1, name="qa", cordoned=True), batch_id="", time_ms=11)
    digests.add(story.ledger.digest())
    assert len(digests) == 7


def test_a_changed_policy_takes_hold_with_a_restart() -> None:
    story = busy()
    changed = SchedulingPolicy(
        priority_classes=(PriorityClass(name="armada-default", priority=7),), node_id_label="name"
    )
    ledger = Ledger.from_bytes(story.ledger.to_bytes(), changed)
    ledger.validate()
    jobs = ledger._jobs
    row = jobs.ids.find("early-1")
    assert jobs.class_priority[row] == 7
    affinity = jobs.shapes[jobs.shape[row]].affinity
    assert affinity is not None
    assert affinity[0][0].key == "name"
    assert ledger.digest() == story.ledger.digest()


def test_any_damage_is_seen() -> None:
    payload = Story().ledger.to_bytes()
    for place in range(len(payload)):
        damaged = bytearray(payload)
        damaged[place] ^= 1
        with pytest.raises(CorruptEntry):
            Ledger.from_bytes(bytes(damaged), POLICY)
        with pytest.raises(CorruptEntry):
            Ledger.from_bytes(payload[:place], POLICY)


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = Story().ledger.to_bytes()
    monkeypatch.setattr(checkpoint, "VERSION", 2)
    with pytest.raises(CorruptEntry, match="checkpoint of version 1; this program reads version 2"):
        Ledger.from_bytes(payload, POLICY)
