"""The control plane as one object: its parts joined around a log, opened in order."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import grpc.aio
import msgspec

from armada.control.cycle import Leader
from armada.control.explaining import Explaining
from armada.control.leasing import Roster
from armada.control.reports import Reports
from armada.control.rounds.cadence import Cadence
from armada.eventlog.port import EventLog
from armada.model.configuration import ServiceFeed
from armada.model.errors import CorruptEntry, StartupRefused
from armada.model.policy import MetricsPolicy, SchedulingPolicy
from armada.model.submission import SubmissionPolicy
from armada.runtime.exposition import TEXT_TYPE
from armada.runtime.identifiers import JobIds, host_name, replica_name
from armada.runtime.settings import Settings
from armada.runtime.supervision import Supervisor
from armada.runtime.telemetry import Log, Metrics
from armada.scheduling.readiness.warming import warm_up
from armada.server.agents import AgentLink, Agents, ExecutorApiService
from armada.server.authentication import Authenticator, refuse_open_doors
from armada.server.feeds.listening import Listening
from armada.server.following import Followers
from armada.server.leader import LeaderLoop
from armada.server.measuring.metrics_page import MetricsPage
from armada.server.operating.executors import ExecutorService, NodeService
from armada.server.operating.retries import RetryPolicyService
from armada.server.pages import Page, address_text, health_application, metrics_application, port_refused
from armada.server.queries import EventService, JobsService, LogService, LogSource, ReportingService
from armada.server.replica import Replica
from armada.server.submissions import Desk, QueueService, SubmitService
from armada.server.templates import Templates
from armada.server.upkeep.capsules import Capsules
from armada.server.upkeep.checkpoints import Checkpoints
from armada.server.upkeep.trimming import Trimming
from armada.state.ledger import Ledger
from armada.views.history import History
from armada.views.projector import Projector
from armada.wire.services import ErrorsAnswered, register, server_options

_MEGABYTE: Final = 1_000_000
_DAY_MS: Final = 86_400_000
_PRUNE_PERIOD_S: Final = 3_600.0
_PRUNE_PAUSE_S: Final = 0.1
_PRUNE_BATCH: Final = 1_000
_GRACE_S: Final = 5.0
"""Calls that are under way when the process stops may end within this time."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the control plane decides by, whom it asks, and what it shows of itself."""

    submission: SubmissionPolicy
    scheduling: SchedulingPolicy
    metrics: MetricsPolicy = MetricsPolicy()
    overrides: ServiceFeed | None = None
    bids: ServiceFeed | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the control plane keeps things; opened and closed by whoever hands it over."""

    eventlog: EventLog
    history: History


class ControlPlane:
    """A replica with its leader and all services.

    Call `start`, then `serve`; the supervisor stops both. `addresses` then says where it listens: grpc, http, metrics.
    """

    def __init__(self, settings: Settings, rules: Rules, storage: Storage, supervisor: Supervisor, log: Log) -> None:
        refuse_open_doors(settings.host, allow_anonymous_anywhere=settings.allow_anonymous_anywhere)
        self.metrics = Metrics()
        self.addresses: dict[str, str] = {}
        self._settings = settings
        self._rules = rules
        self._eventlog = storage.eventlog
        self._history = storage.history
        self._supervisor = supervisor
        self._log = log
        self._rounds = ThreadPoolExecutor(max_workers=1, thread_name_prefix="round")
        self._roster = Roster()
        self._authenticator = Authenticator()
        self._leads = False

    async def start(self) -> None:
        """Read what is stored, follow the log, take the lead. Raises StartupRefused, LogFailed."""
        warming = asyncio.get_running_loop().run_in_executor(self._rounds, warm_up)
        self._supervisor.at_stop("rounds", self._stop_rounds)
        ledger = await self._stored_ledger()
        self.replica = Replica(self._eventlog, ledger, self.metrics)
        self._templates = Templates(self._eventlog, self._history)
        self.replica.on_entry(self._templates.notice)
        await self.replica.catch_up()
        policy = self._rules.scheduling
        self._leader = Leader(policy, self._cadence(), replica_name(), self.replica.now_ms())
        self.agents = Agents(
            self.replica,
            self._roster,
            Reports(policy, self._leader.can_run(ledger)),
            self._templates,
            policy,
            max_hold_ms=self._settings.max_hold_ms,
            metrics=self.metrics,
            log=self._log,
        )
        projector = Projector(self._eventlog, self._history, ledger.effective, lambda: ledger.position)
        self.replica.after_fold(projector.notify)
        capsules = self._capsules()
        leading = LeaderLoop(
            self.replica,
            self._leader,
            self._roster,
            rounds=self._rounds,
            metrics=self.metrics,
            log=self._log,
            capsules=capsules,
        )
        self._page = MetricsPage(
            self.replica,
            self._leader,
            self._roster,
            policy=self._rules.metrics,
            scheduling=policy,
            name=host_name(),
            registry=self.metrics.registry,
        )
        self._supervisor.at_stop("metrics page", self._page.close)
        checkpoints = Checkpoints(
            self.replica,
            entries=self._settings.checkpoint_entries,
            interval_s=self._settings.checkpoint_interval_s,
            log=self._log,
        )
        self._supervisor.start("follow the log", self.replica.follow, essential=True)
        self._supervisor.at_stop("history", projector.flush)
        self._supervisor.at_stop("checkpoint", checkpoints.save)
        self._supervisor.start("history", projector.run)
        self._supervisor.start("old history", self._prune)
        self.trimming = Trimming(
            self.replica, self._history, retention_s=self._settings.event_retention_s, log=self._log
        )
        self._supervisor.start("old entries", self.trimming.run)
        self._supervisor.start("checkpoints", checkpoints.run)
        self._supervisor.start("capsules", capsules.run)
        self._supervisor.at_stop("capsules", capsules.flush)
        self._listen(leading)
        await warming
        self._supervisor.start("lead", leading.run)
        await leading.until_leading()
        self._leads = True

    def _listen(self, leading: LeaderLoop) -> None:
        """Begin to ask the services that rounds go by."""
        listening = Listening(
            self.replica,
            self._leader,
            self._rules.scheduling,
            wake=leading.wake,
            registry=self.metrics.registry,
            log=self._log,
        )
        listening.start(self._supervisor, self._rules.overrides, self._rules.bids)

    def _capsules(self) -> Capsules:
        return Capsules(
            self.replica,
            self._settings.data_dir / "capsules",
            rounds=self._settings.keep_capsules,
            limit_bytes=self._settings.capsule_limit_mb * _MEGABYTE,
            log=self._log,
        )

    def _cadence(self) -> Cadence:
        settings = self._settings
        return Cadence(
            round_delay_ms=settings.round_delay_ms,
            schedule_period_ms=settings.schedule_period_ms,
            executor_timeout_ms=settings.executor_timeout_ms,
            node_timeout_ms=settings.node_timeout_ms,
            fleet_settle_ms=settings.fleet_settle_ms,
        )

    async def _stored_ledger(self) -> Ledger:
        checkpoint = await self._eventlog.latest_checkpoint()
        if checkpoint is None:
            return Ledger(self._rules.scheduling)
        try:
            return Ledger.from_bytes(checkpoint.payload, self._rules.scheduling)
        except CorruptEntry as error:
            held = await self._eventlog.read(0, 1)
            if held and held[0].position > 1:
                raise StartupRefused(
                    f"the checkpoint can't be used ({error}), and the log was trimmed: it begins at entry "
                    f"{held[0].position}. Start the release that wrote the checkpoint, or restore a backup"
                ) from error
            self._log.warning("the checkpoint can't be used: reading the log from its beginning", reason=str(error))
            return Ledger(self._rules.scheduling)

    async def _stop_rounds(self) -> None:
        self._rounds.shutdown(wait=False, cancel_futures=True)

    async def _prune(self) -> None:
        """Let jobs that ended long ago leave the history."""
        while True:
            before_ms = self.replica.now_ms() - self._settings.history_retention_days * _DAY_MS
            removed = await self._history.prune(before_ms, batch=_PRUNE_BATCH)
            await asyncio.sleep(_PRUNE_PAUSE_S if removed == _PRUNE_BATCH else _PRUNE_PERIOD_S)

    def link(self, executor_id: str) -> AgentLink:
        """Return the control plane as an executor in this process sees it."""
        return self.agents.link(executor_id)

    async def serve(self, read_output: LogSource) -> None:
        """Open the ports. Raises StartupRefused when one can't be had."""
        await self._serve_grpc(read_output)
        for name, application, port in (
            ("http", health_application(self._unhealthy), self._settings.http_port),
            ("metrics", metrics_application(self._page.content, TEXT_TYPE), self._metrics_port()),
        ):
            page = Page(name, application)
            await page.open(self._settings.host, port)
            self._supervisor.at_stop(name, page.close)
            self.addresses[name] = page.address

    def _metrics_port(self) -> int:
        """The port of the process's own settings, else that of the section `metrics`, as the reference has it."""
        port = self._rules.metrics.port
        is_set = "metrics_port" in self._settings.model_fields_set
        return self._settings.metrics_port if is_set or port is None else port

    def _unhealthy(self) -> str:
        return "" if self._leads else "the log is being read"

    async def _serve_grpc(self, read_output: LogSource) -> None:
        answered = ErrorsAnswered(self._crashed)
        server = grpc.aio.server(interceptors=[answered], options=server_options())
        desk = Desk(self.replica, self._authenticator, self._rules.submission, self._rules.scheduling, self.metrics)
        followers = Followers(self.replica, self.metrics, self._settings.max_streams)
        register(
            server,
            SubmitService(desk, JobIds()),
            QueueService(desk),
            RetryPolicyService(desk),
            ExecutorService(desk),
            NodeService(desk),
            EventService(self.replica, followers, self._authenticator),
            JobsService(self.replica, self._history, self._authenticator),
            ReportingService(Explaining(self._leader), self.replica, self._authenticator),
            LogService(read_output, self._authenticator),
            ExecutorApiService(self.agents, self._authenticator, self._rules.scheduling),
        )
        host, port = self._settings.host, self._settings.grpc_port
        try:
            bound = server.add_insecure_port(address_text(host, port))
        except RuntimeError as error:
            await server.stop(None)
            raise StartupRefused(port_refused("grpc", host, port, "it is in use or not allowed")) from error
        await server.start()

        async def stop() -> None:
            answered.end_streams()
            await server.stop(_GRACE_S)

        self._supervisor.at_stop("grpc", stop)
        self.addresses["grpc"] = address_text(host, bound)

    def _crashed(self, method: str, request_id: str, error: BaseException) -> None:
        self._log.error("a call failed unexpectedly", method=method, request=request_id, exc_info=error)
