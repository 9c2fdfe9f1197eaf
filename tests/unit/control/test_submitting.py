"""Submission as a whole: all or nothing, repeats, gangs over several calls (F012, F065, F074)."""

import pytest

from armada.control.commands.permissions import SUBMIT_ANY
from armada.control.commands.submission.submitting import settled_ids
from armada.model.errors import InvalidRequest, PermissionDenied, Unavailable
from armada.model.events import JobRejected, JobsSubmitted
from armada.model.fleet import QueuePermission, Subject
from armada.model.submission import Caller, Submission, SubmittedItem, SubmittedJob
from tests.unit.control.world import World, gang_item, item, kinds, pod, resources

BOB = Caller(name="bob", groups=("users", "everyone"))


def jobs(count: int, of: SubmittedItem | None = None) -> list[SubmittedJob]:
    shared = of or item()
    return [SubmittedJob(shared) for _ in range(count)]


def test_equal_jobs_share_one_template() -> None:
    world = World()
    decision = world.decide(*jobs(3), SubmittedJob(item(pod(cpu="2"))), *jobs(1))
    (sequence,) = decision.sequences
    assert [len(event.jobs) for event in sequence.events if isinstance(event, JobsSubmitted)] == [3, 1, 1]
    assert len(decision.job_ids) == 5


def test_an_item_that_comes_again_is_not_looked_at_again() -> None:
    world = World()
    shared = item()
    first, second = world.decide(SubmittedJob(shared)), world.decide(SubmittedJob(shared))
    templates = [
        event.template
        for decision in (first, second)
        for event in decision.sequences[0].events
        if isinstance(event, JobsSubmitted)
    ]
    assert templates[0] is templates[1]


def test_nothing_is_submitted_by_an_empty_request() -> None:
    decision = World().decide()
    assert (decision.job_ids, decision.sequences) == ((), ())


def test_an_unknown_queue_is_no_permission() -> None:
    with pytest.raises(PermissionDenied, match="could not find queue 'ghost'"):
        World().decide(*jobs(1), queue="ghost")


@pytest.mark.parametrize(
    ("job_set", "named"), [("", "missing"), ("j" * 1_024, "1024 bytes"), ("é" * 512, "1024 bytes")]
)
def test_job_set_names_are_bounded(job_set: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        World().decide(*jobs(1), job_set=job_set)


@pytest.mark.parametrize("job_set", ["a/b?c#d%2F", "  ", "line\nbreak", "\U0001f6a2" * 255, "j" * 1_023])
def test_other_job_set_names_are_right(job_set: str) -> None:
    assert len(World().submit(item(), job_set=job_set)) == 1


def test_every_bad_item_is_named_by_its_index_and_nothing_is_stored() -> None:
    world = World()
    rows = jobs(100)
    rows[57] = SubmittedJob(item(pod(priorityClassName="gold")))
    rows[80] = SubmittedJob(item(pod(memory="-1")))
    rows[81] = SubmittedJob(item(), client_id="c" * 101)
    with pytest.raises(InvalidRequest) as refused:
        world.decide(*rows)
    text = str(refused.value)
    assert text.startswith("3 of 100 jobs refused, nothing is stored")
    assert "item 57: priorityClassName 'gold'" in text
    assert "item 80: container main: requests.memory: '-1' is negative" in text
    assert "item 81: client_id has 101 bytes" in text


def test_a_long_list_of_faults_is_cut() -> None:
    with pytest.raises(InvalidRequest, match=r"and 180 more$"):
        World().decide(*jobs(200, item(namespace="")))


def test_the_same_client_id_is_the_same_job() -> None:
    world = World()
    (first,) = world.submit(SubmittedJob(item(), client_id="c"))
    (again,) = world.submit(SubmittedJob(item(pod(cpu="4")), client_id="c"), job_set="other")
    assert again == first
    assert world.ledger.job_count == 1


def test_a_client_id_counts_after_its_job_has_ended() -> None:
    world = World()
    (first,) = world.submit(SubmittedJob(item(), client_id="c"))
    world.cancel(first)
    assert world.state(first) == "gone"
    assert world.submit(SubmittedJob(item(), client_id="c")) == (first,)


def test_repeats_inside_a_request_get_the_first_ones_id() -> None:
    world = World()
    first, second, third = world.submit(
        SubmittedJob(item(), client_id="c"), SubmittedJob(item()), SubmittedJob(item(pod(cpu="2")), client_id="c")
    )
    assert first == third != second
    assert world.ledger.job_count == 2


def test_a_repeat_among_a_hundred_keeps_the_order_of_the_answer() -> None:
    world = World()
    (known,) = world.submit(SubmittedJob(item(), client_id="old"))
    rows = jobs(100)
    rows[57] = SubmittedJob(item(), client_id="old")
    answer = world.submit(*rows)
    assert answer[57] == known
    assert len(set(answer)) == 100
    assert world.ledger.job_count == 100


def test_queues_have_their_own_client_ids() -> None:
    world = World()
    world.queue("qb")
    (first,) = world.submit(SubmittedJob(item(), client_id="c"))
    (second,) = world.submit(SubmittedJob(item(), client_id="c"), queue="qb")
    assert first != second


def test_a_race_for_a_client_id_has_one_winner() -> None:
    world = World()
    request = Submission("qa", "s", (SubmittedJob(item(), client_id="c"), SubmittedJob(item())))
    decisions = [world.submitting.decide(world.at(), request, world.draw) for _ in range(2)]
    answers = []
    for decision in decisions:
        world.store(*decision.sequences)
        answers.append(settled_ids(world.ledger, request, decision, world.ledger.position))
    assert answers[0][0] == answers[1][0]
    assert answers[0][1] != answers[1][1]


def test_permissions_come_from_the_queue_or_from_everywhere() -> None:
    world = World()
    world.queue("open", permissions=(QueuePermission((Subject("Group", "users"),), ("submit",)),))
    world.queue("bobs", permissions=(QueuePermission((Subject("User", "bob"),), ("submit",)),))
    world.queue("other", permissions=(QueuePermission((Subject("User", "users"),), ("submit", "cancel")),))
    for name in ("open", "bobs"):
        assert world.decide(*jobs(1), queue=name, caller=BOB).job_ids
    with pytest.raises(PermissionDenied, match="bob may not submit in queue 'other'"):
        world.decide(*jobs(1), queue="other", caller=BOB)
    anywhere = Caller(name="bob", permissions=frozenset({SUBMIT_ANY}))
    assert world.decide(*jobs(1), queue="other", caller=anywhere).job_ids


def test_a_gang_may_come_in_several_calls() -> None:
    world = World()
    first = world.submit(gang_item("g", 3), gang_item("g", 3))
    (last,) = world.submit(gang_item("g", 3), job_set="another")
    assert world.ledger.gang_members("qa", "g") == (*first, last)
    assert {world.state(job_id) for job_id in (*first, last)} == {"queued"}


@pytest.mark.parametrize(
    ("late", "named"),
    [
        (gang_item("g", 2), "3 members, 2 of them submitted before"),
        (gang_item("g", 4), "gangCardinality is '4' here and '2' before"),
        (gang_item("g", 2, pod(priorityClassName="armada-preemptible")), "priorityClassName"),
        (gang_item("g", 2, gangNodeUniformityLabel="rack"), "gangNodeUniformityLabel"),
    ],
)
def test_late_members_that_do_not_fit_are_rejected_and_the_gang_stays(late: SubmittedItem, named: str) -> None:
    world = World()
    members = world.submit(gang_item("g", 2), gang_item("g", 2))
    decision = world.decide(SubmittedJob(late))
    stored = world.store(*decision.sequences)
    assert world.ledger.void_rows(world.ledger.position) == frozenset()
    (rejected,) = [event for event in stored[0].events if isinstance(event, JobRejected)]
    assert named in rejected.reason
    assert world.state(decision.job_ids[0]) == "gone"
    assert world.ledger.gang_members("qa", "g") == members


def test_a_member_of_a_gang_that_runs_already_is_rejected() -> None:
    world = World()
    world.report_nodes()
    for job_id in world.submit(gang_item("g", 2), gang_item("g", 2)):
        world.start(job_id)
    assert kinds(world.decide(SubmittedJob(gang_item("g", 2))).sequences) == ["JobsSubmitted", "JobRejected"]


def test_too_many_members_at_once_are_all_rejected() -> None:
    world = World()
    decision = world.decide(*[SubmittedJob(gang_item("g", 2)) for _ in range(3)])
    assert kinds(decision.sequences).count("JobRejected") == 3
    assert "3 members" in str(decision.sequences[0].events[-1])


def test_members_in_one_request_have_to_agree() -> None:
    with pytest.raises(InvalidRequest, match=r"item 1: gang 'g': .*gangCardinality is '3' here and '2' before"):
        World().decide(SubmittedJob(gang_item("g", 2)), SubmittedJob(gang_item("g", 3)))
    written = gang_item("g", 2, pod(priorityClassName="armada-default"))
    with pytest.raises(InvalidRequest, match="priorityClassName"):
        World().decide(SubmittedJob(gang_item("g", 2)), SubmittedJob(written))


def test_two_gangs_in_one_request_are_two_gangs() -> None:
    world = World()
    members = world.submit(gang_item("g", 2), gang_item("h", 2), gang_item("g", 2), gang_item("h", 2))
    assert world.ledger.gang_members("qa", "g") == (members[0], members[2])


def test_a_race_for_the_last_place_in_a_gang_is_told() -> None:
    world = World()
    world.submit(gang_item("g", 2))
    request = Submission("qa", "s", (SubmittedJob(gang_item("g", 2)),))
    decisions = [world.submitting.decide(world.at(), request, world.draw) for _ in range(2)]
    world.store(*decisions[0].sequences)
    world.store(*decisions[1].sequences)
    with pytest.raises(Unavailable, match="try again"):
        settled_ids(world.ledger, request, decisions[1], world.ledger.position)


def test_absurd_amounts_are_refused_precisely() -> None:
    spec = pod()
    spec["containers"][0]["resources"] = resources(cpu="1e30", memory="64Mi")
    with pytest.raises(InvalidRequest, match=r"item 0: container main: requests.cpu: '1e30' is above the largest"):
        World().decide(SubmittedJob(item(spec)))
