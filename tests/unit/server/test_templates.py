"""Templates are found again: in memory, in the log, in the history."""

from pathlib import Path

import pytest

from armada.model.errors import CorruptEntry
from armada.model.events import JobSetEvents, JobsSubmitted, QueueCreated
from armada.model.fleet import Queue
from armada.model.jobs import JobShape, JobTemplate, NewJob
from armada.server.templates import TEMPLATES_KEPT, Templates
from armada.views.history import History
from tests.unit.server.fakes import Followed

CREATED = JobSetEvents("", "", (QueueCreated(at_ms=1, queue=Queue(name="qa")),))


def submitted(number: int, size: int = 10) -> JobSetEvents:
    template = JobTemplate(
        shape=JobShape(requests=(), priority_class="armada-default"), pod_spec=b"x" * size, namespace=f"ns{number}"
    )
    jobs = (NewJob(f"{number:026d}", 0),)
    return JobSetEvents("qa", "s", (JobsSubmitted(at_ms=1, template=template, jobs=jobs),))


async def test_a_template_is_found_where_it_was_submitted(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    async with Followed() as here:
        templates = Templates(here.log, history)
        here.replica.on_entry(templates.notice)
        await here.replica.append((CREATED,))
        position = await here.replica.append((submitted(1),))
        reads = here.log.reads
        assert (await templates.find(position, 0)).namespace == "ns1"
        assert here.log.reads == reads
        forgetful = Templates(here.log, history)
        assert (await forgetful.find(position, 0)).namespace == "ns1"
    await history.close()


async def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    async with Followed() as here:
        templates = Templates(here.log, history)
        here.replica.on_entry(templates.notice)
        await here.replica.append((CREATED,))
        await here.replica.append(tuple(submitted(number) for number in range(TEMPLATES_KEPT + 10)))
        assert len(templates._kept) == TEMPLATES_KEPT
        assert (await templates.find(2, 0)).namespace == "ns0"
        for number in range(40):
            await here.replica.append((submitted(100_000 + number, size=1_000_000),))
        assert sum(len(template.pod_spec) for template in templates._kept.values()) < 40_000_000
    await history.close()


async def test_a_template_that_nobody_has_is_corruption(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    async with Followed() as here:
        await here.replica.append((CREATED,))
        with pytest.raises(CorruptEntry, match="position 0"):
            await Templates(here.log, history).find(0, 0)
    await history.close()
