"""How long a whole round of one pool takes, from the ledger's columns to the decisions. The best of five."""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from armada.scheduling.readiness.warming import warm_up
from tests.benchmarks.figures import Figure
from tests.benchmarks.rounds import corners
from tests.benchmarks.rounds.columns import Pool, ledger_of
from tests.benchmarks.rounds.pools import POOLS, SLOTS
from tests.benchmarks.rounds.timing import Timed, figure, time_round


class Case(NamedTuple):
    """A problem at a scale, its known counts (placed at least, or exactly), the target, what the reference needs."""

    name: str
    scale: float
    placed: int
    preempted: int
    target_ms: float | None
    reference: str = ""
    is_exact: bool = True


FILLED: Final = 259_000
"""Jobs that `fill 1` places at least."""
IMPOSSIBLE: Final = 100_000

CASES: Final = (
    Case("identical", 1, 32_000, 0, 30, "1.6 s"),
    Case("fill", 0.05, 13_043, 0, None, "5.6 s"),
    Case("fill", 0.1, 25_931, 0, 100, "24 s", is_exact=False),
    Case("fill", 1, FILLED, 0, 1_000, is_exact=False),
    Case("distinct", 0.1, 5_000, 0, None, "0.63 s"),
    Case("distinct", 0.4, 20_000, 0, 150, "13 s"),
    Case("distinct", 1, 50_000, 0, 600),
    Case("steady", 1, 0, 0, 100, "4.4 s"),
    Case("steady-protected", 1, 0, 0, 20, "1.1 s"),
    Case("steady-1000-queues", 10, 0, 0, 1_500),
    Case("preempting", 1, 28_800, 28_800, 100, "4.2 s"),
    Case("gangs", 1, 10_560, 0, 100, "2.4 s"),
)


def measure() -> Iterable[Figure]:
    """Figures of whole rounds; an answer that is not the known one, or breaks an invariant, stops the benchmark."""
    started = time.perf_counter()
    warm_up()
    yield Figure(name="kernels ready (from the cache, if warm)", value=time.perf_counter() - started, unit="s")
    for case in CASES:
        yield time_case(case)
    yield nothing_to_do()
    yield uniform_gang()
    yield from one_preempts()
    yield from impossible_queue()


def time_case(case: Case) -> Figure:
    """Decide one problem a few times.

    Raises:
        AssertionError: the answer is not the known one.
    """
    timed = time_round(ledger_of(POOLS[case.name](case.scale)))
    expect(timed, case.placed, case.preempted, is_exact=case.is_exact)
    return figure(f"{case.name} {case.scale:g}", timed, target_ms=case.target_ms, reference=case.reference)


def expect(timed: Timed, placed: int, preempted: int, *, is_exact: bool = True) -> None:
    """Compare counts with the known ones.

    Raises:
        AssertionError: they differ.
    """
    found = len(timed.decisions.leases.row), len(timed.decisions.preemptions.row)
    is_known = found[0] == placed if is_exact else found[0] >= placed
    if not is_known or found[1] != preempted:
        raise AssertionError(f"placed {found[0]:,} and preempted {found[1]:,} instead of {placed:,} and {preempted:,}")


def nothing_to_do() -> Figure:
    """A round that finds everything as it was, but for a hundred changes."""
    pool = corners.nothing_to_do(1_000, 1_000_000)
    ledger = ledger_of(pool)
    timed = time_round(ledger, between=corners.Changes(ledger, pool).make)
    expect(timed, 0, 0)
    return figure("nothing to do, 1,000,000 queued, 100 changes", timed, target_ms=30)


def uniform_gang() -> Figure:
    """One gang that looks at a hundred values of its label."""
    timed = time_round(ledger_of(corners.uniform_gang(10_000)))
    expect(timed, corners.GANG, 0)
    return figure("gang of 512, label of 100 values, 10,000 nodes", timed, target_ms=50)


def one_preempts() -> Iterable[Figure]:
    """One job that takes the room of another one on some node of ten thousand."""
    timed = time_round(ledger_of(corners.one_preempts(10_000)))
    expect(timed, 1, 1)
    yield figure("one job preempts, 10,000 nodes", timed, target_ms=20)
    timed = time_round(ledger_of(corners.one_preempts(10_000, SLOTS)))
    expect(timed, 1, 1)
    yield figure("one job preempts, 10,000 nodes, 320,000 running", timed)


def impossible_queue() -> Iterable[Figure]:
    """What a queue of impossible jobs adds to the round of the others, in percent."""
    others = POOLS["fill"](1)
    alone = _with_impossible(others, 1, by_selector=False)
    for by_selector, what in ((False, "sizes"), (True, "selectors")):
        timed = _with_impossible(others, IMPOSSIBLE, by_selector=by_selector)
        yield Figure(
            name=f"round: an impossible queue of {IMPOSSIBLE:,} {what} beside fill 1 adds",
            value=max(0.0, 100 * (timed.whole_s / alone.whole_s - 1)),
            unit="%",
            target=10,
            note=f"{alone.whole_s * 1000:.4g} ms without, {timed.whole_s * 1000:.4g} ms with it",
        )


def _with_impossible(others: Pool, count: int, *, by_selector: bool) -> Timed:
    timed = time_round(ledger_of(corners.with_impossible_queue(others, count, by_selector=by_selector)))
    expect(timed, FILLED, 0, is_exact=False)
    return timed
