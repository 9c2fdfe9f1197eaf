"""State changes counted from facts: every figure here can be worked out from the times in the story."""

from typing import Any

import msgspec
import pytest

from armada.control.measuring.series import OTHERS
from armada.control.measuring.transitions import SERIES, Transitions
from armada.control.retries import Retries
from armada.model.events import (
    Failure,
    JobFailed,
    JobPreempted,
    JobRejected,
    JobRequeued,
    JobSetEvents,
    JobSucceeded,
    LeadershipClaimed,
    RetryPolicySet,
    RunFailed,
    RunPending,
    RunPreempted,
    RunReturned,
    RunStarted,
    RunSucceeded,
)
from armada.model.growth import grown_further
from armada.model.policy import MetricsPolicy, RetryEngine, RetryMutation, RetryPolicy, SchedulingPolicy
from armada.state.ledger import Ledger
from tests.unit.control.world import World, fact, gang_item, item, node, pod

Samples = dict[tuple[str, ...], float]


class Story:
    """A world whose facts are counted; `at` moves its clock to so many seconds after the begin."""

    def __init__(self, metrics: MetricsPolicy | None = None, policy: SchedulingPolicy | None = None) -> None:
        self.world = World(policy)
        self.counted = Transitions(metrics or MetricsPolicy(checkpoint_intervals_ms=(0, 60_000)))
        self.world.ledger.show_to(self.counted)
        self.world.report_nodes(node("n1"), node("n2"))
        self._start_ms = self.world.now_ms

    def at(self, seconds: float) -> None:
        self.world.now_ms = self._start_ms + round(seconds * 1_000)

    def say(self, job_id: str, *kinds: type[msgspec.Struct], **more: object) -> None:
        """Store facts about a job's current run, all at this moment."""
        job = self.world.ledger.job(job_id)
        assert job is not None
        made: list[Any] = []
        for kind in kinds:
            given = {"at_ms": self.world.now_ms, "job_id": job_id, "run_id": job.run_id, **more}
            made.append(kind(**{name: given[name] for name in kind.__struct_fields__ if name in given}))
        self.world.store(JobSetEvents(job.queue, job.job_set, tuple(made)))

    def samples(self, name: str) -> Samples:
        (family,) = [each for each in self.counted.families() if each.series.name == f"armada_scheduler_{name}"]
        return dict(family.samples)


def test_a_job_from_submission_to_its_end() -> None:
    story = Story()
    job_id, _ = story.world.submit(item(pod(cpu="2")), item())
    story.at(10)
    story.world.lease(job_id)
    story.at(13)
    story.say(job_id, RunPending)
    story.at(18)
    story.say(job_id, RunStarted)
    story.at(118)
    story.say(job_id, RunSucceeded, JobSucceeded)
    assert story.samples("job_state_counter_by_queue") == {
        ("qa", "", "queued", ""): 2,
        ("qa", "default", "leased", "queued"): 1,
        ("qa", "default", "pending", "leased"): 1,
        ("qa", "default", "running", "pending"): 1,
        ("qa", "default", "succeeded", "running"): 1,
    }
    assert story.samples("job_state_seconds_by_queue") == {
        ("qa", "", "queued", ""): 0,
        ("qa", "default", "leased", "queued"): 10,
        ("qa", "default", "pending", "leased"): 3,
        ("qa", "default", "running", "pending"): 5,
        ("qa", "default", "succeeded", "running"): 100,
    }
    held = story.samples("job_state_resource_seconds_by_queue")
    assert held[("qa", "default", "leased", "queued", "cpu")] == 20
    assert held[("qa", "default", "succeeded", "running", "cpu")] == 200
    assert held[("qa", "default", "succeeded", "running", "memory")] == 100 * 64 * 2**20
    assert story.samples("job_state_seconds_by_node") == {
        ("n1", "default", "east", "leased", "queued"): 10,
        ("n1", "default", "east", "pending", "leased"): 3,
        ("n1", "default", "east", "running", "pending"): 5,
        ("n1", "default", "east", "succeeded", "running"): 100,
    }
    (completed,) = [each for each in story.counted.families() if "completed" in each.series.name]
    assert [(labels, spread.total, sum(spread.counts)) for labels, spread in completed.distributions] == [
        (("qa", "default"), 100.0, 1)
    ]


def test_a_job_that_waits_again_waits_from_then_on() -> None:
    story = Story()
    (job_id,) = story.world.submit(item())
    story.at(5)
    story.world.lease(job_id)
    story.at(50)
    story.say(job_id, RunReturned, failure=Failure(reason="no room"))
    story.say(job_id, JobRequeued)
    story.at(57)
    story.world.lease(job_id, "n2")
    seconds = story.samples("job_state_seconds_by_queue")
    assert seconds[("qa", "default", "queued", "leased")] == 45
    assert seconds[("qa", "default", "leased", "queued")] == 5 + 7
    assert story.samples("job_state_counter_by_queue")[("qa", "default", "leased", "queued")] == 2
    assert story.samples("job_state_counter_by_node") == {
        ("n1", "default", "east", "leased", "queued"): 1,
        ("n1", "default", "east", "queued", "leased"): 1,
        ("n2", "default", "east", "leased", "queued"): 1,
    }
    # The same is known after a restart.
    again = Ledger.from_bytes(story.world.ledger.to_bytes(), story.world.policy)
    assert again.to_bytes() == story.world.ledger.to_bytes()


def test_failures_are_counted_once_by_their_error() -> None:
    story = Story()
    failed, rejected, late = story.world.submit(item(), item(), item())
    story.world.start(failed)
    story.world.start(late)
    failure = Failure(reason="x", category="user", subcategory="oom")
    story.say(failed, RunFailed, JobFailed, failure=failure)
    story.say(rejected, JobRejected, reason="never")
    for _ in range(3):  # reports that come again change nothing
        story.world.store(JobSetEvents("qa", "s", (JobFailed(at_ms=1, job_id=failed, failure=failure),)))
    assert story.samples("job_error_classification_by_queue") == {
        ("qa", "default", "user", "oom"): 1,
        ("qa", "", "internal", "job-rejected"): 1,
    }
    assert story.samples("job_error_classification_by_node") == {("n1", "default", "east", "user", "oom"): 1}
    counts = story.samples("job_state_counter_by_queue")
    assert counts[("qa", "default", "failed", "running")] == 1
    assert counts[("qa", "", "failed", "queued")] == 1
    gone = Failure(reason="its node changed", kind="reconciliation", category="internal")
    story.say(late, JobFailed, failure=gone)
    assert story.samples("failed_jobs") == {("default", "qa", "armada-default", "reconciliation"): 1}


def test_what_a_preemption_costs() -> None:
    story = Story()
    job_id, other = story.world.submit(item(pod(cpu="4")), item())
    story.world.start(job_id)
    story.world.start(other)
    story.at(150)
    failure = Failure(reason="x", kind="preempted")
    story.say(job_id, RunPreempted, JobPreempted, kind="fairshare", reason="x", failure=failure)
    story.say(other, RunPreempted, JobPreempted, kind="api", reason="x", failure=failure)
    assert story.samples("preempted_jobs") == {("default", "qa", "armada-default", "fairshare"): 1}
    lost = story.samples("job_resource_seconds_lost_to_preemption")
    # 150 s: everything is lost without checkpoints, 30 s with one a minute. The other job ran as long on one cpu.
    assert lost[("qa", "default", "0s", "cpu")] == 150 * 4 + 150
    assert lost[("qa", "default", "1m0s", "cpu")] == 30 * 4 + 30
    assert story.samples("job_state_counter_by_queue")[("qa", "default", "preempted", "running")] == 2


def retrying(**more: object) -> SchedulingPolicy:
    return SchedulingPolicy(
        retries=RetryEngine(enabled=True, default_policy="p", **more),  # type: ignore[arg-type]  # passed on
        indexed_node_labels=("kubernetes.io/hostname",),
    )


@pytest.mark.parametrize(
    ("policy", "decision"),
    [
        (RetryPolicy(name="p", retry_limit=2, retries_by_default=True), "retry"),
        (RetryPolicy(name="p", retry_limit=0, retries_by_default=True), "fail_policy_limit"),
        (RetryPolicy(name="p", retry_limit=2), "fail_default"),
    ],
)
def test_answers_of_retry_policies(policy: RetryPolicy, decision: str) -> None:
    story = Story(policy=retrying())
    story.world.store(fact(RetryPolicySet(at_ms=1, policy=policy)))
    (job_id,) = story.world.submit(item())
    run_id = story.world.start(job_id)
    failed = RunFailed(at_ms=story.world.now_ms, job_id=job_id, run_id=run_id, failure=Failure(reason="x"))
    follows = Retries(story.world.policy, lambda *_: True).after(story.world.ledger, failed)
    story.world.store(JobSetEvents("qa", "s", (failed,)), *follows)
    assert story.samples("retry_policy_decisions_total") == {("qa", "default", "p", decision): 1}
    assert story.samples("retry_policy_gang_skipped_total") == {}


def test_a_gang_that_a_policy_leaves_alone() -> None:
    story = Story(policy=retrying())
    policy = RetryPolicy(name="p", retry_limit=2, retries_by_default=True)
    story.world.store(fact(RetryPolicySet(at_ms=1, policy=policy)))
    job_id, _ = story.world.submit(gang_item("g", 2), gang_item("g", 2))
    run_id = story.world.start(job_id)
    failed = RunFailed(at_ms=story.world.now_ms, job_id=job_id, run_id=run_id, failure=Failure(reason="x"))
    follows = Retries(story.world.policy, lambda *_: True).after(story.world.ledger, failed)
    story.world.store(JobSetEvents("qa", "s", (failed,)), *follows)
    assert story.samples("retry_policy_gang_skipped_total") == {("p",): 1}
    assert story.samples("retry_policy_decisions_total") == {}


def test_counts_begin_again_with_a_leadership() -> None:
    story = Story()
    story.world.submit(item())
    assert story.samples("job_state_counter_by_queue")
    claim = LeadershipClaimed(at_ms=1, epoch=1, holder="other")
    story.world.store(fact(claim), epoch=1)
    assert all(not family.samples and not family.distributions for family in story.counted.families())


def test_series_are_bounded_and_nodes_can_be_left_out() -> None:
    story = Story(MetricsPolicy(max_labels=2, shows_nodes=False))
    for number in range(5):
        story.world.queue(f"q{number}")
        (job_id,) = story.world.submit(item(), queue=f"q{number}")
        story.world.lease(job_id)
    counts = story.samples("job_state_counter_by_queue")
    assert len(counts) == 3
    assert counts[(OTHERS,) * 4] == 8
    assert sum(counts.values()) == 10
    assert story.samples("job_state_counter_by_node") == {}


def test_every_sample_has_its_labels() -> None:
    story = Story()
    (job_id,) = story.world.submit(item())
    story.world.start(job_id)
    found = story.counted.families()
    assert [family.series for family in found] == list(SERIES)
    assert all(len(labels) == len(family.series.labels) for family in found for labels, _ in family.samples)


def test_a_grown_job_counts_with_what_it_asks_for_now() -> None:
    story = Story()
    (job_id,) = story.world.submit(item(pod(memory="64Mi")))
    run_id = story.world.start(job_id)
    growth = grown_further(None, RetryMutation(memory_factor=2.0))
    ended = RunFailed(at_ms=story.world.now_ms, job_id=job_id, run_id=run_id, failure=Failure(reason="x"))
    again = JobRequeued(at_ms=story.world.now_ms, job_id=job_id, growth=growth)
    story.world.store(JobSetEvents("qa", "s", (ended, again)))
    story.at(10)
    story.world.lease(job_id)
    memory = story.samples("job_state_resource_seconds_by_queue")[("qa", "default", "leased", "queued", "memory")]
    assert memory == 10 * 128 * 2**20
