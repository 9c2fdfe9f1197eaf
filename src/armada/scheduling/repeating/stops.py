"""Limits of a round's time, and where they stopped it.

A round never reads a clock: it is given one to ask, between slices of gangs. What the clock did to the decisions is a
list of stops, each after so many gangs; a round that is given the stops in place of the clock decides the same again.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np

from armada.scheduling.kernels import codes
from armada.scheduling.kernels.draw import Pace
from armada.scheduling.snapshot import PoolSnapshot

Clock = Callable[[], float]
"""Says how many milliseconds of the round have gone by."""

EVERY_QUEUE: Final = -1
WHOLE_ROUND: Final = -2
OPTIMISER: Final = -3

_UNSLICED: Final = 2**62
_FIRST_SLICE: Final = 256
_LARGEST_SLICE: Final = 65_536
_LONGEST_SLICE_MS: Final = 10.0
_LEFT_BY_OPTIMISER: Final = 0.1
"""The part of the round's hard limit that the optimiser leaves unused."""
_SLICES_OF_A_LIMIT: Final = 20
"""Slices grow and shrink so that about so many fit into the shortest limit."""


class Stop(msgspec.Struct, frozen=True):
    """Time ran out when `served` gangs had been looked at, in both passes together.

    `subject`: the row of the queue that had used up its time for new jobs, or EVERY_QUEUE, or WHOLE_ROUND, which ends a
    round without any decision. For OPTIMISER, `served` counts the stretches of work that it was given.
    """

    served: int
    subject: int


class OutOfTime(Exception):
    """The round's hard limit has passed: nothing is decided."""


class Watch:
    """Watches over one round's time, by a clock or by stops that were recorded; with neither there are no limits."""

    def __init__(self, snapshot: PoolSnapshot, clock: Clock | None, recorded: Sequence[Stop] = ()) -> None:
        rules = snapshot.rules
        self.stops: list[Stop] = []
        self._clock = clock
        self._recorded = sorted((stop for stop in recorded if stop.subject != OPTIMISER), key=lambda stop: stop.served)
        self._last_stretch = next((stop.served for stop in recorded if stop.subject == OPTIMISER), None)
        self._optimiser_ms = float(snapshot.optimiser.timeout_ms or np.inf) if snapshot.optimiser is not None else 0.0
        self._stretches = 0
        self._optimises_from_ms = 0.0
        self._hard_ms = float(rules.max_round_ms or np.inf)
        self._soft_ms = float(rules.max_new_jobs_ms or np.inf)
        self._queue_ms = float(rules.max_new_jobs_per_queue_ms or np.inf)
        shortest_ms = min(self._hard_ms, self._soft_ms, self._queue_ms)
        self._slice_ms = min(_LONGEST_SLICE_MS, shortest_ms / _SLICES_OF_A_LIMIT)
        self._size = _UNSLICED if clock is None else _FIRST_SLICE
        self._served = 0
        self._looked_ms = 0.0
        queues = len(snapshot.queues.names)
        self._new_ms = np.zeros(queues, np.float64)
        self._is_late = np.zeros(queues + 1, np.uint8)

    def check(self) -> None:
        """Raise OutOfTime where the round may not go on."""
        if any(stop.subject == WHOLE_ROUND for stop in self._recorded):
            self.stops = list(self._recorded)
            raise OutOfTime
        if self._clock is not None:
            self._looked_ms = self._clock()
            if self._looked_ms > self._hard_ms:
                self._stop(WHOLE_ROUND)
                raise OutOfTime

    def start_pass(self, *, only_back: bool) -> Pace:
        """Return the pace of a pass that begins now. Raises OutOfTime."""
        self.check()
        queues = len(self._new_ms)
        pace = Pace(
            is_open=np.zeros(1, np.uint8),
            only_back=np.full(1, only_back, np.uint8),
            ended=np.full(1, codes.COMPLETED, np.int64),
            size=np.zeros(1, np.int64),
            served=np.zeros(1, np.int64),
            new_served=np.zeros(queues, np.int64),
            is_late=self._is_late,
        )
        self._size_next(pace)
        return pace

    def look(self, pace: Pace) -> None:
        """Look at the time between two slices of a pass. Raises OutOfTime."""
        self._served += int(pace.served[0])
        if self._clock is not None:
            before_ms = self._looked_ms
            self.check()
            self._account(pace, self._looked_ms - before_ms)
        pace.served[0] = 0
        pace.new_served[:] = 0
        self._size_next(pace)

    def end_pass(self, pace: Pace) -> None:
        """Count what the last slice of a pass looked at. Raises OutOfTime."""
        self._served += int(pace.served[0])
        self.check()

    def may_optimise(self) -> bool:
        """Say whether the optimiser may go on for one more stretch of work. Raises OutOfTime.

        It ends in good time before the hard limit, so that what the passes decided is not lost for its sake.
        """
        self.check()
        if self._stretches == 0:
            self._optimises_from_ms = self._looked_ms
        ends_ms = min(self._optimises_from_ms + self._optimiser_ms, self._hard_ms * (1 - _LEFT_BY_OPTIMISER))
        is_late = self._clock is not None and self._looked_ms > ends_ms
        if is_late or self._stretches == self._last_stretch:
            self.stops.append(Stop(self._stretches, OPTIMISER))
            return False
        self._stretches += 1
        return True

    def _account(self, pace: Pace, took_ms: float) -> None:
        """Put down a slice's time to the queues whose new gangs it looked at, and size the next one by it."""
        self._new_ms += pace.new_served * (took_ms / int(pace.served[0]))
        if self._new_ms.sum() > self._soft_ms:
            self._stop(EVERY_QUEUE)
        for queue in np.flatnonzero(self._new_ms > self._queue_ms):
            self._stop(int(queue))
        if took_ms < self._slice_ms / 2:
            self._size = min(self._size * 2, _LARGEST_SLICE)
        elif took_ms > self._slice_ms * 2:
            self._size = max(self._size // 2, 1)

    def _stop(self, subject: int) -> None:
        if subject != WHOLE_ROUND:
            if self._is_late[subject]:
                return
            self._is_late[subject] = 1
        self.stops.append(Stop(self._served, subject))

    def _size_next(self, pace: Pace) -> None:
        """Apply the recorded stops that are due, and let the next slice end at the one after them."""
        pace.size[0] = self._size
        while self._recorded and self._recorded[0].served <= self._served:
            self._stop(self._recorded.pop(0).subject)
        if self._recorded:
            pace.size[0] = self._recorded[0].served - self._served
