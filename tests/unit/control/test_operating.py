"""Commands about executors and nodes: settings, forgetting, and ending what runs there."""

from collections.abc import Callable
from typing import Any

import pytest

from armada.control.commands import operating
from armada.control.commands.permissions import CANCEL_ANY
from armada.control.commands.situation import Situation
from armada.model.errors import InvalidRequest, PermissionDenied
from armada.model.events import ExecutorDeleted, ExecutorSettingsChanged, JobFailed
from armada.model.submission import Caller, PlaceJobsRequest
from tests.unit.control.driving import Driver
from tests.unit.control.world import World, gang_item, item, kinds, node, pod

SOFT = pod(priorityClassName="armada-preemptible")
EAST = PlaceJobsRequest("east", queues=("qa",))


def busy() -> tuple[World, dict[str, str]]:
    """A soft job on each of two nodes of east, a solid one on the first, a soft one of another queue, one of west."""
    world = World()
    world.queue("qb")
    world.report_nodes(node("n1"), node("n2"))
    world.report_nodes(node("n1", "west"), executor_id="west")
    ids = {}
    for name, spec, queue, where, executor_id in (
        ("soft1", SOFT, "qa", "n1", "east"),
        ("soft2", SOFT, "qa", "n2", "east"),
        ("solid", pod(), "qa", "n1", "east"),
        ("other", SOFT, "qb", "n1", "east"),
        ("west", SOFT, "qa", "n1", "west"),
    ):
        (ids[name],) = world.submit(item(spec), queue=queue)
        world.start(ids[name], where, executor_id)
    return world, ids


def ended(command: Callable[[Situation, PlaceJobsRequest], Any], request: PlaceJobsRequest, state: str) -> list[str]:
    """The names of the jobs that a command ends."""
    world, ids = busy()
    world.store(*command(world.at(), request))
    return [name for name, job_id in ids.items() if world.state(job_id) == state]


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (EAST, ["soft1", "soft2", "solid"]),
        (PlaceJobsRequest("east"), []),
        (PlaceJobsRequest("east", queues=("qb", "ghost")), ["other"]),
        (PlaceJobsRequest("east", "n1", ("qa",)), ["soft1", "solid"]),
        (PlaceJobsRequest("east", "n9", ("qa",)), []),
        (PlaceJobsRequest("ghost", queues=("qa",)), []),
        (PlaceJobsRequest("east", None, ("qa",), ("armada-preemptible",)), ["soft1", "soft2"]),
        (PlaceJobsRequest("east", None, ("qa",), (), ("gpu",)), []),
        (PlaceJobsRequest("east", None, ("qa",), (), ("gpu", "default")), ["soft1", "soft2", "solid"]),
    ],
)
def test_jobs_of_a_place_are_cancelled(request_: PlaceJobsRequest, names: list[str]) -> None:
    assert ended(operating.cancel_on_place, request_, "cancelled") == names


def test_only_preemptible_jobs_are_preempted_gangs_as_a_whole() -> None:
    assert ended(operating.preempt_on_place, EAST, "preempted") == ["soft1", "soft2"]
    world, _ = busy()
    first, second = world.submit(*[gang_item("g", 2, SOFT) for _ in range(2)])
    world.start(first, "n1")
    world.start(second, "n1", "west")
    (sequence,) = operating.preempt_on_place(world.at(), PlaceJobsRequest("west", "n1", ("qa",)))
    assert {getattr(event, "job_id", "") for event in sequence.events} >= {first, second}
    assert {event.requestor for event in sequence.events if hasattr(event, "requestor")} == {"alice"}


def test_an_executor_is_cordoned_and_uncordoned() -> None:
    world, _ = busy()
    (sequence,) = operating.change_settings(world.at(), "east", "drill", cordoned=True)
    world.store(sequence)
    assert world.ledger.is_cordoned("east")
    record = world.ledger.executor("east")
    assert record is not None
    assert (record.settings.cordon_reason, record.settings.set_by) == ("drill", "alice")
    world.store(*operating.change_settings(world.at(), "east", "ignored", cordoned=False))
    assert not world.ledger.is_cordoned("east")
    assert kinds(operating.change_settings(world.at(), "unheard-of", "why", cordoned=True)) == [
        ExecutorSettingsChanged.__name__
    ]


def test_settings_are_put_back() -> None:
    world, _ = busy()
    assert operating.delete_settings(world.at(), "east") == ()
    world.store(*operating.change_settings(world.at(), "east", "drill", cordoned=True))
    world.store(*operating.delete_settings(world.at(), "east"))
    assert not world.ledger.is_cordoned("east")
    assert operating.delete_settings(world.at(), "ghost") == ()


def test_an_executor_is_forgotten() -> None:
    world, _ = busy()
    assert kinds(operating.delete_executor(world.at(), "west")) == [ExecutorDeleted.__name__]
    world.store(*operating.delete_executor(world.at(), "west"))
    assert world.ledger.executor("west") is None
    assert operating.delete_executor(world.at(), "west") == ()
    world.ledger.validate()


def test_what_ran_on_a_forgotten_executor_is_given_up_in_time() -> None:
    driver = Driver()
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item())
    driver.run()
    driver.world.store(*operating.delete_executor(driver.world.at(), "east"))
    assert driver.run() == []
    assert driver.step().wake_at_ms is not None
    driver.world.now_ms += 3_600_000
    assert driver.run() == ["RunLeaseExpired", "JobFailed"]
    assert len(driver.events(JobFailed)) == 1
    assert driver.world.ledger.job(job_id) is None
    driver.world.ledger.validate()


@pytest.mark.parametrize(
    "command",
    [
        lambda at: operating.change_settings(at, "", "why", cordoned=True),
        lambda at: operating.change_settings(at, "east", "", cordoned=True),
        lambda at: operating.change_settings(at, "east", "x" * 1025, cordoned=True),
        lambda at: operating.change_settings(at, "ea\0st", "", cordoned=False),
        lambda at: operating.delete_settings(at, ""),
        lambda at: operating.delete_executor(at, ""),
        lambda at: operating.cancel_on_place(at, PlaceJobsRequest("")),
        lambda at: operating.preempt_on_place(at, PlaceJobsRequest("", "n1")),
        lambda at: operating.preempt_on_place(at, PlaceJobsRequest("east", "")),
    ],
)
def test_what_is_missing_is_refused(command: Callable[[Situation], object]) -> None:
    with pytest.raises(InvalidRequest):
        command(World().at())


def test_only_those_may_who_may() -> None:
    world, _ = busy()
    at = world.at(Caller(name="carol", permissions=frozenset({CANCEL_ANY})))
    assert operating.cancel_on_place(at, EAST)
    refused: list[Callable[[], object]] = [
        lambda: operating.preempt_on_place(at, EAST),
        lambda: operating.change_settings(at, "east", "why", cordoned=True),
        lambda: operating.delete_settings(at, "east"),
        lambda: operating.delete_executor(at, "east"),
    ]
    for command in refused:
        with pytest.raises(PermissionDenied):
            command()
