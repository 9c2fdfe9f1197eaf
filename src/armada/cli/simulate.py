"""`armada simulate`: what a scheduler's settings would do to a workload on a fleet, in virtual time."""

import math
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.model.errors import InvalidRequest

if TYPE_CHECKING:
    from armada.cli.simulating.page import Chapter
    from armada.model.policy import SchedulingPolicy
    from armada.simulation.whatif.simulation import Pace, Simulation
    from armada.simulation.whatif.specs import FleetSpec, WorkloadSpec
    from armada.simulation.whatif.traces import TraceRules

PAGE_FILE: Final = "report.html"
MAX_COMBINATIONS: Final = 1_000
_TRACES: Final = "Traces (.swf, .swf.gz)"

Clusters = Annotated[
    str, typer.Option("--clusters", metavar="GLOB", help="Files of clusters, as a quoted pattern.", show_default=False)
]
Workloads = Annotated[
    str,
    typer.Option(
        "--workloads", metavar="GLOB", help="Files of queues and jobs, or traces; each on each of the clusters."
    ),
]
Configuration = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The scheduling configuration.  [dim]\\[default: ours][/dim]"),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "--outputDir",
        metavar="DIR",
        help="Where results go.  [dim]\\[default: armada-simulation-TIME][/dim]",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", "--overwriteOutputDir", help="Write into a folder that has something in it.")
]
FastForward = Annotated[
    bool,
    typer.Option("--fast-forward", "--enableFastForward", help="Skip rounds before which nothing has changed."),
]
HardLimit = Annotated[
    float,
    typer.Option(
        "--hard-termination-minutes",
        "--hardTerminationMinutes",
        metavar="N",
        min=-1.0,
        max=5_256_000.0,
        help="Stop after so many virtual minutes; -1 means when all jobs have ended.",
    ),
]
CyclePeriod = Annotated[
    float,
    typer.Option(
        "--cycle-period-seconds",
        "--schedulerCyclePeriodSeconds",
        metavar="N",
        min=0.001,
        max=86_400.0,
        help="Virtual seconds between rounds.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="Seed of all chance, instead of the workload's randomSeed."),
]
Logs = Annotated[bool, typer.Option("--logs", "--showSchedulerLogs", help="Print a line for each cycle to stderr.")]
Profile = Annotated[
    Path | None,
    typer.Option("--profile", "--profilingFile", metavar="FILE", help="Write where time went, for Python's pstats."),
]
PodProcessors = Annotated[
    int,
    typer.Option(
        "--trace-pod-processors",
        metavar="N",
        min=0,
        help="Processors of a pod at most; larger jobs become gangs. 0 means those of the largest node.",
        rich_help_panel=_TRACES,
    ),
]
TraceMemory = Annotated[
    str,
    typer.Option(
        "--trace-memory",
        metavar="QUANTITY",
        help="Memory of a processor where the trace knows none, such as 2Gi.",
        rich_help_panel=_TRACES,
    ),
]
TraceQueues = Annotated[
    Literal["user", "group", "queue", "none"],
    typer.Option("--trace-queues", help="What of a job decides its queue.", rich_help_panel=_TRACES),
]
TraceClass = Annotated[
    str,
    typer.Option(
        "--trace-priority-class",
        metavar="NAME",
        help="Priority class of a trace's jobs.  [dim]\\[default: the configuration's][/dim]",
        rich_help_panel=_TRACES,
    ),
]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One simulation to run: a file of clusters with a file of a workload."""

    folder: Path
    fleet: "FleetSpec"
    workload: "WorkloadSpec"
    remarks: tuple[str, ...]
    seed: int


def simulate(
    *,
    clusters: Clusters,
    workloads: Workloads,
    config: Configuration = None,
    out: Output = None,
    overwrite: Overwrite = False,
    fast_forward: FastForward = False,
    hard_termination_minutes: HardLimit = -1.0,
    cycle_period_seconds: CyclePeriod = 10.0,
    seed: Seed = None,
    logs: Logs = False,
    profile: Profile = None,
    trace_pod_processors: PodProcessors = 0,
    trace_memory: TraceMemory = "0",
    trace_queues: TraceQueues = "user",
    trace_priority_class: TraceClass = "",
) -> None:
    """Simulate workloads on clusters in virtual time, decided by the scheduler of a server.

    Every file of clusters is combined with every workload. The results are two Parquet files (jobs, and how queues
    stood at every round), plots, and a page for the browser. Formats and an example are in docs/simulate.md.
    """
    _check_installed()
    try:
        from armada.cli.simulating import inputs
        from armada.model.policy import SchedulingPolicy
        from armada.simulation.whatif.traces import TraceRules

        rules = TraceRules(
            pod_processors=trace_pod_processors,
            memory_per_processor=_memory_bytes(trace_memory),
            queues_by=trace_queues,
            priority_class=trace_priority_class,
        )
        pace = _pace(cycle_period_seconds, hard_termination_minutes, fast_forward=fast_forward)
        policy = inputs.read_policy_file(config) if config is not None else SchedulingPolicy()
        folder = out if out is not None else Path(time.strftime("armada-simulation-%Y%m%d-%H%M%S"))
        orders = _orders(clusters, workloads, rules, policy, folder, seed)
        _open_folder(folder, overwrite=overwrite)
        with _profiled(profile):
            _run_all(orders, policy, pace, folder, logs=logs)
    except InvalidRequest as error:
        raise CommandFailed(str(error), ExitStatus.USAGE) from error


def _check_installed() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("numba", "numpy", "pyarrow", "matplotlib") if find_spec(name) is None]
    if missing:
        raise CommandFailed(
            f"simulations need {', '.join(missing)}: install the extra, as in pip install 'armada-queue[simulate]'"
        )


def _pace(cycle_s: float, limit_minutes: float, *, fast_forward: bool) -> "Pace":
    from armada.simulation.whatif.simulation import Pace

    if math.isnan(cycle_s) or math.isnan(limit_minutes):
        raise InvalidRequest("a number of seconds or minutes is no number: nan")
    return Pace(
        cycle_ms=max(round(cycle_s * 1_000), 1),
        fast_forward=fast_forward,
        end_ms=round(limit_minutes * 60_000) if limit_minutes >= 0 else None,
    )


def _memory_bytes(text: str) -> int:
    from armada.model.resources import INT64_MAX, NANO_PER_UNIT, parse_quantity

    try:
        amount = parse_quantity(text) // NANO_PER_UNIT
    except InvalidRequest as error:
        raise InvalidRequest(f"--trace-memory: {error}") from error
    if not 0 <= amount <= INT64_MAX // 1_000_000:
        raise InvalidRequest(f"--trace-memory: {text} is negative or too much for a processor; write such as 2Gi")
    return amount


def _orders(
    clusters: str, workloads: str, rules: "TraceRules", policy: "SchedulingPolicy", folder: Path, seed: int | None
) -> list[Order]:
    """Read all files; nothing is simulated when one is wrong."""
    from armada.cli.simulating import inputs
    from armada.simulation.whatif.traces import largest_node_processors

    fleet_files = inputs.matching(clusters, "--clusters")
    workload_files = inputs.matching(workloads, "--workloads")
    if len(fleet_files) * len(workload_files) > MAX_COMBINATIONS:
        raise InvalidRequest(
            f"{len(fleet_files)} files of clusters with {len(workload_files)} workloads each are more than"
            f" {MAX_COMBINATIONS:,} simulations: narrow a pattern"
        )
    orders: list[Order] = []
    only = len(fleet_files) == len(workload_files) == 1
    for fleet_file in fleet_files:
        fleet_remarks: list[str] = []
        fleet = inputs.read_fleet_file(fleet_file, fleet_remarks)
        own = msgspec.structs.replace(rules, pod_processors=rules.pod_processors or largest_node_processors(fleet))
        for workload_file in workload_files:
            remarks = list(fleet_remarks)
            workload = inputs.read_workload_file(workload_file, own, policy, remarks)
            name = f"{inputs.stem(fleet_file)}-{inputs.stem(workload_file)}"
            orders.append(
                Order(
                    folder=folder if only else folder / name,
                    fleet=fleet,
                    workload=workload,
                    remarks=tuple(remarks),
                    seed=seed if seed is not None else workload.seed or secrets.randbelow(2**31 - 1) + 1,
                )
            )
    taken: dict[Path, None] = {}
    for order in orders:
        if order.folder in taken:
            raise InvalidRequest(f"two combinations would write into {order.folder}: give the files different names")
        taken[order.folder] = None
    return orders


def _open_folder(folder: Path, *, overwrite: bool) -> None:
    """Make the folder of the results, before any time is spent on them."""
    if folder.exists() and not folder.is_dir():
        raise CommandFailed(f"{folder} is no folder: choose another --out")
    if folder.is_dir() and any(folder.iterdir()) and not overwrite:
        raise CommandFailed(f"{folder} is not empty: choose another --out, or add --overwrite")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandFailed(f"the results can't be written: {error}") from error


def _run_all(orders: list[Order], policy: "SchedulingPolicy", pace: "Pace", folder: Path, *, logs: bool) -> None:
    from armada.cli.simulating.page import page
    from armada.scheduling.readiness.warming import warm_up

    for remark in dict.fromkeys(remark for order in orders for remark in order.remarks):
        render.warning(remark)
    warm_up()
    chapters = [_run(order, policy, pace, logs=logs) for order in orders]
    try:
        (folder / PAGE_FILE).write_text(page(chapters), encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"the results can't be written: {error}") from error
    render.line(f"results: {folder}")


def _run(order: Order, policy: "SchedulingPolicy", pace: "Pace", *, logs: bool) -> "Chapter":
    """Run one simulation, write its files, and print what came out."""
    from armada.cli.simulating import figures, showing
    from armada.cli.simulating.page import Chapter
    from armada.simulation.whatif.simulation import Simulation

    title = f"{order.fleet.name}, {order.workload.name} (seed {order.seed})"
    simulation = Simulation(order.fleet, order.workload, policy, pace, order.seed)
    with showing.watching(title, logs=logs) as show:
        for tick in simulation.ticks():
            show(tick)
    summary = figures.summary(simulation.results, simulation.resubmitted)
    remarks = [*order.remarks, *_troubles(simulation)]
    try:
        plots = _write(simulation, order.folder)
    except OSError as error:
        raise CommandFailed(f"the results can't be written: {error}") from error
    showing.show_summary(title, summary)
    for trouble in remarks[len(order.remarks) :]:
        render.warning(trouble)
    return Chapter(title=title, summary=summary, remarks=remarks, plots=plots)


def _write(simulation: "Simulation", folder: Path) -> list[tuple[str, str]]:
    """Write tables and plots; return the plots for the page."""
    from armada.cli.simulating import figures, plots, tables

    folder.mkdir(parents=True, exist_ok=True)
    results = simulation.results
    tables.write(results, folder)
    drawings = {
        "share": figures.shares(results),
        "queue_length": [figures.lengths(results)],
        "utilisation": figures.utilisation(results),
    }
    drawn: list[tuple[str, str]] = []
    for name, panels in drawings.items():
        if panels:
            plots.write_png(panels, folder / f"{name}.png")
            drawn.append((name.replace("_", " "), plots.svg(panels)))
    return drawn


def _troubles(simulation: "Simulation") -> list[str]:
    """Say what did not go as whoever wrote the workload will have meant it."""
    from armada.cli.simulating.showing import clock
    from armada.simulation.whatif.results import CANCELLED

    found = [
        f"jobs of template {template} can never run: {reason}" for template, reason in simulation.rejections.items()
    ]
    left = simulation.results.jobs.columns["state"].count(CANCELLED)
    never = simulation.unsubmitted
    if left or never:
        at = clock(simulation.ended_ms / 1_000)
        why = "the time was up" if simulation.is_out_of_time else "nothing could change any more"
        found.append(f"{left:,} jobs had not ended and {never:,} had not been submitted when it stopped at {at}: {why}")
    return found


@contextmanager
def _profiled(file: Path | None) -> Iterator[Any]:
    if file is None:
        yield None
        return
    import cProfile

    profiler = cProfile.Profile()
    with profiler:
        yield profiler
    try:
        profiler.dump_stats(file)
    except OSError as error:
        raise CommandFailed(f"the profile can't be written: {error}") from error
