"""The only place where concrete parts are chosen and joined: what runs in `armada up`, `server` and `executor`.

Parts are imported late: an executor loads no scheduler, and nobody loads a cluster that is not asked for.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from armada.model.errors import CorruptEntry, InvalidRequest, LogFailed, StartupRefused
from armada.model.fleet import Taint
from armada.runtime.settings import Settings
from armada.runtime.supervision import Supervisor
from armada.runtime.telemetry import ExecutorCounts, Log, make_log, show_executors

if TYPE_CHECKING:
    from armada.executor.service import ControlPlane as ControlPlaneLink
    from armada.executor.service import ExecutorService
    from armada.server.process import ControlPlane, Rules
    from armada.server.queries import LogSource
    from armada.simulation.fleet import ClusterSpec, Fleet

# ruff: noqa: PLC0415 - parts are imported where they are chosen

MACHINE = "machine"
"""Executor id of this machine's own cluster, unless settings name another."""
MACHINE_LABEL = "armadaproject.io/processes"
"""Label of nodes that run containers as host processes; with simulated clusters beside them, also a taint."""
HISTORY_FILE = "history.db"
POD_RETENTION_MS = 86_400_000
"""How long this machine keeps the output of finished pods (as long as there are not too many)."""

OnReady = Callable[[Mapping[str, str]], None]
"""Told once, when everything answers, what was bound: grpc, http, metrics, data, clusters."""


def up(settings: Settings, on_ready: OnReady) -> int:
    """Run everything in one process until a signal comes; return the exit status. Raises StartupRefused."""
    return asyncio.run(_up(settings, on_ready))


def serve(settings: Settings, on_ready: OnReady) -> int:
    """Run the control plane alone, as `up`."""
    return asyncio.run(_serve(settings, on_ready))


def execute(settings: Settings, on_ready: OnReady) -> int:
    """Run executors alone, against the control plane at `server_url`, as `up`."""
    return asyncio.run(_execute(settings, on_ready))


@dataclass
class Running:
    """A control plane that serves, and the executors that run beside it."""

    control_plane: "ControlPlane"
    supervisor: Supervisor
    log: Log
    executors: dict[str, "ExecutorService"] = field(default_factory=dict)

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where it listens: grpc, http, metrics."""
        return self.control_plane.addresses

    @property
    def grpc_address(self) -> str:
        """Where clients find all gRPC services."""
        return self.control_plane.addresses["grpc"]


@contextlib.asynccontextmanager
async def serving(settings: Settings, *, in_memory: bool = False) -> AsyncIterator[Running]:
    """Open a control plane, without executors and signal handlers, and close it again.

    With `in_memory` nothing of the log is kept. Raises StartupRefused.
    """
    from armada.eventlog.sqlite import SqliteEventLog
    from armada.server.authentication import refuse_open_doors
    from armada.server.process import ControlPlane, Storage
    from armada.views.history import History

    log = make_log(settings.log_level, settings.log_format)
    supervisor = Supervisor(log, settings.shutdown_limit_ms)
    # What is wrong with the settings is said before anything is touched.
    refuse_open_doors(settings.host, allow_anonymous_anywhere=settings.allow_anonymous_anywhere)
    rules = rules_of(settings)
    try:
        eventlog = SqliteEventLog.open(None if in_memory else settings.data_dir)
        supervisor.at_stop("log", eventlog.close)
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        history = History.open(settings.data_dir / HISTORY_FILE)
        supervisor.at_stop("history", history.close)
        control_plane = ControlPlane(settings, rules, Storage(eventlog, history), supervisor, log)
        try:
            await control_plane.start()
        except (LogFailed, CorruptEntry) as error:
            raise StartupRefused(f"data folder {settings.data_dir}: {error}") from error
        running = Running(control_plane, supervisor, log)
        await control_plane.serve(_read_output(running))
        yield running
    finally:
        await supervisor.close()


def rules_of(settings: Settings) -> "Rules":
    """Read the rules out of the settings; raises StartupRefused that names what is wrong."""
    from armada.model.configuration import bid_feed, metrics_policy, override_feed, scheduling_policy
    from armada.model.policy import SchedulingPolicy
    from armada.model.submission import SubmissionPolicy, parse_submission_policy
    from armada.server.process import Rules

    try:
        scheduling = scheduling_policy(settings.scheduling) if settings.scheduling else SchedulingPolicy()
    except InvalidRequest as error:
        raise StartupRefused(f"settings, section scheduling: {error}") from error
    try:
        metrics = metrics_policy(settings.metrics)
    except InvalidRequest as error:
        raise StartupRefused(f"settings, section metrics: {error}") from error
    try:
        overrides = override_feed(settings.priority_override, "priorityOverride")
        bids = bid_feed(settings.pricing_api, "pricingApi")
    except InvalidRequest as error:
        raise StartupRefused(f"settings: {error}") from error
    section = dict(settings.submission)
    # A class that rounds know may be submitted, unless the operator lists those that may.
    known = dict.fromkeys(
        [*SubmissionPolicy().allowed_priority_class_names, *(c.name for c in scheduling.priority_classes)]
    )
    section.setdefault("allowedPriorityClassNames", list(known))
    section.setdefault("defaultPriorityClassName", scheduling.default_priority_class)
    return Rules(
        submission=parse_submission_policy(section),
        scheduling=scheduling,
        metrics=metrics,
        overrides=overrides,
        bids=bids,
    )


async def _up(settings: Settings, on_ready: OnReady) -> int:
    fleet = _simulated_fleet(settings)
    async with serving(settings) as running:
        running.supervisor.stop_on_signals()
        await _start_machine(settings, running, beside_simulation=fleet is not None)
        if fleet is not None:
            for spec in fleet.clusters:
                link = running.control_plane.link(spec.executor_id)
                service = _simulated_service(spec, fleet.seed, link)
                await _start(running.supervisor, running.executors, spec.executor_id, service)
        show_executors(running.control_plane.metrics.registry, lambda: _figures(running.executors))
        shown = {"data": str(settings.data_dir.resolve()), "clusters": ", ".join(running.executors)}
        on_ready({**running.addresses, **shown})
        return await _until_stopped(running.supervisor)


async def _serve(settings: Settings, on_ready: OnReady) -> int:
    async with serving(settings) as running:
        running.supervisor.stop_on_signals()
        on_ready({**running.addresses, "data": str(settings.data_dir.resolve())})
        return await _until_stopped(running.supervisor)


async def _execute(settings: Settings, on_ready: OnReady) -> int:
    import grpc.aio

    from armada.executor.link import GrpcControlPlane
    from armada.wire.services import channel_options

    log = make_log(settings.log_level, settings.log_format)
    supervisor = Supervisor(log, settings.shutdown_limit_ms)
    supervisor.stop_on_signals()
    executors: dict[str, ExecutorService] = {}
    channel = grpc.aio.insecure_channel(
        settings.server_url, options=channel_options(), compression=grpc.Compression.Gzip
    )

    async def close_channel() -> None:
        await channel.close()

    supervisor.at_stop("channel", close_channel)
    try:
        fleet = _fleet_of_file(settings.simulate_file) if settings.simulate_file else _simulated_fleet(settings)
        if fleet is None:
            executor_id = settings.executor_id or MACHINE
            service = _machine_service(settings, executor_id, GrpcControlPlane(channel, executor_id), tainted=False)
            await _start(supervisor, executors, executor_id, service)
        else:
            for spec in fleet.clusters:
                service = _simulated_service(spec, fleet.seed, GrpcControlPlane(channel, spec.executor_id))
                await _start(supervisor, executors, spec.executor_id, service)
        shown = {"server": settings.server_url, "clusters": ", ".join(executors)}
        if "metrics_port" in settings.model_fields_set:
            shown["metrics"] = await _executors_page(settings, supervisor, executors)
        on_ready(shown)
        return await _until_stopped(supervisor)
    finally:
        await supervisor.close()


def _figures(executors: Mapping[str, "ExecutorService"]) -> Mapping[str, ExecutorCounts]:
    return {executor_id: service.figures() for executor_id, service in executors.items()}


async def _executors_page(
    settings: Settings, supervisor: Supervisor, executors: Mapping[str, "ExecutorService"]
) -> str:
    """Open the metrics page of a process that has executors only; return its address."""
    from prometheus_client import CollectorRegistry

    from armada.server.pages import Page, registry_application

    registry = CollectorRegistry()
    show_executors(registry, lambda: _figures(executors))
    page = Page("metrics", registry_application(registry))
    await page.open(settings.host, settings.metrics_port)
    supervisor.at_stop("metrics", page.close)
    return page.address


async def _until_stopped(supervisor: Supervisor) -> int:
    await supervisor.until_stopped()
    return 1 if supervisor.failure is not None else 0


async def _start_machine(settings: Settings, running: Running, *, beside_simulation: bool) -> None:
    executor_id = settings.executor_id or MACHINE
    link = running.control_plane.link(executor_id)
    service = _machine_service(settings, executor_id, link, tainted=beside_simulation)
    await _start(running.supervisor, running.executors, executor_id, service)


async def _start(
    supervisor: Supervisor, executors: dict[str, "ExecutorService"], executor_id: str, service: "ExecutorService"
) -> None:
    await service.start()
    executors[executor_id] = service
    supervisor.start(f"executor {executor_id}", service.run)
    supervisor.at_stop(f"executor {executor_id}", service.stop)


def _machine_service(
    settings: Settings, executor_id: str, link: "ControlPlaneLink", *, tainted: bool
) -> "ExecutorService":
    """This machine as a cluster whose containers are host processes."""
    from armada.executor.clock import steady_clock_ms, wall_clock_ms
    from armada.executor.holding.retention import RetentionLimits
    from armada.executor.holding.stimuli import AgentSettings
    from armada.executor.journal import Journal
    from armada.executor.machine.node import ProcessSettings
    from armada.executor.processes import ProcessCluster
    from armada.executor.service import ExecutorService

    taints = (Taint(MACHINE_LABEL, "true", "NoSchedule"),) if tainted else ()
    cluster = ProcessCluster(
        settings.data_dir / "pods",
        executor_id=executor_id,
        pool=settings.pool,
        clock_ms=steady_clock_ms,
        settings=ProcessSettings(labels={MACHINE_LABEL: "true"}, taints=taints),
    )
    return ExecutorService(
        cluster=cluster,
        control_plane=link,
        settings=AgentSettings(
            executor_id=executor_id,
            pool=settings.pool,
            retention=RetentionLimits(succeeded_ms=POD_RETENTION_MS, failed_ms=POD_RETENTION_MS),
        ),
        journal=Journal(settings.data_dir / f"executor-{executor_id}.journal"),
        clock_ms=steady_clock_ms,
        wall_ms=wall_clock_ms,
    )


def _simulated_service(spec: "ClusterSpec", seed: int, link: "ControlPlaneLink") -> "ExecutorService":
    """A cluster that only pretends. It ends with this process, so it remembers nothing: its runs start over."""
    from armada.executor.clock import steady_clock_ms, wall_clock_ms
    from armada.executor.holding.retention import RetentionLimits
    from armada.executor.holding.stimuli import AgentSettings
    from armada.executor.paced import PacedCluster
    from armada.executor.service import ExecutorService
    from armada.simulation.cluster import SimulatedCluster

    return ExecutorService(
        cluster=PacedCluster(SimulatedCluster(spec, seed), steady_clock_ms),
        control_plane=link,
        settings=AgentSettings(
            executor_id=spec.executor_id,
            pool=spec.pool,
            keeps_journal=False,
            retention=RetentionLimits(pod_count=0),
        ),
        clock_ms=steady_clock_ms,
        wall_ms=wall_clock_ms,
    )


def _simulated_fleet(settings: Settings) -> "Fleet | None":
    """Read CLUSTERSxNODES; None when no cluster is to be simulated."""
    text = settings.simulate.strip().lower()
    if not text:
        return None
    clusters, cross, nodes = text.partition("x")
    if not (cross and clusters.isascii() and clusters.isdigit() and nodes.isascii() and nodes.isdigit()):
        raise StartupRefused(f"simulate: {settings.simulate!r} is not of the form CLUSTERSxNODES, such as 3x20")
    if int(clusters) == 0 or int(nodes) == 0:
        return None
    from armada.simulation.fleet import uniform_fleet

    try:
        return uniform_fleet(int(clusters), int(nodes), pool=settings.pool, seed=settings.simulation_seed)
    except InvalidRequest as error:
        raise StartupRefused(f"simulate: {error}") from error


def _fleet_of_file(path: Path) -> "Fleet":
    from armada.simulation.fleet import read_fleet

    try:
        return read_fleet(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidRequest) as error:
        raise StartupRefused(f"simulation file {path}: {error}") from error


def _read_output(running: Running) -> "LogSource":
    """Read output of jobs' pods at the executors of this process."""
    from armada.executor.output import PodOutput

    def executors_of(job_id: str) -> "Iterable[ExecutorService]":
        """The executor of the job's current run, where it is known and here, else all."""
        ledger = running.control_plane.replica.ledger
        job = ledger.job(job_id)
        head = ledger.run_head(job.run_id) if job is not None and job.run_id else None
        if head is not None and head.executor_id in running.executors:
            return (running.executors[head.executor_id],)
        return running.executors.values()

    return PodOutput(executors_of).read
