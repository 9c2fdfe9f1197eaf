"""What jobs look like in full. The ledger keeps only where that stands; here it is found again."""

from collections import OrderedDict
from typing import Final

from armada.eventlog.port import EventLog
from armada.model.errors import CorruptEntry
from armada.model.events import Entry, JobsSubmitted, Position
from armada.model.jobs import JobTemplate
from armada.views.history import History

TEMPLATES_KEPT: Final = 20_000
BYTES_KEPT: Final = 32 * 1024 * 1024


class Templates:
    """Templates by where they were submitted: the latest from memory, others from the log or the history."""

    def __init__(self, log: EventLog, history: History) -> None:
        self._log = log
        self._history = history
        self._kept: OrderedDict[tuple[Position, int], JobTemplate] = OrderedDict()
        self._bytes = 0
        self._last: JobTemplate | None = None

    def notice(self, entry: Entry) -> None:
        """Keep the templates of an entry that was just folded."""
        for index, event in enumerate(entry.events):
            if isinstance(event, JobsSubmitted) and event.jobs:
                self._keep((entry.position, index), event.template)

    def _keep(self, place: tuple[Position, int], template: JobTemplate) -> None:
        if self._last is not None and self._last is not template and self._last == template:
            # Submissions repeat templates; equal ones are kept as one object.
            template = self._last
        if template is not self._last:
            self._bytes += len(template.pod_spec)
        self._last = template
        self._kept[place] = template
        while len(self._kept) > TEMPLATES_KEPT or (self._bytes > BYTES_KEPT and len(self._kept) > 1):
            _, oldest = self._kept.popitem(last=False)
            following = next(iter(self._kept.values()))
            if following is not oldest:
                self._bytes -= len(oldest.pod_spec)

    async def find(self, position: Position, index: int) -> JobTemplate:
        """Return a template; raises CorruptEntry when neither log nor history has it, LogFailed."""
        template = self._kept.get((position, index))
        if template is not None:
            return template
        for entry in await self._log.read(position - 1, 1):
            if entry.position == position and index < len(entry.events):
                event = entry.events[index]
                if isinstance(event, JobsSubmitted):
                    self._keep((position, index), event.template)
                    return event.template
        await self._history.caught_up(position)
        stored = await self._history.spec(position, index)
        if stored is None:
            raise CorruptEntry(f"no template was stored at position {position}, event {index}")
        self._keep((position, index), stored)
        return stored
