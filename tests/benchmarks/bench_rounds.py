"""How long a whole round takes: snapshot from the ledger, decisions, texts left aside. The best of five."""

import gc
import json
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from armada.cli.problems.reading import read_problem
from armada.cli.problems.trial import Trial
from armada.scheduling.decisions import check_invariants
from armada.scheduling.round import schedule, warm_up
from tests.benchmarks.figures import Figure
from tests.benchmarks.round_problems import PROBLEMS

TIMES: Final = 5


class Case(NamedTuple):
    """A problem at a scale, its known counts (None: unknown), the target, what the reference needs."""

    name: str
    scale: float
    placed: int | None
    preempted: int
    target_ms: float | None
    reference: str


CASES: Final = (
    Case("identical", 1, 32_000, 0, 100, "1.6 s"),
    Case("fill", 0.05, 13_043, 0, None, "5.6 s"),
    Case("fill", 0.1, None, 0, 200, "24 s"),
    Case("distinct", 0.1, 5_000, 0, None, "0.63 s"),
    Case("distinct", 0.4, 20_000, 0, 150, "13 s"),
    Case("steady", 1, 0, 0, 300, "4.4 s"),
    Case("steady-protected", 1, 0, 0, None, "1.1 s"),
    Case("steady-1000-queues", 1, None, 0, None, ""),
    Case("preempting", 1, 28_800, 28_800, 300, "4.2 s"),
    Case("gangs", 1, 10_560, 0, 100, "2.4 s"),
)


def measure() -> Iterable[Figure]:
    """Figures of whole rounds; an answer that is not the known one, or breaks an invariant, stops the benchmark."""
    started = time.perf_counter()
    warm_up()
    yield Figure(name="kernels ready (from the cache, if warm)", value=time.perf_counter() - started, unit="s")
    for case in CASES:
        yield time_case(case)


def time_case(case: Case) -> Figure:
    """Decide one problem's first round a few times."""
    line = json.dumps(PROBLEMS[case.name](case.scale)).encode()
    trial = Trial(read_problem(line, case.name))
    trial.begin_round()
    gc.collect()
    seconds = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        decisions = schedule(trial.snapshot("default"))
        seconds.append(time.perf_counter() - begun)
    broken = check_invariants(decisions)
    placed, preempted = len(decisions.leases.row), len(decisions.preemptions.row)
    if broken or preempted != case.preempted or case.placed not in {None, placed}:
        raise AssertionError(f"{case.name} {case.scale}: placed {placed}, preempted {preempted}, {broken}")
    return Figure(
        name=f"round: {case.name} {case.scale:g}",
        value=min(seconds) * 1000,
        unit="ms",
        target=case.target_ms,
        reference=case.reference,
        note=f"{placed:,} placed, {preempted:,} preempted",
    )
