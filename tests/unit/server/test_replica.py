"""A replica folds its log in order, tells everybody once, and answers after it has folded."""

import asyncio

import pytest

from armada.model.errors import LogFull
from armada.model.events import Entry, JobSetEvents, QueueCordoned, QueueCreated, QueueDeleted
from armada.model.fleet import Queue
from tests.unit.server.fakes import Followed

CREATED = JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")),))


def cordoned(name: str) -> JobSetEvents:
    return JobSetEvents("", "", (QueueCordoned(at_ms=1, name=name, cordoned=True),))


async def test_an_append_is_answered_when_it_counts() -> None:
    async with Followed() as here:
        assert await here.replica.append((CREATED,)) == 1
        assert list(here.replica.ledger.queues) == ["qa"]
        assert here.metrics.registry.get_sample_value("armada_log_position") == 1


async def test_many_appends_at_once_all_count() -> None:
    async with Followed() as here:
        names = [f"q{number}" for number in range(50)]
        queues = [JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name=name)),)) for name in names]
        await asyncio.gather(*[here.replica.append((queue,)) for queue in queues])
        assert sorted(here.replica.ledger.queues) == sorted(names)


async def test_void_facts_are_shown_to_nobody() -> None:
    async with Followed() as here:
        shown: list[Entry] = []
        here.replica.on_entry(shown.append)
        await here.replica.append((CREATED, cordoned("ghost")))
        kinds = [[type(event).__name__ for event in entry.events] for entry in shown]
        assert kinds[0] == ["QueueCreated"]
        assert "QueueCordoned" not in kinds[1]


async def test_a_stretch_of_entries_is_announced_once() -> None:
    async with Followed() as here:
        stretches: list[int] = []
        here.replica.after_fold(lambda: stretches.append(here.replica.ledger.position))
        await here.replica.append((CREATED, cordoned("qa")))
        assert stretches == [2]


async def test_a_failed_append_is_told() -> None:
    async with Followed() as here:
        here.log.failure = LogFull("the disk is full")
        with pytest.raises(LogFull):
            await here.replica.append((CREATED,))


async def test_giving_up_a_wait_harms_nobody() -> None:
    async with Followed() as here:
        waiting = asyncio.create_task(here.replica.folded(1))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await here.replica.append((CREATED,))
        await here.replica.folded(1)


async def test_catching_up_reads_everything_there_is() -> None:
    here = Followed()
    for number in range(1_200):
        here.log.entries.append(
            Entry(
                position=number + 1,
                batch_id=f"b{number}",
                time_ms=1,
                epoch=0,
                queue="",
                job_set="",
                events=(QueueCreated(at_ms=1, queue=Queue(name=f"q{number}")),),
            )
        )
    await here.replica.catch_up()
    assert here.replica.ledger.position == 1_200


async def test_a_watch_gets_its_job_set_only() -> None:
    async with Followed() as here:
        watch = here.replica.watch("qa", "s")
        await here.replica.append((CREATED,))
        await here.replica.append((JobSetEvents("qa", "s", (QueueDeleted(at_ms=1, name="x"),)),))
        await watch.news()
        assert [(entry.queue, entry.job_set) for entry in watch.entries] == [("qa", "s")]
        here.replica.unwatch("qa", "s", watch)
        here.replica.unwatch("qa", "s", watch)
        assert not here.replica._watches
