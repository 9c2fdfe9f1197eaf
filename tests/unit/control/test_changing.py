"""Cancel, reprioritise, preempt (F016, F032, F044, F057, F064, F109, F124)."""

import pytest

from armada.control.commands import changing
from armada.model.errors import InvalidRequest, NotFound, PermissionDenied
from armada.model.events import JobCancelled, JobPreempted, RunPreempted
from armada.model.fleet import QueuePermission, Subject
from armada.model.jobs import KubernetesObject
from armada.model.submission import (
    Caller,
    CancelRequest,
    CancelSetRequest,
    PreemptRequest,
    QueueJobsRequest,
    ReprioritiseRequest,
)
from tests.unit.control.world import World, gang_item, item, kinds, node, pod

PREEMPTIBLE: KubernetesObject = pod(priorityClassName="armada-preemptible")
BOB = Caller(name="bob")


def world_with_room() -> World:
    world = World()
    world.report_nodes(node("n1"), node("n2"))
    return world


def bobs_queue(world: World) -> None:
    verbs = ("submit", "cancel", "preempt", "reprioritize")
    world.queue("bobs", permissions=(QueuePermission((Subject("User", "bob"),), verbs),))


# -- cancel ------------------------------------------------------------------------------------------------------------


def test_ids_are_cancelled_once_each_and_repeated_in_the_answer() -> None:
    world = World()
    one, two = world.submit(item(), item())
    answer, sequences = changing.cancel(world.at(), CancelRequest("qa", "s", (one, two, one), "bad input"))
    assert answer == (one, two)
    assert kinds(sequences) == ["JobCancelRequested", "JobCancelled"] * 2
    assert [event.reason for event in sequences[0].events if isinstance(event, JobCancelled)] == ["bad input"] * 2
    world.store(*sequences)
    assert (world.state(one), world.state(two)) == ("gone", "gone")


def test_ids_that_are_not_there_are_repeated_and_change_nothing() -> None:
    world = World()
    (job_id,) = world.submit(item())
    for ids, job_set in ((("nope",), "s"), ((job_id,), "other")):
        answer, sequences = changing.cancel(world.at(), CancelRequest("qa", job_set, ids))
        assert (answer, sequences) == (ids, ())


def test_nobody_reaches_jobs_of_another_queue_through_his_own() -> None:
    world = world_with_room()
    bobs_queue(world)
    (queued, running) = world.submit(item(), item(PREEMPTIBLE))
    world.start(running)
    (own,) = world.submit(item(), queue="bobs")
    at = world.at(BOB)
    ids = (queued, running, own)
    _, cancelled = changing.cancel(at, CancelRequest("bobs", "s", ids))
    assert [event.job_id for event in cancelled[0].events if isinstance(event, JobCancelled)] == [own]
    _, preempted = changing.preempt(at, PreemptRequest("bobs", "s", ids))
    assert preempted == ()
    _, changed = changing.reprioritise(at, ReprioritiseRequest("bobs", "s", ids, 9))
    assert {getattr(event, "job_id", "") for event in changed[0].events} == {own}
    with pytest.raises(PermissionDenied, match="bob may not cancel in queue 'qa'"):
        changing.cancel(at, CancelRequest("qa", "s", (own,)))


def test_no_ids_mean_the_whole_set() -> None:
    world = World()
    world.submit(item(), item())
    (other,) = world.submit(item(), job_set="other")
    answer, sequences = changing.cancel(world.at(), CancelRequest("qa", "s"))
    assert answer == ("",)
    world.store(*sequences)
    assert world.ledger.jobs_in_set("qa", "s") == ()
    assert world.state(other) == "queued"


def test_an_empty_id_never_means_the_whole_set() -> None:
    world = World()
    world.submit(item())
    for call in (
        lambda: changing.cancel(world.at(), CancelRequest("qa", "s", ("",))),
        lambda: changing.preempt(world.at(), PreemptRequest("qa", "s", ("",))),
        lambda: changing.reprioritise(world.at(), ReprioritiseRequest("qa", "s", ("",), 1)),
    ):
        with pytest.raises(InvalidRequest, match="job id 0 is empty"):
            call()


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (CancelRequest("", "s", ("x",)), "queue is missing"),
        (CancelRequest("qa", "", ("x",)), "job_set_id is missing"),
        (CancelRequest("qa", "s", ("x",), "r" * 51), "reason has 51 bytes"),
        (CancelRequest("qa", "s", ("x",), "r" * 48 + "\u20ac"), "reason has 51 bytes"),
        (CancelRequest("qa", "j" * 1_024, ("x",)), "1024 bytes"),
    ],
)
def test_cancelling_names_what_is_wrong(request_: CancelRequest, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        changing.cancel(World().at(), request_)


def test_a_reason_may_have_fifty_bytes() -> None:
    assert changing.cancel(World().at(), CancelRequest("qa", "s", ("x",), "r" * 47 + "\u20ac"))[1] == ()


def test_an_unknown_queue_is_not_found() -> None:
    at = World().at()
    for call in (
        lambda: changing.cancel(at, CancelRequest("ghost", "s", ("x",))),
        lambda: changing.cancel_set(at, CancelSetRequest("ghost", "s")),
        lambda: changing.preempt(at, PreemptRequest("ghost", "s", ("x",))),
        lambda: changing.reprioritise(at, ReprioritiseRequest("ghost", "s", ("x",), 1)),
    ):
        with pytest.raises(NotFound, match="could not find queue 'ghost'"):
            call()


def test_a_filter_holds_for_each_job_as_it_is_and_later_jobs_are_not_caught() -> None:
    world = world_with_room()
    job_ids = world.submit(*[item(pod(cpu="100m")) for _ in range(55)])
    for job_id in job_ids[:5]:
        world.start(job_id)
    sequences = changing.cancel_set(world.at(), CancelSetRequest("qa", "s", ("QUEUED",)))
    later = world.submit(*[item() for _ in range(5)])
    world.store(*sequences)
    assert [world.state(job_id) for job_id in job_ids[:5]] == ["running"] * 5
    assert {world.state(job_id) for job_id in job_ids[5:]} == {"gone"}
    assert {world.state(job_id) for job_id in later} == {"queued"}


def test_active_jobs_are_chosen_by_two_states_together() -> None:
    world = world_with_room()
    leased, running, queued = world.submit(item(), item(), item())
    world.lease(leased)
    world.start(running)
    sequences = changing.cancel_set(world.at(), CancelSetRequest("qa", "s", ("RUNNING", "PENDING")))
    cancelled = [event.job_id for event in sequences[0].events if isinstance(event, JobCancelled)]
    assert cancelled == [leased, running]
    assert queued not in cancelled


@pytest.mark.parametrize("states", [("PENDING",), ("RUNNING",), ("QUEUED", "PENDING"), ("SUCCEEDED",), ("LEASED",)])
def test_filters_that_can_not_be_honoured_are_refused(states: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequest, match="state"):
        changing.cancel_set(World().at(), CancelSetRequest("qa", "s", states))


def test_unknown_and_finished_sets_are_no_error() -> None:
    world = World()
    (job_id,) = world.submit(item())
    world.cancel(job_id)
    for job_set in ("s", "never"):
        assert changing.cancel_set(world.at(), CancelSetRequest("qa", job_set)) == ()


def test_a_cancelled_run_ends_with_its_job() -> None:
    world = world_with_room()
    (job_id,) = world.submit(item())
    run_id = world.lease(job_id)
    world.cancel(job_id)
    assert world.ledger.runs_to_start("east") == ()
    assert world.ledger.runs_to_end("east") == (run_id,)
    assert world.kinds_of(job_id)[-1] == "JobCancelled"


def test_big_sets_are_cancelled_in_pieces() -> None:
    world = World()
    shared = item()
    world.submit(*[shared for _ in range(6_000)])
    sequences = changing.cancel_set(world.at(), CancelSetRequest("qa", "s"))
    assert [len(sequence.events) for sequence in sequences] == [5_000, 5_000, 2_000]
    world.store(*sequences)
    assert world.ledger.job_count == 0


# -- reprioritise ------------------------------------------------------------------------------------------------------


def test_priorities_change_by_id_and_only_where_they_differ() -> None:
    world = World()
    one, _ = world.submit(item(), item())
    request = ReprioritiseRequest("qa", "s", (one, one, "nope"), 5)
    answer, sequences = changing.reprioritise(world.at(), request)
    assert answer == {one: "", "nope": ""}
    assert kinds(sequences) == ["JobReprioritisationRequested"] * 2 + ["JobReprioritised"]
    world.store(*sequences)
    _, again = changing.reprioritise(world.at(), request)
    assert kinds(again) == ["JobReprioritisationRequested"] * 2
    job = world.ledger.job(one)
    assert job is not None
    assert job.priority == 5


def test_priorities_of_a_set_change_silently_where_they_differ() -> None:
    world = World()
    world.submit(item(), item())
    answer, sequences = changing.reprioritise(world.at(), ReprioritiseRequest("qa", "s", (), -5))
    assert answer == {"all jobs in job set s": ""}
    assert sequences == ()
    _, sequences = changing.reprioritise(world.at(), ReprioritiseRequest("qa", "s", (), 2.5))
    assert kinds(sequences) == ["JobReprioritised"] * 2
    assert {getattr(event, "priority", -1) for event in sequences[0].events} == {3}


# -- preempt -----------------------------------------------------------------------------------------------------------


def test_a_preempted_job_says_who_asked_and_why() -> None:
    world = world_with_room()
    (job_id,) = world.submit(item(PREEMPTIBLE))
    run_id = world.start(job_id)
    answer, sequences = changing.preempt(world.at(), PreemptRequest("qa", "s", (job_id,), "node repair 42"))
    assert answer == {job_id: ""}
    assert kinds(sequences) == ["JobPreemptRequested", "RunPreempted", "JobPreempted"]
    _, ended, failed = sequences[0].events
    assert isinstance(ended, RunPreempted)
    assert isinstance(failed, JobPreempted)
    assert (ended.run_id, ended.kind, ended.requestor) == (run_id, "api", "alice")
    assert ended.reason == failed.failure.reason == "Preempted by alice - node repair 42"
    world.store(*sequences)
    assert world.state(job_id) == "preempted"
    assert changing.preempt(world.at(), PreemptRequest("qa", "s", (job_id,)))[1] == ()


def test_jobs_that_may_not_be_preempted_go_on() -> None:
    world = world_with_room()
    solid, queued = world.submit(item(), item(PREEMPTIBLE))
    world.start(solid)
    _, sequences = changing.preempt(world.at(), PreemptRequest("qa", "s", (solid, queued, "nope")))
    assert kinds(sequences) == ["JobPreemptRequested"]
    world.store(*sequences)
    assert (world.state(solid), world.state(queued)) == ("running", "queued")


def test_no_ids_preempt_nothing() -> None:
    assert changing.preempt(World().at(), PreemptRequest("qa", "s")) == ({}, ())


def test_a_gang_is_preempted_whole() -> None:
    world = world_with_room()
    members = world.submit(*[gang_item("g", 3, PREEMPTIBLE) for _ in range(3)])
    for job_id in members:
        world.start(job_id)
    _, sequences = changing.preempt(world.at(), PreemptRequest("qa", "s", (members[1],)))
    world.store(*sequences)
    assert [world.state(job_id) for job_id in members] == ["preempted"] * 3
    assert kinds(sequences).count("JobPreemptRequested") == 1


# -- a whole queue -----------------------------------------------------------------------------------------------------


def test_a_queue_is_cancelled_by_state_class_and_pool() -> None:
    world = world_with_room()
    queued, preemptible, running = world.submit(item(), item(PREEMPTIBLE), item())
    world.start(running)

    def cancelled(request: QueueJobsRequest) -> list[str]:
        sequences = changing.cancel_on_queue(world.at(), request)
        assert set(kinds(sequences)) <= {"JobCancelled"}
        return [event.job_id for part in sequences for event in part.events if isinstance(event, JobCancelled)]

    every = ("QUEUED", "LEASED", "PENDING", "RUNNING")
    assert cancelled(QueueJobsRequest("qa", states=every)) == [queued, preemptible, running]
    assert cancelled(QueueJobsRequest("qa", states=("QUEUED",))) == [queued, preemptible]
    assert cancelled(QueueJobsRequest("qa", ("armada-preemptible",), states=every)) == [preemptible]
    assert cancelled(QueueJobsRequest("qa", (), ("elsewhere",), ("RUNNING",))) == []
    assert cancelled(QueueJobsRequest("qa", (), ("default",), ("RUNNING",))) == [running]
    assert cancelled(QueueJobsRequest("qa")) == []
    assert cancelled(QueueJobsRequest("ghost", states=every)) == []


def test_a_cancel_covers_everything_answered_before_it() -> None:
    world = World()
    shared = item()
    job_ids = world.submit(*[shared for _ in range(500)])
    sequences = changing.cancel_on_queue(world.at(), QueueJobsRequest("qa", states=("QUEUED",)))
    assert sum(len(sequence.events) for sequence in sequences) == 500
    world.store(*sequences)
    assert {world.state(job_id) for job_id in job_ids} == {"gone"}


def test_a_queue_is_preempted_where_its_jobs_may_be() -> None:
    world = world_with_room()
    solid, preemptible, queued = world.submit(item(), item(PREEMPTIBLE), item(PREEMPTIBLE))
    world.start(solid)
    world.start(preemptible)
    sequences = changing.preempt_on_queue(world.at(), QueueJobsRequest("qa"))
    assert kinds(sequences) == ["RunPreempted", "JobPreempted"]
    world.store(*sequences)
    assert [world.state(job_id) for job_id in (solid, preemptible, queued)] == ["running", "preempted", "queued"]


@pytest.mark.parametrize("state", ["SUCCEEDED", "UNKNOWN", "SUBMITTED"])
def test_ended_states_select_nothing_and_say_so(state: str) -> None:
    with pytest.raises(InvalidRequest, match=state):
        changing.cancel_on_queue(World().at(), QueueJobsRequest("qa", states=(state,)))


def test_whole_queues_need_the_global_permission() -> None:
    world = World()
    bobs_queue(world)
    with pytest.raises(PermissionDenied, match="cancel_any_jobs"):
        changing.cancel_on_queue(world.at(BOB), QueueJobsRequest("bobs", states=("QUEUED",)))
    with pytest.raises(PermissionDenied, match="preempt_any_jobs"):
        changing.preempt_on_queue(world.at(BOB), QueueJobsRequest("bobs"))
    with pytest.raises(InvalidRequest, match="queue is missing"):
        changing.preempt_on_queue(world.at(), QueueJobsRequest(""))
