"""The agenda: when a cycle of rounds is due, and which pools are left of the present one."""

from collections.abc import Iterable

from armada.control.rounds.cadence import Cadence


class Agenda:
    """Times and pools of the leader's cycles. A cycle is one round of each pool that has nodes, in order."""

    def __init__(self, cadence: Cadence, started_ms: int) -> None:
        self._cadence = cadence
        self._changed_ms: int | None = started_ms
        self._cycle_started_ms = 0
        self._rests_until_ms = 0
        self._pools_left: list[str] = []
        self.round_runs = False

    def changed(self, now_ms: int) -> None:
        """Note that something changed that may let a job be placed; the first such change counts."""
        if self._changed_ms is None:
            self._changed_ms = now_ms

    def forgive(self, now_ms: int) -> None:
        """Go on after the clock has jumped: nothing lies in its future."""
        self._cycle_started_ms = min(self._cycle_started_ms, now_ms)
        self._rests_until_ms = min(self._rests_until_ms, now_ms)
        if self._changed_ms is not None:
            self._changed_ms = min(self._changed_ms, now_ms)

    def begin_again(self, now_ms: int) -> None:
        """Start a new cycle as soon as may be; a round that runs has no say any more."""
        self.round_runs = False
        self._changed_ms = now_ms

    @property
    def in_cycle(self) -> bool:
        """True while pools of the present cycle are left."""
        return bool(self._pools_left)

    def due_ms(self, *, wants_rounds: bool) -> int | None:
        """Return when the next cycle is to start: after a change, else by the period if somebody waits."""
        if self._changed_ms is not None:
            return max(self._changed_ms + self._cadence.round_delay_ms, self._rests_until_ms)
        if wants_rounds:
            return self._cycle_started_ms + self._cadence.schedule_period_ms
        return None

    def start(self, pools: Iterable[str], now_ms: int) -> None:
        """Begin a cycle of these pools: what changed up to now is looked at in it."""
        self._changed_ms = None
        self._cycle_started_ms = now_ms
        self._pools_left = list(pools)

    def next_pool(self) -> str | None:
        """Take the next pool of the cycle; its round runs from now on."""
        if not self._pools_left:
            return None
        self.round_runs = True
        return self._pools_left.pop(0)

    def refused(self) -> None:
        """Note that the pool taken last can't be decided: the next one may be taken at once."""
        self.round_runs = False

    def stopped(self) -> None:
        """Leave out what is left of the cycle."""
        self.round_runs = False
        self._pools_left = []

    def ended(self, started_ms: int, now_ms: int) -> None:
        """Note that a round was decided; the rest that is due after it goes by how long it took."""
        self.round_runs = False
        self._rests_until_ms = now_ms + int((now_ms - started_ms) * self._cadence.rest_share)

    def failed(self, now_ms: int) -> None:
        """Note that a round could not be decided: it is tried again after the schedule period."""
        self.round_runs = False
        self._cycle_started_ms = now_ms
