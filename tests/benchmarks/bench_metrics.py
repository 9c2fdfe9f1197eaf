"""What a scrape costs: how long the event loop stands still for it, and the work of the page's own thread."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from armada.control.measuring.series import Family
from armada.control.measuring.standing import Circumstances, StandingFigures
from armada.model.policy import MetricsPolicy
from armada.server.measuring.metrics_page import written_text
from armada.state.figures.standing import Standing
from tests.benchmarks.figures import Figure
from tests.benchmarks.rounds.columns import NOW_MS, ledger_of
from tests.benchmarks.rounds.pools import POOLS

TIMES: Final = 5
COUNTED_JOBS: Final = 20_000

Value = TypeVar("Value")


def measure() -> Iterable[Figure]:
    """Figures of a pool of 20,000 nodes with a million queued jobs, and of one with as many running as it holds."""
    yield from scrape("fill", "1,000,000 queued jobs of 200 shapes in 100 queues, 20,000 nodes", 1, target_ms=200)
    yield from scrape("distinct", "50,000 queued jobs, each of its own shape, 1,000 nodes", 1, target_ms=None)
    yield from scrape("steady", "1,000 full nodes with 32,000 runs", 1, target_ms=None)


def scrape(problem: str, what: str, scale: float, *, target_ms: float | None) -> Iterable[Figure]:
    """Measure the parts of a scrape of one problem."""
    ledger = ledger_of(POOLS[problem](scale))
    figures = StandingFigures(_policy(problem, scale), MetricsPolicy(shows_nodes=False))
    standing: Standing
    copied_ms, standing = _best(ledger.standing)
    seen = Circumstances(now_ms=NOW_MS + 100_000, judged=lambda *_: None)
    found: list[Family]
    made_ms, found = _best(lambda: figures.families(standing, seen))
    written_ms, text = _best(lambda: written_text(found))
    yield Figure(name=f"metrics: the event loop stands still ({what})", value=copied_ms, unit="ms", target=50)
    yield Figure(name=f"metrics: figures in a thread ({what})", value=made_ms, unit="ms", target=target_ms)
    yield Figure(
        name=f"metrics: text ({what})", value=written_ms, unit="ms", note=f"{len(text) / 1e6:.1f} MB without nodes"
    )


def _policy(problem: str, scale: float) -> Any:
    return POOLS[problem](scale).policy


def _best(work: Callable[[], Value]) -> tuple[float, Value]:
    best, result = float("inf"), None
    for _ in range(TIMES):
        started = time.perf_counter()
        result = work()
        best = min(best, (time.perf_counter() - started) * 1_000)
    assert result is not None
    return best, result
