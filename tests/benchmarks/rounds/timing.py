"""Timing one whole round: the snapshot from the ledger's columns, then the decisions."""

import gc
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from armada.model.fleet import BidTable
from armada.scheduling.decisions import Decisions, check_invariants
from armada.scheduling.round import schedule
from armada.state.ledger import Ledger
from tests.benchmarks.figures import Figure
from tests.benchmarks.rounds.columns import POOL, everywhere


class Timed(NamedTuple):
    """The best of several rounds, in CPU seconds of one core, and what it decided."""

    snapshot_s: float
    schedule_s: float
    decisions: Decisions

    @property
    def whole_s(self) -> float:
        """Both parts."""
        return self.snapshot_s + self.schedule_s

    @property
    def note(self) -> str:
        """The parts and the counts in words."""
        return (
            f"snapshot {self.snapshot_s * 1000:.3g} + decisions {self.schedule_s * 1000:.3g};"
            f" {len(self.decisions.leases.row):,} placed, {len(self.decisions.preemptions.row):,} preempted"
        )


def nothing() -> None:
    """What happens between two rounds where nothing is said."""


def time_round(
    ledger: Ledger, *, times: int = 5, between: Callable[[], None] = nothing, bids: BidTable | None = None
) -> Timed:
    """Decide the same round several times after one to warm up; `between` happens before each, unmeasured.

    `bids` are for a pool with a market.

    Raises:
        AssertionError: the decisions break an invariant.
    """
    best: Timed | None = None
    circumstances = msgspec.structs.replace(everywhere(), bids=bids)
    gc.collect()
    gc.freeze()
    for number in range(times + 1):
        between()
        begun = time.process_time()
        snapshot = ledger.pool_snapshot(POOL, circumstances)
        read = time.process_time()
        decisions = schedule(snapshot)
        decided = time.process_time()
        timed = Timed(read - begun, decided - read, decisions)
        if number and (best is None or timed.whole_s < best.whole_s):
            best = timed
    gc.unfreeze()
    if best is None:
        raise ValueError("at least one round must be timed")
    broken = check_invariants(best.decisions)
    if broken:
        raise AssertionError(f"the round breaks invariants: {broken}")
    return best


def figure(name: str, timed: Timed, *, target_ms: float | None = None, reference: str = "", note: str = "") -> Figure:
    """A whole round as a figure."""
    return Figure(
        name=f"round: {name}",
        value=timed.whole_s * 1000,
        unit="ms",
        target=target_ms,
        reference=reference,
        note=f"{timed.note}{'; ' if note else ''}{note}",
    )
