"""When to exchange leases with the control plane, and when to give a held exchange up for a newer one. Pure."""

from armada.executor.holding.stimuli import AgentSettings


class Exchange:
    """The state of the one exchange at a time. `has_news` says that the control plane should hear of something now."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._started_ms: int | None = None
        self._due_ms = 0
        self._tries = 0
        self._offered = 0
        self._is_abandoning = False
        self.has_news = True

    def start(self, now_ms: int, room: int) -> bool:
        """Start one if it is due, offering `room` more leases; False when not."""
        if self._started_ms is not None or now_ms < self._due_ms:
            return False
        self._started_ms = now_ms
        self._offered = room
        self._is_abandoning = False
        self.has_news = False
        return True

    def should_abandon(self, now_ms: int, room: int) -> bool:
        """True, once, when the exchange under way says too little of what is the case by now."""
        started_ms = self._started_ms
        if started_ms is None or self._is_abandoning or not self._is_outdated(room):
            return False
        self._is_abandoning = now_ms - started_ms >= self._settings.abandon_after_ms
        return self._is_abandoning

    def answered(self, now_ms: int, *, was_empty: bool) -> None:
        """The reply came and was taken in. News call for the next one at once, silence for the ordinary interval."""
        settings = self._settings
        started_ms = now_ms if self._started_ms is None else self._started_ms
        self._started_ms = None
        self._tries = 0
        earliest_ms = now_ms + settings.exchange_gap_ms
        if self.has_news:
            self._due_ms = earliest_ms
        elif settings.hold_ms and not was_empty:
            # The server repeated itself: it can't hold the next exchange either until that is settled.
            self._due_ms = now_ms + min(settings.exchange_interval_ms, settings.repeat_gap_ms)
        else:
            self._due_ms = max(started_ms + settings.exchange_interval_ms, earliest_ms)

    def failed(self, now_ms: int, *, was_abandoned: bool) -> None:
        """It failed, or was given up as asked: again, later or at once."""
        self._started_ms = None
        self.has_news = True
        if was_abandoned and self._is_abandoning:
            self._due_ms = now_ms
        else:
            self._tries += 1
            self._due_ms = now_ms + self._settings.delay_ms(self._tries)

    def hasten(self, now_ms: int) -> None:
        """When there is news and none is under way: don't wait for the interval (but for a failed one's delay)."""
        if self.has_news and self._started_ms is None and not self._tries:
            self._due_ms = min(self._due_ms, now_ms + self._settings.exchange_gap_ms)

    def wake_ms(self, room: int) -> int | None:
        """When to look again; None while the one under way is up to date."""
        if self._started_ms is None:
            return self._due_ms
        if self._is_outdated(room) and not self._is_abandoning:
            return self._started_ms + self._settings.abandon_after_ms
        return None

    def _is_outdated(self, room: int) -> bool:
        return self.has_news or (room > 0 and self._offered * 2 <= room)
