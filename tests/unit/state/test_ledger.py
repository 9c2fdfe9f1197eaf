"""What each fact does, and which facts are void. The field cases named are in the collection of faults."""

import pytest

from armada.model import events as facts
from armada.model.events import EVENT_KINDS, Event
from armada.model.fleet import Queue
from armada.model.jobs import GangSpec, JobShape, JobTemplate, NewJob, SelectorRequirement
from armada.model.lifecycle import JobState, RunState
from armada.state.fold import CLIENT_IDS_KEPT_MS, Fold
from armada.state.ledger import Ledger
from tests.unit.state.building import POLICY, SHAPE, Story, leased, ran, submitted, template

FAILURE = facts.Failure(reason="it failed")


def is_void(story: Story, *events: Event, job_set: str = "s", name: str = "qa") -> bool:
    """Tell some facts; say if all were void, and if so make sure that they have changed nothing."""
    before = story.ledger.digest()
    position = story.tell(*events, queue=name, job_set=job_set, batch_id="", time_ms=story.ledger.time_ms)
    void = story.ledger.void_rows(position) == {(index, -1) for index in range(len(events))}
    assert (story.ledger.digest() == before) or not void
    story.ledger.validate()
    return void


def test_every_kind_of_event_is_handled() -> None:
    assert set(Fold(POLICY)._changes) == set(EVENT_KINDS)


# -- a job's life -----------------------------------------------------------------------------------------------------


def test_a_submitted_job_is_queued(story: Story) -> None:
    job = story.ledger.job("q")
    assert job is not None
    assert (job.queue, job.job_set, job.state) == ("qa", "s", JobState.QUEUED)
    assert (job.shape, job.owner, job.namespace, job.submitted_ms) == (SHAPE, "ann", "default", 1)
    assert (job.spec_position, job.spec_index, job.run_id, job.runs_leased) == (3, 0, "", 0)
    assert story.ledger.counts() == {"qa": (1, 1, 0, 1, 0, 0, 0, 0, 0)}


def test_a_job_that_goes_well(story: Story) -> None:
    story.tell(leased("q", at_ms=10), *ran("q", at_ms=20))
    run = story.ledger.run("q-r")
    assert run is not None
    assert (run.state, run.leased_ms, run.pending_ms, run.started_ms, run.ended_ms) == (
        RunState.SUCCEEDED,
        10,
        20,
        21,
        22,
    )
    assert story.ledger.job_state("q") == JobState.SUCCEEDED
    assert story.ledger.runs_to_end("x1") == ("q-r",)
    assert story.ledger.node_runs("n1") == ("l-r", "r-r", "q-r")
    story.fact(facts.RunsReleased(at_ms=30, run_ids=("q-r",)))
    assert not story.ledger.has_job("q")
    assert story.ledger.run("q-r") is None
    assert story.ledger.node_runs("n1") == ("l-r", "r-r")
    story.ledger.validate()


def test_a_job_that_never_ran_leaves_at_once(story: Story) -> None:
    story.tell(facts.JobCancelled(at_ms=9, job_id="q"))
    assert story.ledger.job("q") is None
    story.tell(submitted("w"), facts.JobRejected(at_ms=9, job_id="w", reason="never fits"))
    assert story.ledger.job("w") is None


def test_a_failed_run_s_job_may_wait_again(story: Story) -> None:
    story.tell(
        facts.RunFailed(at_ms=30, job_id="r", run_id="r-r", failure=FAILURE),
        facts.JobRequeued(at_ms=30, job_id="r", avoid_nodes=("n1", "n2")),
    )
    job = story.ledger.job("r")
    assert job is not None
    assert (job.state, job.runs_leased, job.runs_attempted, job.runs_failed) == (JobState.QUEUED, 1, 1, 1)
    assert job.avoid_nodes == ("n1", "n2")
    story.tell(leased("r", "r-2"))
    assert [run.run_id for run in story.ledger.runs_of_job("r")] == ["r-r", "r-2"]
    assert [run.is_current for run in story.ledger.runs_of_job("r")] == [False, True]
    story.fact(facts.RunsReleased(at_ms=31, run_ids=("r-r",)))
    assert [run.run_id for run in story.ledger.runs_of_job("r")] == ["r-2"]
    story.ledger.validate()


@pytest.mark.parametrize(
    ("event", "attempted", "failed"),
    [
        (facts.RunFailed(at_ms=30, job_id="r", run_id="r-r", failure=FAILURE), 1, 1),
        (facts.RunLeaseExpired(at_ms=30, job_id="r", run_id="r-r"), 1, 1),
        (facts.RunReturned(at_ms=30, job_id="r", run_id="r-r", failure=FAILURE), 1, 0),
        (facts.RunReturned(at_ms=30, job_id="r", run_id="r-r", failure=FAILURE, attempted=False), 0, 0),
        (facts.RunPreempted(at_ms=30, job_id="r", run_id="r-r", kind="fairshare", reason="room"), 0, 0),
    ],
    ids=["failed", "expired", "returned", "returned-unattempted", "preempted"],
)
def test_attempts_and_failures_are_counted(story: Story, event: Event, attempted: int, failed: int) -> None:
    story.tell(event, facts.JobRequeued(at_ms=31, job_id="r"))
    job = story.ledger.job("r")
    assert job is not None
    assert (job.state, job.runs_attempted, job.runs_failed) == (JobState.QUEUED, attempted, failed)


def test_the_end_of_a_job_ends_its_live_run(story: Story) -> None:
    story.tell(facts.JobCancelled(at_ms=40, job_id="l"), facts.JobFailed(at_ms=41, job_id="r", failure=FAILURE))
    assert story.ledger.run_state("l-r") == RunState.CANCELLED
    assert story.ledger.run_state("r-r") == RunState.FAILED
    assert story.ledger.runs_to_start("x1") == ()
    assert story.ledger.runs_to_end("x1") == ("l-r", "r-r")


def test_a_preempted_job_ends_its_run_either_way(story: Story) -> None:
    story.tell(facts.JobPreempted(at_ms=40, job_id="l", failure=FAILURE))
    story.tell(
        facts.RunPreempted(at_ms=40, job_id="r", run_id="r-r", kind="urgency", reason="room"),
        facts.JobPreempted(at_ms=40, job_id="r", failure=FAILURE),
    )
    assert [story.ledger.run_state(run_id) for run_id in ("l-r", "r-r")] == [RunState.PREEMPTED, RunState.PREEMPTED]
    assert story.ledger.counts()["qa"][JobState.PREEMPTED] == 2


def test_requests_are_noted_and_a_new_try_forgets_the_preemption(story: Story) -> None:
    story.tell(facts.JobCancelRequested(at_ms=1, job_id="r"), facts.JobPreemptRequested(at_ms=1, job_id="r"))
    job = story.ledger.job("r")
    assert job is not None
    assert (job.cancel_requested, job.preempt_requested) == (True, True)
    story.tell(facts.RunLeaseExpired(at_ms=2, job_id="r", run_id="r-r"), facts.JobRequeued(at_ms=2, job_id="r"))
    job = story.ledger.job("r")
    assert job is not None
    assert (job.cancel_requested, job.preempt_requested) == (True, False)


def test_a_run_never_ends_before_it_began(story: Story) -> None:
    """The executor's clock is behind (F002: run times must not come out negative)."""
    story.tell(leased("q", at_ms=1_000), *ran("q", at_ms=5))
    run = story.ledger.run("q-r")
    assert run is not None
    assert run.leased_ms <= run.pending_ms <= run.started_ms <= run.ended_ms


# -- void facts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        facts.JobCancelled(at_ms=30, job_id="r"),
        facts.JobPreempted(at_ms=30, job_id="r", failure=FAILURE),
        facts.JobFailed(at_ms=30, job_id="r", failure=FAILURE),
    ],
    ids=["cancelled", "preempted", "failed"],
)
@pytest.mark.parametrize("same_entry", [True, False])
def test_f002_late_reports_do_not_bring_a_job_back(story: Story, end: Event, *, same_entry: bool) -> None:
    """F002: running(run1), succeeded(run1) arrive after the job has ended, in the same entry or a later one."""
    late = ran("r", at_ms=40)
    if same_entry:
        position = story.tell(end, *late)
        voids = {(index + 1, -1) for index in range(len(late))}
    else:
        story.tell(end)
        position = story.tell(*late)
        voids = {(index, -1) for index in range(len(late))}
    state, ended = story.ledger.job_state("r"), story.ledger.run("r-r")
    assert story.ledger.void_rows(position) == voids
    assert state is not None
    assert state.is_terminal
    assert ended is not None
    assert ended.ended_ms == 30
    restarted = Ledger.from_bytes(story.ledger.to_bytes(), POLICY)
    assert restarted.job_state("r") == state
    story.fact(facts.RunsReleased(at_ms=50, run_ids=("r-r",)))
    assert is_void(story, *late)
    assert is_void(story, facts.RunsReleased(at_ms=50, run_ids=("r-r",)))
    assert story.ledger.node_runs("n1") == ("l-r",)


def test_reports_of_a_replaced_run_are_void(story: Story) -> None:
    story.tell(facts.RunLeaseExpired(at_ms=30, job_id="r", run_id="r-r"), facts.JobRequeued(at_ms=30, job_id="r"))
    assert is_void(story, facts.RunSucceeded(at_ms=31, job_id="r", run_id="r-r"))
    story.tell(leased("r", "r-2"))
    assert is_void(story, facts.RunStarted(at_ms=31, job_id="r", run_id="r-r"))
    assert is_void(story, facts.RunFailed(at_ms=31, job_id="r", run_id="r-r", failure=FAILURE))
    assert story.ledger.run_state("r-2") == RunState.LEASED


@pytest.mark.parametrize(
    "event",
    [
        facts.JobCancelled(at_ms=1, job_id="nobody"),
        facts.RunStarted(at_ms=1, job_id="nobody", run_id="r-r"),
        facts.RunStarted(at_ms=1, job_id="q", run_id="r-r"),
        facts.RunStarted(at_ms=1, job_id="l", run_id="nothing"),
        facts.RunPending(at_ms=1, job_id="r", run_id="r-r"),
        facts.RunLeased(
            at_ms=1, job_id="l", run_id="l-2", executor_id="x", node_id="n", node_name="n", pool="p", priority=1
        ),
        facts.RunLeased(
            at_ms=1, job_id="q", run_id="l-r", executor_id="x", node_id="n", node_name="n", pool="p", priority=1
        ),
        facts.JobRejected(at_ms=1, job_id="l", reason="r"),
        facts.JobSucceeded(at_ms=1, job_id="r"),
        facts.JobSucceeded(at_ms=1, job_id="q"),
        facts.JobRequeued(at_ms=1, job_id="r"),
        facts.JobRequeued(at_ms=1, job_id="q"),
        facts.JobPreempted(at_ms=1, job_id="q", failure=FAILURE),
        facts.JobPreemptRequested(at_ms=1, job_id="q"),
        facts.RunsReleased(at_ms=1, run_ids=("l-r", "nothing")),
        facts.QueueUpdated(at_ms=1, queue=Queue(name="nowhere")),
        facts.QueueCordoned(at_ms=1, name="nowhere", cordoned=True),
        facts.QueueDeleted(at_ms=1, name="nowhere"),
        facts.ExecutorDeleted(at_ms=1, executor_id="nobody"),
        facts.LeadershipClaimed(at_ms=1, epoch=2, holder="me"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_fact_that_does_not_fit_is_void(story: Story, event: Event) -> None:
    assert is_void(story, event)


@pytest.mark.parametrize("place", [("qa", "other"), ("qb", "s"), ("", "")])
def test_f125_facts_in_another_job_set_s_stream_are_void(story: Story, place: tuple[str, str]) -> None:
    name, job_set = place
    for event in (facts.RunSucceeded(at_ms=1, job_id="r", run_id="r-r"), facts.JobCancelled(at_ms=1, job_id="q")):
        assert is_void(story, event, name=name, job_set=job_set)


def test_the_end_of_a_run_waits_for_its_job_before_room_is_freed(story: Story) -> None:
    story.tell(facts.RunLeaseExpired(at_ms=30, job_id="r", run_id="r-r"))
    assert is_void(story, facts.RunsReleased(at_ms=31, run_ids=("r-r",)))
    story.tell(facts.JobRequeued(at_ms=31, job_id="r"))
    assert not is_void(story, facts.RunsReleased(at_ms=32, run_ids=("r-r",)))


def test_numbers_beyond_int64_are_held_at_its_ends(story: Story) -> None:
    story.tell(submitted(NewJob("big", 10**30)), facts.JobReprioritised(at_ms=10**30, job_id="q", priority=-(10**30)))
    story.tell(leased("big", at_ms=10**30, priority=10**30), *ran("big", at_ms=-(10**30)))
    story.tell(submitted("huge", of=template(gang=GangSpec("g", 10**30))))
    assert not story.ledger.void_rows(len(story.entries))
    story.ledger.validate()


# -- submission -------------------------------------------------------------------------------------------------------


def test_a_known_job_id_is_void_row_by_row(story: Story) -> None:
    position = story.tell(submitted("q", "new", "new"))
    assert story.ledger.void_rows(position) == {(0, 0), (0, 2)}
    assert story.ledger.has_job("new")


def test_a_client_id_names_one_job_per_queue_for_a_week(story: Story) -> None:
    story.tell(submitted(NewJob("a", 0, "mine"), NewJob("b", 0, "mine")), queue="qb")
    assert story.ledger.has_job("a")
    assert not story.ledger.has_job("b")
    story.tell(submitted(NewJob("c", 0, "mine")), queue="qc")
    assert story.ledger.has_job("c")
    assert [story.ledger.client_job(name, "mine") for name in ("qb", "qc", "qa")] == ["a", "c", None]
    story.tell(facts.JobCancelled(at_ms=1, job_id="a"), queue="qb")
    told_ms = story.ledger.time_ms
    position = story.tell(submitted(NewJob("d", 0, "mine")), queue="qb", time_ms=told_ms + CLIENT_IDS_KEPT_MS - 10)
    assert story.ledger.void_rows(position) == {(0, 0)}
    assert story.ledger.client_job("qb", "mine") == "a"
    story.tell(submitted(NewJob("e", 0, "mine")), queue="qb", time_ms=told_ms + CLIENT_IDS_KEPT_MS + 10)
    assert story.ledger.client_job("qb", "mine") == "e"


def test_f012_a_gang_takes_members_until_it_is_whole(story: Story) -> None:
    gang = template(gang=GangSpec("g", 3, "zone"))
    story.tell(submitted("a", "b", of=gang))
    story.tell(submitted("c", "d", of=gang), job_set="other")
    assert story.ledger.gang_members("qa", "g") == ("a", "b", "c")
    assert not story.ledger.has_job("d")
    known = story.ledger.gang("qa", "g")
    assert known is not None
    assert (known.gang, known.submitted, known.priority_class) == (GangSpec("g", 3, "zone"), 3, "armada-default")
    story.tell(facts.JobCancelled(at_ms=1, job_id="a"))
    story.tell(submitted("late", of=gang))
    assert not story.ledger.has_job("late")
    assert story.ledger.gang_members("qa", "g") == ("b", "c")


@pytest.mark.parametrize(
    "other",
    [
        template(gang=GangSpec("g", 4)),
        template(gang=GangSpec("g", 3, "zone")),
        template(gang=GangSpec("g", 3), shape=JobShape(requests=SHAPE.requests, priority_class="armada-preemptible")),
    ],
    ids=["cardinality", "label", "class"],
)
def test_f012_a_member_of_another_kind_is_void(story: Story, other: JobTemplate) -> None:
    story.tell(submitted("a", of=template(gang=GangSpec("g", 3))))
    position = story.tell(submitted("b", of=other))
    assert story.ledger.void_rows(position) == {(0, 0)}
    assert story.ledger.gang_members("qa", "g") == ("a",)
    story.ledger.validate()


def test_a_gang_s_name_is_free_again_once_all_have_left(story: Story) -> None:
    story.tell(submitted("a", "b", of=template(gang=GangSpec("g", 2))))
    story.tell(facts.JobCancelled(at_ms=1, job_id="a"), facts.JobCancelled(at_ms=1, job_id="b"))
    assert story.ledger.gang("qa", "g") is None
    story.tell(submitted("c", of=template(gang=GangSpec("g", 5))))
    assert story.ledger.gang_members("qa", "g") == ("c",)


def test_job_sets_and_queues_list_their_jobs_in_submit_order(story: Story) -> None:
    story.tell(submitted("z", "a"), job_set="t")
    story.tell(submitted("y"))
    story.tell(facts.JobCancelled(at_ms=1, job_id="l"), facts.JobCancelled(at_ms=1, job_id="q"))
    story.tell(submitted("b"))
    assert story.ledger.jobs_in_set("qa", "s") == ("r", "y", "b")
    assert story.ledger.jobs_in_set("qa", "s", live_only=False) == ("l", "r", "y", "b")
    assert story.ledger.jobs_in_queue("qa") == ("r", "z", "a", "y", "b")
    assert story.ledger.jobs_in_set("qa", "none") == story.ledger.jobs_in_queue("none") == ()


def test_a_job_that_avoids_nodes_has_another_shape_in_rounds(story: Story) -> None:
    selects = JobShape(
        requests=SHAPE.requests,
        priority_class="armada-default",
        affinity=((SelectorRequirement("zone", "In", ("a",)),), (SelectorRequirement("zone", "In", ("b",)),)),
    )
    story.tell(submitted("a", of=template(shape=selects)), leased("a"))
    story.tell(
        facts.RunReturned(at_ms=1, job_id="a", run_id="a-r", failure=FAILURE),
        facts.JobRequeued(at_ms=1, job_id="a", avoid_nodes=("n2", "n1")),
    )
    jobs = story.ledger._jobs
    shape = jobs.shapes[jobs.shape[jobs.ids.find("a")]]
    off = SelectorRequirement(POLICY.node_id_label, "NotIn", ("n1", "n2"))
    assert shape.affinity == tuple((*term, off) for term in selects.affinity or ())
    job = story.ledger.job("a")
    assert job is not None
    assert job.shape == selects
