"""Jobs that ended too soon go on counting for their queue, by the log alone (rows Q1 and Q2)."""

from collections.abc import Sequence

import pytest

from armada.model import events as facts
from armada.model.events import Event
from armada.model.growth import MemoryGrowth
from armada.model.jobs import JobShape
from armada.model.policy import PoolPolicy, ResourceType, SchedulingPolicy
from armada.state.holdings.short_jobs import STARTS_PER_QUEUE
from armada.state.ledger import Ledger
from tests.unit.state.building import Story, leased, queue, submitted, template

START = 1_700_000_000_000
CUTOFF_MS = 60_000
POLICY = SchedulingPolicy(pools=(PoolPolicy(name="default", short_job_penalty_ms=CUTOFF_MS),))
KINDS = POLICY.kinds()
SHAPE = JobShape(requests=(("cpu", "2"), ("memory", "1Gi")), priority_class="armada-default")
COUNTS = KINDS.vector_up(SHAPE.requests)
FAILURE = facts.Failure(reason="it failed")


def story(policy: SchedulingPolicy = POLICY) -> Story:
    here = Story(policy)
    here.fact(queue("qa"), queue("qb"))
    here.node("n1")
    return here


def begins(here: Story, job_id: str, *, at_ms: int = START, queue: str = "qa") -> None:
    here.tell(submitted(job_id, of=template(shape=SHAPE)), queue=queue, time_ms=at_ms)
    run = f"{job_id}-r"
    started = facts.RunStarted(at_ms=at_ms, job_id=job_id, run_id=run)
    here.tell(leased(job_id, at_ms=at_ms), started, queue=queue, time_ms=at_ms)


def succeeds(here: Story, job_id: str, at_ms: int, *, queue: str = "qa") -> None:
    run = f"{job_id}-r"
    ended = facts.RunSucceeded(at_ms=at_ms, job_id=job_id, run_id=run)
    here.tell(ended, facts.JobSucceeded(at_ms=at_ms, job_id=job_id), queue=queue, time_ms=at_ms)
    here.tell(facts.RunsReleased(at_ms=at_ms, run_ids=(run,)), queue="", job_set="", time_ms=at_ms)


def counted(ledger: Ledger, now_ms: int) -> dict[str, tuple[int, ...]]:
    return ledger.penalties("default", now_ms)


def test_a_short_job_counts_until_the_cutoff_after_its_start() -> None:
    """Q1."""
    here = story()
    begins(here, "a")
    succeeds(here, "a", START + 20_000)
    assert counted(here.ledger, START + 20_000) == {"qa": COUNTS}
    assert counted(here.ledger, START + 59_999) == {"qa": COUNTS}
    assert counted(here.ledger, START + 60_000) == {}


def test_a_job_that_ran_for_the_cutoff_counts_nothing() -> None:
    """Q2: it ran for 60 s."""
    here = story()
    begins(here, "a")
    succeeds(here, "a", START + 60_000)
    assert counted(here.ledger, START + 60_000) == {}
    begins(here, "b", at_ms=START + 60_001)
    succeeds(here, "b", START + 120_000)
    assert counted(here.ledger, START + 120_000) == {"qa": COUNTS}


AT_MS = START + 5_000
FAILED_RUN = facts.RunFailed(at_ms=AT_MS, job_id="a", run_id="a-r", failure=FAILURE)
FAILED_JOB = facts.JobFailed(at_ms=AT_MS, job_id="a", failure=FAILURE)
MOVED = facts.Failure(reason="its node went to another pool", kind="reconciliation")
OWN_ENDS: dict[str, Sequence[Event]] = {
    "failed": (FAILED_RUN, FAILED_JOB),
    "cancelled": (facts.JobCancelled(at_ms=AT_MS, job_id="a"),),
}
OTHER_ENDS: dict[str, Sequence[Event]] = {
    "preempted": (
        facts.RunPreempted(at_ms=AT_MS, job_id="a", run_id="a-r", kind="urgency", reason=""),
        facts.JobPreempted(at_ms=AT_MS, job_id="a", failure=FAILURE),
    ),
    "asked to be preempted": (facts.JobPreemptRequested(at_ms=AT_MS, job_id="a"), FAILED_RUN, FAILED_JOB),
    "lease expired": (facts.RunLeaseExpired(at_ms=AT_MS, job_id="a", run_id="a-r"), FAILED_JOB),
    "given back": (facts.RunReturned(at_ms=AT_MS, job_id="a", run_id="a-r", failure=FAILURE), FAILED_JOB),
    "its node changed": (facts.JobFailed(at_ms=AT_MS, job_id="a", failure=MOVED),),
}


@pytest.mark.parametrize("kind", [*OWN_ENDS, *OTHER_ENDS])
def test_only_an_end_of_the_jobs_own_doing_counts(kind: str) -> None:
    """Q2, and 27.10: a lease that expires soon after the start is no fault of its queue."""
    here = story()
    begins(here, "a")
    here.tell(*(OWN_ENDS | OTHER_ENDS)[kind], time_ms=AT_MS)
    assert not here.ledger.void_rows(len(here.entries))
    assert counted(here.ledger, AT_MS) == ({"qa": COUNTS} if kind in OWN_ENDS else {})


def test_a_job_that_never_ran_counts_nothing() -> None:
    here = story()
    here.tell(submitted("a", "b", of=template(shape=SHAPE)), time_ms=START)
    here.tell(leased("a", at_ms=START), facts.RunPending(at_ms=START, job_id="a", run_id="a-r"), time_ms=START)
    failed = facts.RunFailed(at_ms=START, job_id="a", run_id="a-r", failure=FAILURE)
    here.tell(failed, facts.JobFailed(at_ms=START, job_id="a", failure=FAILURE), time_ms=START)
    here.tell(facts.JobCancelled(at_ms=START, job_id="b"), time_ms=START)
    assert counted(here.ledger, START) == {}


def test_a_job_that_waits_again_counts_when_it_is_over() -> None:
    here = story()
    begins(here, "a")
    failed = facts.RunFailed(at_ms=START + 1_000, job_id="a", run_id="a-r", failure=FAILURE)
    here.tell(failed, facts.JobRequeued(at_ms=START + 1_000, job_id="a"), time_ms=START + 1_000)
    assert counted(here.ledger, START + 1_000) == {}
    again = facts.RunStarted(at_ms=START + 2_000, job_id="a", run_id="again")
    here.tell(leased("a", "again", at_ms=START + 2_000), again, time_ms=START + 2_000)
    ended = facts.RunSucceeded(at_ms=START + 3_000, job_id="a", run_id="again")
    here.tell(ended, facts.JobSucceeded(at_ms=START + 3_000, job_id="a"), time_ms=START + 3_000)
    assert counted(here.ledger, START + 61_999) == {"qa": COUNTS}
    assert counted(here.ledger, START + 62_000) == {}


def test_a_success_that_is_the_first_word_of_a_run_counts_from_its_lease() -> None:
    here = story()
    here.tell(submitted("a", of=template(shape=SHAPE)), time_ms=START)
    here.tell(leased("a", at_ms=START), time_ms=START)
    succeeds(here, "a", START + 1_000)
    assert counted(here.ledger, START + 59_999) == {"qa": COUNTS}
    assert counted(here.ledger, START + 60_000) == {}


def test_queues_and_pools_are_counted_apart() -> None:
    here = story()
    for job_id, name in (("a", "qa"), ("b", "qb"), ("c", "qb")):
        begins(here, job_id, queue=name)
    for job_id, name in (("a", "qa"), ("b", "qb"), ("c", "qb")):
        succeeds(here, job_id, START + 1_000, queue=name)
    twice = tuple(2 * amount for amount in COUNTS)
    assert counted(here.ledger, START + 1_000) == {"qa": COUNTS, "qb": twice}
    assert here.ledger.penalties("other", START + 1_000) == {}


def test_memory_that_retries_added_and_the_pod_count_too() -> None:
    policy = SchedulingPolicy(
        pools=POLICY.pools,
        respects_node_pod_limits=True,
        resource_types=(ResourceType("cpu", "1m"), ResourceType("memory", "1")),
        fairness_resources=POLICY.fairness_resources[:2],
        indexed_resources=(),
    )
    here = story(policy)
    begins(here, "a")
    failed = facts.RunFailed(at_ms=START, job_id="a", run_id="a-r", failure=FAILURE)
    again = facts.JobRequeued(at_ms=START, job_id="a", growth=MemoryGrowth(factor=2.0))
    here.tell(failed, again, time_ms=START)
    here.tell(
        leased("a", "again", at_ms=START), facts.RunStarted(at_ms=START, job_id="a", run_id="again"), time_ms=START
    )
    here.tell(facts.JobCancelled(at_ms=START, job_id="a"), time_ms=START)
    assert counted(here.ledger, START) == {"qa": (2_000, 2 * 2**30, 1)}


def test_an_executors_clock_that_is_ahead_prolongs_nothing() -> None:
    here = story()
    here.tell(submitted("a", of=template(shape=SHAPE)), time_ms=START)
    ahead_ms = START + 3_600_000
    started = facts.RunStarted(at_ms=ahead_ms, job_id="a", run_id="a-r")
    ended = facts.RunSucceeded(at_ms=ahead_ms + 1_000, job_id="a", run_id="a-r")
    done = facts.JobSucceeded(at_ms=ahead_ms + 1_000, job_id="a")
    here.tell(leased("a", at_ms=START), started, ended, done, time_ms=START)
    assert counted(here.ledger, START + 59_999) == {"qa": COUNTS}
    assert counted(here.ledger, START + 60_000) == {}


def test_a_restart_and_another_replica_count_the_same() -> None:
    here = story()
    for number in range(5):
        begins(here, f"a{number}", at_ms=START + number)
        succeeds(here, f"a{number}", START + 10_000 + number)
    taken = Ledger.from_bytes(here.ledger.to_bytes(), POLICY)
    replayed = Ledger(POLICY)
    for entry in here.entries:
        replayed.apply(entry)
    assert taken.digest() == replayed.digest() == here.ledger.digest()
    for now_ms in (START + 10_004, START + 60_002, START + 60_004):
        assert counted(taken, now_ms) == counted(replayed, now_ms) == counted(here.ledger, now_ms)
    assert counted(taken, START + 60_002) == {"qa": tuple(2 * amount for amount in COUNTS)}


def test_what_has_been_asked_for_does_not_show_in_the_digest() -> None:
    here, other = story(), story()
    for each in (here, other):
        begins(each, "a")
        succeeds(each, "a", START + 1_000)
    counted(here.ledger, START + 10_000_000)
    assert here.ledger.digest() == other.ledger.digest()


def test_other_columns_and_pools_after_a_restart() -> None:
    here = story()
    begins(here, "a")
    succeeds(here, "a", START + 1_000)
    cpu_only = SchedulingPolicy(
        pools=POLICY.pools,
        resource_types=(ResourceType("gpu", "1"), ResourceType("memory", "1Mi"), ResourceType("cpu", "1m")),
        fairness_resources=POLICY.fairness_resources[:1],
        indexed_resources=(),
    )
    assert counted(Ledger.from_bytes(here.ledger.to_bytes(), cpu_only), START + 1_000) == {"qa": (0, 0, 2_000)}
    assert counted(Ledger.from_bytes(here.ledger.to_bytes(), SchedulingPolicy()), START + 1_000) == {}


def test_a_deleted_queue_leaves_nothing() -> None:
    here = story()
    begins(here, "a")
    succeeds(here, "a", START + 1_000)
    here.fact(facts.QueueDeleted(at_ms=1, name="qa"), queue("qa"))
    assert counted(here.ledger, START + 1_000) == {}


def test_many_starts_are_rounded_and_none_is_lost() -> None:
    here = story()
    count = 3 * STARTS_PER_QUEUE
    here.tell(submitted(*(f"j{number}" for number in range(count)), of=template(shape=SHAPE)), time_ms=START)
    for number in range(count):
        at_ms = START + number
        run = f"j{number}-r"
        here.tell(
            leased(f"j{number}", at_ms=at_ms),
            facts.RunStarted(at_ms=at_ms, job_id=f"j{number}", run_id=run),
            facts.RunSucceeded(at_ms=at_ms, job_id=f"j{number}", run_id=run),
            facts.JobSucceeded(at_ms=at_ms, job_id=f"j{number}"),
            time_ms=START + count,
        )
    all_of_them = tuple(count * amount for amount in COUNTS)
    assert counted(here.ledger, START + count) == {"qa": all_of_them}
    ((_, _, pairs),) = here.ledger.taken().content.short_jobs.lines
    assert len(pairs) <= STARTS_PER_QUEUE
    slack_ms = CUTOFF_MS // 256
    left = counted(here.ledger, START + CUTOFF_MS + count // 2)["qa"]
    assert all(abs(have - count // 2 * amount) <= slack_ms * amount for have, amount in zip(left, COUNTS, strict=True))
