"""Figures of a finished simulation: what the summary says, and the series that are plotted."""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.simulation.whatif.results import CANCELLED, PREEMPTED, REJECTED, SUCCEEDED, Results

MAX_LINES: Final = 10
"""Queues drawn one by one; what the others have is added up."""
MAX_POINTS: Final = 2_000
OTHERS: Final = "others"

Floats = NDArray[np.float64]


class QueueSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a queue's jobs. Waiting times are of jobs that ran, in seconds, None when none did."""

    queue: str
    succeeded: int
    preempted: int
    cancelled: int
    rejected: int
    mean_wait_s: float | None
    median_wait_s: float | None
    worst_wait_s: float | None
    cpu_hours: float
    mean_share: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What became of everything. Utilisation is the mean over time of the cpus in use, by pool."""

    queues: tuple[QueueSummary, ...]
    end_s: float
    rounds: int
    resubmitted: int
    utilisation: tuple[tuple[str, float], ...]


class Panel(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Lines over time, which keep their value until the next point. `dashed` goes thinly with the line of its name."""

    title: str
    is_fraction: bool
    seconds: Floats
    lines: tuple[tuple[str, Floats], ...]
    dashed: tuple[tuple[str, Floats], ...] = ()


def summary(results: Results, resubmitted: int) -> Summary:
    """Sum up."""
    jobs = results.jobs
    queues = np.array(jobs.texts("queue"), np.str_)
    states = np.array(jobs.texts("state"), np.str_)
    submitted, leased, ended = (jobs.numbers(f"{what}_time") for what in ("submitted", "scheduled", "finished"))
    cpus = jobs.numbers("cpu")
    shares = _mean_shares(results)
    found = []
    for queue in sorted(set(jobs.texts("queue")) | set(results.lengths.texts("queue"))):
        own = queues == queue
        ran = own & ~np.isnan(leased)
        waits = leased[ran] - submitted[ran]
        by_state = {
            state: int((own & (states == state)).sum()) for state in (SUCCEEDED, PREEMPTED, CANCELLED, REJECTED)
        }
        found.append(
            QueueSummary(
                queue=queue,
                succeeded=by_state[SUCCEEDED],
                preempted=by_state[PREEMPTED],
                cancelled=by_state[CANCELLED],
                rejected=by_state[REJECTED],
                mean_wait_s=float(waits.mean()) if len(waits) else None,
                median_wait_s=float(np.median(waits)) if len(waits) else None,
                worst_wait_s=float(waits.max()) if len(waits) else None,
                cpu_hours=float((cpus[ran] * (ended[ran] - leased[ran])).sum() / 3_600),
                mean_share=shares.get(queue, 0.0),
            )
        )
    return Summary(
        queues=tuple(found),
        end_s=float(max(results.lengths.numbers("ts").max(initial=0.0), ended.max(initial=0.0))),
        rounds=results.rounds,
        resubmitted=resubmitted,
        utilisation=tuple(
            (panel.title.rpartition(" ")[2], _mean_over_time(panel.seconds, dict(panel.lines)["cpu"]))
            for panel in utilisation(results)
        ),
    )


def _mean_over_time(seconds: Floats, values: Floats) -> float:
    spans = np.diff(seconds)
    return float((values[:-1] * spans).sum() / spans.sum()) if len(spans) and spans.sum() > 0 else 0.0


def _mean_shares(results: Results) -> dict[str, float]:
    """Mean over time of each queue's share, of all pools added up and divided by their number."""
    pools = shares(results)
    found: dict[str, float] = {}
    for pool in pools:
        for queue, values in pool.lines:
            found[queue] = found.get(queue, 0.0) + _mean_over_time(pool.seconds, values) / len(pools)
    return found


def shares(results: Results) -> list[Panel]:
    """Return for each pool what its queues hold, and (dashed) what is their fair share."""
    return [
        Panel(
            title=f"share of pool {pool}",
            is_fraction=True,
            seconds=seconds,
            lines=_named(queues, grid["actual_share"]),
            dashed=_named(queues, grid["fair_share"]),
        )
        for pool, seconds, queues, grid in _pools(results, ("actual_share", "fair_share"))
    ]


def utilisation(results: Results) -> list[Panel]:
    """Return for each pool the parts of its cpus, memory and gpus that are in use."""
    names = ("cpu_share", "memory_share", "gpu_share")
    found = []
    for pool, seconds, _, grid in _pools(results, names):
        sums = [(name.removesuffix("_share"), grid[name].sum(axis=1)) for name in names]
        lines = tuple((name, values) for name, values in sums if name == "cpu" or values.any())
        found.append(Panel(title=f"utilisation of pool {pool}", is_fraction=True, seconds=seconds, lines=lines))
    return found


def lengths(results: Results) -> Panel:
    """Return the numbers of waiting jobs."""
    table, seconds = results.lengths, _times(results)
    values = {"queued": table.numbers("queued")}
    queues, grid = _grid(seconds, table.numbers("ts"), np.array(table.texts("queue"), np.str_), values)
    return Panel(title="waiting jobs", is_fraction=False, seconds=seconds, lines=_named(queues, grid["queued"]))


def _pools(results: Results, names: tuple[str, ...]) -> list[tuple[str, Floats, list[str], dict[str, Floats]]]:
    table, seconds = results.queues, _times(results)
    pools, queues = (np.array(table.texts(name), np.str_) for name in ("pool", "queue"))
    found = []
    for pool in sorted(set(table.texts("pool"))):
        rows = np.flatnonzero(pools == pool)
        values = {name: table.numbers(name)[rows] for name in names}
        found.append((pool, seconds, *_grid(seconds, table.numbers("ts")[rows], queues[rows], values)))
    return found


def _times(results: Results) -> Floats:
    """All times at which anything was noted: a pool has no rows when no queue has work there."""
    times: Floats = np.unique(results.lengths.numbers("ts"))
    return times


def _grid(
    times: Floats, seconds: Floats, queues: NDArray[np.str_], values: dict[str, Floats]
) -> tuple[list[str], dict[str, Floats]]:
    """Spread rows over times (T) and queues (Q): each value becomes [T, Q], 0 where there is no row."""
    at = np.searchsorted(times, seconds)
    names, who = np.unique(queues, return_inverse=True)
    grid = {}
    for name, column in values.items():
        grid[name] = np.zeros((len(times), len(names)))
        grid[name][at, who] = column
    return names.tolist(), grid


def _named(queues: list[str], grid: Floats) -> tuple[tuple[str, Floats], ...]:
    return tuple((queue, grid[:, index]) for index, queue in enumerate(queues))


def drawn(panel: Panel) -> Panel:
    """Return a panel fit for drawing: no more lines than can be told apart, no more points than can be seen."""
    lines, dashed = panel.lines, panel.dashed
    if len(lines) > MAX_LINES:
        size = {name: float(values.sum()) for name, values in lines}
        largest = sorted(size, key=lambda name: (-size[name], name))[: MAX_LINES - 1]
        lines, dashed = _gathered(lines, largest), _gathered(dashed, largest)
    step = -(-len(panel.seconds) // MAX_POINTS) or 1
    kept = np.unique(np.append(np.arange(0, len(panel.seconds), step), max(len(panel.seconds) - 1, 0)))
    if not len(panel.seconds):
        kept = kept[:0]
    return Panel(
        title=panel.title,
        is_fraction=panel.is_fraction,
        seconds=panel.seconds[kept],
        lines=tuple((name, values[kept]) for name, values in lines),
        dashed=tuple((name, values[kept]) for name, values in dashed),
    )


def _gathered(lines: tuple[tuple[str, Floats], ...], largest: list[str]) -> tuple[tuple[str, Floats], ...]:
    rest = [values for name, values in lines if name not in largest]
    kept = tuple((name, values) for name, values in lines if name in largest)
    return (*kept, (OTHERS, np.sum(rest, axis=0))) if rest else kept
