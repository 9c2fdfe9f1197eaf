"""Queues: weights that make sense, owners, cordons, deletion (F027, F086, F123)."""

import math
from collections.abc import Callable

import pytest

from armada.control.commands import queues
from armada.control.commands.permissions import VERBS
from armada.model.errors import FailedPrecondition, InvalidRequest, NotFound, PermissionDenied
from armada.model.events import QueueCreated, QueueUpdated
from armada.model.fleet import ClassLimit, Queue, QueuePermission, Subject
from armada.model.submission import Caller, QueueRequest
from tests.unit.control.world import ALICE, World, item, kinds, node

BOB = Caller(name="bob")


def created(world: World, request: QueueRequest) -> Queue:
    sequences = queues.create(world.at(), request)
    world.store(*sequences)
    event = sequences[0].events[0]
    assert isinstance(event, QueueCreated)
    return event.queue


@pytest.mark.parametrize("factor", [math.nan, math.inf, -math.inf, -0.0, 0.0, -1.0, 0.999, 1e-300, 1e308])
def test_weights_that_are_no_weights_are_refused(factor: float) -> None:
    world = World()
    request = QueueRequest(Queue(name="q", priority_factor=factor))
    for call in (queues.create, queues.update):
        with pytest.raises(InvalidRequest, match="priority_factor"):
            call(world.at(), request)
    assert list(world.ledger.queues) == ["qa"]


@pytest.mark.parametrize("factor", [1.0, 1.5, 1e9, 1e300])
def test_finite_factors_from_one_on_are_right(factor: float) -> None:
    world = World()
    created(world, QueueRequest(Queue(name="q", priority_factor=factor)))
    assert [queue.priority_factor for queue in queues.listing(world.ledger, 0)] == [factor, 1.0]


def test_a_queue_without_owners_belongs_to_its_creator() -> None:
    queue = created(World(), QueueRequest(Queue(name="q")))
    assert queue.permissions == (QueuePermission((Subject("User", "alice"),), VERBS),)


def test_owners_become_one_permission_before_the_others() -> None:
    given = QueuePermission((Subject("Group", "imaging"),), ("submit", "fly"))
    request = QueueRequest(Queue(name="q", permissions=(given,)), ("dana", "eve"), ("ops",))
    queue = created(World(), request)
    owners = (Subject("User", "dana"), Subject("User", "eve"), Subject("Group", "ops"))
    assert queue.permissions == (QueuePermission(owners, VERBS), given)


def test_an_update_adds_no_owner_and_creates_what_is_not_there() -> None:
    world = World()
    (sequence,) = queues.update(world.at(), QueueRequest(Queue(name="new", priority_factor=2.0)))
    assert isinstance(sequence.events[0], QueueCreated)
    world.store(sequence)
    (sequence,) = queues.update(world.at(), QueueRequest(Queue(name="new", priority_factor=3.0)))
    assert isinstance(sequence.events[0], QueueUpdated)
    world.store(sequence)
    assert world.ledger.queues["new"] == Queue(name="new", priority_factor=3.0)


@pytest.mark.parametrize(
    ("queue", "named"),
    [
        (Queue(name=""), "name is missing"),
        (Queue(name="n" * 1_024), "1024 bytes"),
        (Queue(name="a\0b"), "NUL"),
        (Queue(name="q", permissions=(QueuePermission((Subject("Role", "x"),)),)), "'Role'"),
        (Queue(name="q", permissions=(QueuePermission((Subject("user", "x"),)),)), "'user'"),
        (Queue(name="q", labels={"": "a"}), "empty key or value"),
        (Queue(name="q", labels={"a": ""}), "empty key or value"),
        (Queue(name="q", retry_policies=("nope",)), "'nope'"),
        (Queue(name="q", limits_by_class={"c": ClassLimit({"cpu": math.nan})}), "not a number"),
        (Queue(name="q", labels={"a": "x" * 262_145}), "at most 262144"),
    ],
)
def test_what_is_wrong_with_a_queue_is_named(queue: Queue, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        queues.create(World().at(), QueueRequest(queue))


@pytest.mark.parametrize("name", ["a/b c:\u00fc", "n" * 1_023])
def test_strange_names_are_right(name: str) -> None:
    assert created(World(), QueueRequest(Queue(name=name))).name == name


def test_permission_comes_before_content() -> None:
    at = World().at(BOB)
    bad = QueueRequest(Queue(name="", priority_factor=math.nan))
    calls: list[Callable[[], object]] = [
        lambda: queues.create(at, bad),
        lambda: queues.update(at, bad),
        lambda: queues.delete(at, "qa"),
        lambda: queues.cordon(at, "", cordoned=True),
    ]
    for call in calls:
        with pytest.raises(PermissionDenied, match="bob may not"):
            call()
    assert queues.may_create(ALICE)
    assert not queues.may_create(BOB)


def test_cordons_are_set_and_lifted_once() -> None:
    world = World()
    world.store(*queues.cordon(world.at(), "qa", cordoned=True))
    assert world.ledger.queues["qa"].cordoned
    assert queues.cordon(world.at(), "qa", cordoned=True) == ()
    world.store(*queues.cordon(world.at(), "qa", cordoned=False))
    assert not world.ledger.queues["qa"].cordoned
    with pytest.raises(NotFound, match="'ghost'"):
        queues.cordon(world.at(), "ghost", cordoned=True)
    with pytest.raises(InvalidRequest, match="missing"):
        queues.cordon(world.at(), "", cordoned=True)


def test_a_queue_with_live_jobs_is_not_deleted() -> None:
    world = World()
    world.report_nodes(node("n1"))
    queued, running = world.submit(item(), item())
    world.start(running)
    with pytest.raises(FailedPrecondition, match="2 jobs that have not ended"):
        queues.delete(world.at(), "qa")
    world.cancel(queued)
    with pytest.raises(FailedPrecondition, match="1 jobs"):
        queues.delete(world.at(), "qa")
    world.cancel(running)
    assert kinds(queues.delete(world.at(), "qa")) == ["QueueDeleted"]


def test_deleting_what_is_not_there_is_no_error() -> None:
    assert queues.delete(World().at(), "ghost") == ()


def test_listings_are_by_name_and_bounded() -> None:
    world = World()
    for name in ("qc", "qb"):
        world.queue(name)
    assert [queue.name for queue in queues.listing(world.ledger, 0)] == ["qa", "qb", "qc"]
    assert [queue.name for queue in queues.listing(world.ledger, 2)] == ["qa", "qb"]
    assert [queue.name for queue in queues.listing(world.ledger, -1)] == ["qa", "qb", "qc"]
