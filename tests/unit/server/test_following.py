"""Following a job set gives every entry, however little a read brings."""

from collections.abc import Sequence

from armada.model.events import Entry, JobCancelRequested, JobSetEvents, Position
from armada.server.following import Followers
from tests.unit.server.fakes import Followed, MemoryLog

REQUESTS = 7


class ShortReads(MemoryLog):
    """A log whose reads bring two entries at most, as when entries are large."""

    async def read_job_set(self, queue: str, job_set: str, after: Position, limit: int) -> Sequence[Entry]:
        return (await super().read_job_set(queue, job_set, after, limit))[:2]


async def test_a_read_that_stops_short_does_not_end_the_stream() -> None:
    async with Followed() as here:
        for number in range(REQUESTS):
            fact = JobCancelRequested(at_ms=number, job_id=f"job-{number}")
            await here.replica.append((JobSetEvents("qa", "set", (fact,)),))
        short = ShortReads()
        short.entries = here.log.entries
        here.replica.log = short
        followers = Followers(here.replica, here.metrics, limit=10)
        seen = [entry.position async for entries in followers.entries("qa", "set", 0, watch=False) for entry in entries]
        assert seen == list(range(1, REQUESTS + 1))
