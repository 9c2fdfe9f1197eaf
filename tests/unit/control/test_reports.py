"""Reports about runs: what enters the log, what follows, what is dropped (F002, F125)."""

import pytest

from armada.control.reports import MAX_REASON_CHARS, Accepted, Reports, cleaned_text
from armada.model.events import (
    ContainerStatus,
    Event,
    Failure,
    JobCancelled,
    JobFailed,
    JobRequeued,
    JobSetEvents,
    PodIdentity,
    RunFailed,
    RunPending,
    RunReturned,
    RunStarted,
    RunSucceeded,
    RunUsageReported,
)
from armada.model.jobs import KubernetesObject
from armada.model.policy import SchedulingPolicy
from armada.model.submission import SubmittedItem
from tests.unit.control.world import START_MS, World, gang_item, item, kinds, node


class Reporter:
    """A world with one job on executor east, and someone who reports."""

    def __init__(self, of: SubmittedItem | None = None, policy: SchedulingPolicy | None = None) -> None:
        self.world = World(policy)
        self.world.report_nodes(node("n1"), node("n2"))
        (self.job_id,) = self.world.submit(of or item())
        self.run_id = self.world.lease(self.job_id)
        self.possible = True
        self.reports = Reports(self.world.policy, lambda _job, _avoid: self.possible)

    def report(self, *events: Event, executor_id: str = "east", queue: str = "qa", job_set: str = "s") -> Accepted:
        sequence = JobSetEvents(queue, job_set, events)
        accepted = self.reports.accept(self.world.ledger, executor_id, (sequence,), self.world.now_ms)
        if accepted.sequences:
            self.world.store(*accepted.sequences)
        return accepted

    def pending(self, run_id: str = "", job_id: str = "") -> RunPending:
        return RunPending(at_ms=START_MS, job_id=job_id or self.job_id, run_id=run_id or self.run_id)

    def started(self) -> RunStarted:
        return RunStarted(at_ms=START_MS, job_id=self.job_id, run_id=self.run_id)

    def succeeded(self) -> RunSucceeded:
        return RunSucceeded(at_ms=START_MS, job_id=self.job_id, run_id=self.run_id)

    def failed(self, reason: str = "exit 3") -> RunFailed:
        return RunFailed(at_ms=START_MS, job_id=self.job_id, run_id=self.run_id, failure=Failure(reason=reason))

    def returned(self, *, attempted: bool = True) -> RunReturned:
        failure = Failure(reason="no room", kind="lease_returned")
        return RunReturned(at_ms=START_MS, job_id=self.job_id, run_id=self.run_id, failure=failure, attempted=attempted)


def test_a_run_goes_its_way_and_its_job_with_it() -> None:
    reporter = Reporter()
    accepted = reporter.report(reporter.pending(), reporter.started(), reporter.succeeded())
    assert kinds(accepted.sequences) == ["RunPending", "RunStarted", "RunSucceeded", "JobSucceeded"]
    assert accepted.dropped == ()
    assert reporter.world.state(reporter.job_id) == "succeeded"


def test_a_failed_run_fails_its_job_with_its_own_words() -> None:
    reporter = Reporter()
    accepted = reporter.report(reporter.failed("Container main ended with exit code 3"))
    _, failed = accepted.sequences[0].events
    assert isinstance(failed, JobFailed)
    assert failed.failure.reason == "Container main ended with exit code 3"


def test_a_repeated_report_is_dropped() -> None:
    reporter = Reporter()
    assert kinds(reporter.report(reporter.started(), reporter.started()).sequences) == ["RunStarted"]
    (drop,) = reporter.report(reporter.started()).dropped
    assert (drop.event, drop.run_id, drop.why) == ("RunStarted", reporter.run_id, "comes when the run is running")
    assert drop.is_repeat


@pytest.mark.parametrize("end", ["cancelled", "failed", "succeeded"])
def test_reports_after_the_end_change_nothing(end: str) -> None:
    reporter = Reporter()
    if end == "cancelled":
        reporter.world.cancel(reporter.job_id)
    else:
        reporter.report(reporter.failed() if end == "failed" else reporter.succeeded())
    before = reporter.world.state(reporter.job_id)
    late = reporter.report(reporter.pending(), reporter.started(), reporter.succeeded(), reporter.failed())
    assert late.sequences == ()
    assert [(drop.is_repeat, drop.is_late) for drop in late.dropped] == [(False, True)] * 4
    assert reporter.world.state(reporter.job_id) == before == end


def test_a_report_that_races_with_a_cancel_is_void() -> None:
    reporter = Reporter()
    world = reporter.world
    sequence = JobSetEvents("qa", "s", (reporter.started(), reporter.succeeded()))
    accepted = reporter.reports.accept(world.ledger, "east", (sequence,), world.now_ms)
    world.cancel(reporter.job_id)
    (stored,) = world.store(*accepted.sequences)
    assert "JobSucceeded" not in [type(event).__name__ for event in stored.events]
    assert world.state(reporter.job_id) == "cancelled"
    assert world.kinds_of(reporter.job_id).count("JobCancelled") == 1


def test_nobody_reports_about_what_is_not_his() -> None:
    reporter = Reporter()
    for report in (
        reporter.report(reporter.pending(run_id="nobody-knows")),
        reporter.report(reporter.pending(job_id="x" * 26)),
        reporter.report(reporter.pending(), executor_id="west"),
        reporter.report(reporter.pending(), queue="qb"),
        reporter.report(reporter.pending(), job_set="other"),
        reporter.report(reporter.pending(job_id="nope")),
        reporter.report(JobCancelled(at_ms=START_MS, job_id=reporter.job_id)),
    ):
        assert report.sequences == ()
        assert [(drop.is_repeat, drop.is_late) for drop in report.dropped] == [(False, False)]
    assert reporter.world.state(reporter.job_id) == "leased"


def test_an_unnamed_reporter_is_who_its_pod_says() -> None:
    reporter = Reporter()
    named = RunPending(at_ms=START_MS, job_id=reporter.job_id, run_id=reporter.run_id, pod=PodIdentity(cluster="west"))
    assert reporter.report(named, executor_id="").dropped[0].why == "is about a run of executor east"
    assert reporter.report(reporter.pending(), executor_id="").dropped == ()


def test_use_may_be_reported_again_and_again() -> None:
    reporter = Reporter()
    use = RunUsageReported(at_ms=START_MS, job_id=reporter.job_id, run_id=reporter.run_id, peak={"cpu": "1"})
    assert kinds(reporter.report(use, use).sequences) == ["RunUsageReported"] * 2


def test_clocks_and_texts_of_executors_are_bounded() -> None:
    reporter = Reporter()
    failure = Failure(
        reason="a\0b" + "x" * 10_000, debug="\ud800", containers=(ContainerStatus(name="c", message="\0"),) * 200
    )
    report = RunFailed(at_ms=START_MS + 10**9, job_id=reporter.job_id, run_id=reporter.run_id, failure=failure)
    fact = reporter.report(report).sequences[0].events[0]
    assert isinstance(fact, RunFailed)
    assert fact.at_ms == START_MS
    assert len(fact.failure.reason) == MAX_REASON_CHARS
    assert fact.failure.reason.startswith("a\ufffdb")
    assert "\ud800" not in fact.failure.debug
    assert len(fact.failure.containers) == 100
    assert fact.failure.containers[0].message == "\ufffd"
    assert cleaned_text("plain", 3) == "..."


# -- leases that come back ---------------------------------------------------------------------------------------------


def returned_often(reporter: Reporter, times: int, *, attempted: bool = True) -> list[str]:
    """Return the lease again and again, on ever other nodes; say what became of the job each time."""
    outcomes = []
    for attempt in range(times):
        if attempt:
            reporter.world.report_nodes(node(f"m{attempt}"))
            reporter.run_id = reporter.world.lease(reporter.job_id, f"m{attempt}")
        accepted = reporter.report(reporter.pending(), reporter.returned(attempted=attempted))
        outcomes.append(kinds(accepted.sequences)[-1])
    return outcomes


def test_a_returned_lease_is_tried_again_up_to_the_limit() -> None:
    reporter = Reporter()
    assert returned_often(reporter, 4) == ["JobRequeued"] * 3 + ["JobFailed"]
    failed = reporter.world.entries[-1].events[-1]
    assert isinstance(failed, JobFailed)
    assert failed.failure.kind == "max_runs_exceeded"
    assert (failed.failure.category, failed.failure.subcategory) == ("internal", "max-runs-exceeded")
    assert "attempted 4 times" in failed.failure.reason
    assert failed.failure.reason.endswith("no room")


def test_a_retry_stays_away_from_where_it_was_tried() -> None:
    reporter = Reporter()
    requeued = reporter.report(reporter.returned()).sequences[0].events[-1]
    assert isinstance(requeued, JobRequeued)
    assert requeued.avoid_nodes == ("n1",)
    assert reporter.world.state(reporter.job_id) == "queued"


def test_what_never_reached_a_node_costs_nothing() -> None:
    reporter = Reporter()
    assert returned_often(reporter, 8, attempted=False) == ["JobRequeued"] * 8
    job = reporter.world.ledger.job(reporter.job_id)
    assert job is not None
    assert (job.runs_attempted, job.avoid_nodes) == (0, ())


def test_a_job_that_was_tried_everywhere_fails() -> None:
    reporter = Reporter()
    reporter.possible = False
    failed = reporter.report(reporter.returned()).sequences[0].events[-1]
    assert isinstance(failed, JobFailed)
    assert "once on every node" in failed.failure.reason


FAIL_FAST: KubernetesObject = {"armadaproject.io/failFast": "true"}


def test_a_fail_fast_job_fails_at_once() -> None:
    reporter = Reporter(item(annotations=FAIL_FAST))
    failed = reporter.report(reporter.returned(attempted=False)).sequences[0].events[-1]
    assert isinstance(failed, JobFailed)
    assert "fail-fast" in failed.failure.reason


def test_members_of_gangs_are_not_tried_again() -> None:
    reporter = Reporter(gang_item("g", 2))
    assert kinds(reporter.report(reporter.returned()).sequences) == ["RunReturned", "JobFailed"]


def test_the_number_of_attempts_is_the_policys() -> None:
    assert returned_often(Reporter(policy=SchedulingPolicy(max_retries=0)), 1) == ["JobFailed"]
