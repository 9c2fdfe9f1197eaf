"""One chunk of a long run: a law, a seed and so many examples; what became of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy, one_of

from tests.oracle.crossing_strategies import crossing_problems
from tests.oracle.market_strategies import market_problems
from tests.oracle.optimiser_strategies import optimised_problems
from tests.oracle.strategies import problems
from tests.property.agreement import disagreements
from tests.property.settling import unrest_where_jobs_fail, unrest_where_jobs_wait_again

Problem = dict[str, Any]


@dataclass(frozen=True)
class Law:
    """What holds for every problem of a strategy; `broken` returns what is wrong with one."""

    says: str
    strategy: Callable[[], SearchStrategy[Problem]]
    broken: Callable[[Problem], list[str]]


ALIKE: Final = (
    "product and plain oracle decide alike, no round breaks an invariant, and victims name who has their room"
)

LAWS: Final = {
    "rounds": Law(ALIKE, problems, disagreements),
    "crossing": Law(f"where pools use each other's nodes {ALIKE}", crossing_problems, disagreements),
    "optimiser": Law(f"with the fairness optimiser {ALIKE}", optimised_problems, disagreements),
    "markets": Law(f"in market pools {ALIKE}", market_problems, disagreements),
    "rest": Law(
        "without new work no round preempts any more",
        lambda: one_of(problems(), crossing_problems(), optimised_problems()),
        lambda problem: unrest_where_jobs_fail(problem) + unrest_where_jobs_wait_again(problem),
    ),
}


@dataclass(frozen=True)
class Chunk:
    """Some examples of a law. Chunks of a run differ in their number."""

    law: str
    seed: int
    number: int
    examples: int


@dataclass(frozen=True)
class Verdict:
    """What became of a chunk: nothing to complain about, or the smallest problem found to break the law."""

    chunk: Chunk
    problem: Problem | None = None
    complaints: list[str] = field(default_factory=list)


def complaints_about(law: Law, problem: Problem) -> list[str]:
    """Return what is wrong with a problem; that it cannot be decided at all is wrong too."""
    try:
        return law.broken(problem)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is a finding
        return [f"{type(error).__name__}: {error}"]


def decide_chunk(chunk: Chunk) -> Verdict:
    """Draw and decide all examples of a chunk."""
    law = LAWS[chunk.law]
    failing: list[tuple[Problem, list[str]]] = []

    @seed((chunk.seed << 32) + chunk.number)
    @settings(
        max_examples=chunk.examples,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(law.strategy())
    def hold(problem: Problem) -> None:
        found = complaints_about(law, problem)
        if found:
            failing.append((problem, found))
            raise AssertionError(found[0])

    try:
        hold()
    except AssertionError:
        # Hypothesis replays the smallest failing example last.
        return Verdict(chunk, *failing[-1])
    return Verdict(chunk)
