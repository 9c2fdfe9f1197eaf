"""A server in this process for one file of recordings."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import grpc.aio

from armada.eventlog.sqlite import SqliteEventLog
from armada.model.errors import NotFound
from armada.model.policy import SchedulingPolicy
from armada.model.submission import SubmissionPolicy
from armada.runtime.settings import Settings
from armada.runtime.supervision import Supervisor
from armada.runtime.telemetry import make_log
from armada.server.process import ControlPlane, Rules, Storage
from armada.views.history import History
from armada.wire.services import channel_options
from tests.vectors.api.calls import Api
from tests.vectors.api.playing import Player

Play = Callable[[Player], Awaitable[None]]


def played(play: Play, *, policy: SchedulingPolicy | None = None, **settings: Any) -> Player:
    """Start a server without executors, let `play` play on it, stop it, and return the player with what it found."""
    return asyncio.run(_played(play, policy or SchedulingPolicy(), settings))


async def _no_log(*_: object, **__: object) -> Sequence[tuple[str, str]]:
    raise NotFound("nothing runs here")


async def _played(play: Play, policy: SchedulingPolicy, changes: dict[str, Any]) -> Player:
    log = make_log("error", "json")
    supervisor = Supervisor(log, 5_000)
    with tempfile.TemporaryDirectory() as folder:
        values: dict[str, Any] = {
            "data_dir": Path(folder),
            "grpc_port": 0,
            "http_port": 0,
            "metrics_port": 0,
            "fleet_settle_ms": 0,
        }
        settings = Settings(**(values | changes))
        eventlog = SqliteEventLog.open(None)
        history = History.open(Path(folder) / "history.db")
        rules = Rules(submission=SubmissionPolicy(), scheduling=policy)
        plane = ControlPlane(settings, rules, Storage(eventlog, history), supervisor, log)
        try:
            await plane.start()
            await plane.serve(_no_log)
            async with grpc.aio.insecure_channel(plane.addresses["grpc"], options=channel_options()) as channel:
                player = Player(Api(channel))
                await play(player)
        finally:
            await supervisor.close()
            await history.close()
            await eventlog.close()
    return player
