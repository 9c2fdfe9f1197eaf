"""A connection to one server: calls with deadline, retries and credentials; every failure as one clear text.

gRPC and the message classes are imported when the first call is made. Retries are safe because everything the
command line sends may be repeated: submissions carry client ids, all other calls say what should be true.
"""

import base64
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.targets import BasicCredentials, ExecCredentials, Target

CALL_DEADLINE_S: Final = 10.0
LISTING_DEADLINE_S: Final = 30.0
SUBMIT_DEADLINE_S: Final = 60.0
ATTEMPTS: Final = 5
FIRST_PAUSE_S: Final = 0.2
LARGEST_REPLY_BYTES: Final = 64 * 1024 * 1024

_RETRIED: Final = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
_STATUS: Final = {
    "UNAVAILABLE": ExitStatus.UNREACHABLE,
    "DEADLINE_EXCEEDED": ExitStatus.UNREACHABLE,
    "NOT_FOUND": ExitStatus.NOT_FOUND,
    "UNAUTHENTICATED": ExitStatus.DENIED,
    "PERMISSION_DENIED": ExitStatus.DENIED,
}


class CallFailed(CommandFailed):
    """The server's answer to a call was an error; `code` is its gRPC name."""

    def __init__(self, message: str, code: str, *, hint: str = "") -> None:
        super().__init__(message, _STATUS.get(code, ExitStatus.FAILED), hint=hint)
        self.code = code


class Connection:
    """One channel to one target, opened at the first use; also a place to find the services' stubs.

    The attributes ending in `_service` are the generated stubs; pass their methods to `call` and `stream`.
    """

    def __init__(self, target: Target, *, pause: Callable[[float], None] = time.sleep) -> None:
        self.target = target
        self._pause = pause

    @cached_property
    def channel(self) -> Any:
        """The open `grpc.Channel`. gRPC itself never writes to the terminal."""
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        import grpc

        options = (
            ("grpc.max_receive_message_length", LARGEST_REPLY_BYTES),
            ("grpc.max_send_message_length", LARGEST_REPLY_BYTES),
            ("grpc.keepalive_time_ms", 120_000),
            ("grpc.keepalive_timeout_ms", 20_000),
        )
        if self.target.plaintext:
            return grpc.insecure_channel(self.target.url, options=options, compression=grpc.Compression.Gzip)
        secure = grpc.ssl_channel_credentials()
        return grpc.secure_channel(self.target.url, secure, options=options, compression=grpc.Compression.Gzip)

    def close(self) -> None:
        """Close the channel, if it was ever opened."""
        if "channel" in self.__dict__:
            self.channel.close()

    @cached_property
    def submit_service(self) -> Any:
        """`api.Submit`: jobs, and queues as the older clients know them."""
        from armada.wire.services import SubmitStub

        return SubmitStub(self.channel)

    @cached_property
    def queue_service(self) -> Any:
        """`api.QueueService`."""
        from armada.wire.services import QueueStub

        return QueueStub(self.channel)

    @cached_property
    def retry_service(self) -> Any:
        """`api.RetryPolicyService`."""
        from armada.wire.services import RetryPolicyStub

        return RetryPolicyStub(self.channel)

    @cached_property
    def executor_service(self) -> Any:
        """`api.Executor`."""
        from armada.wire.services import ExecutorStub

        return ExecutorStub(self.channel)

    @cached_property
    def node_service(self) -> Any:
        """`api.Node`."""
        from armada.wire.services import NodeStub

        return NodeStub(self.channel)

    @cached_property
    def event_service(self) -> Any:
        """`api.Event`."""
        from armada.wire.services import EventStub

        return EventStub(self.channel)

    @cached_property
    def jobs_service(self) -> Any:
        """`api.Jobs`."""
        from armada.wire.services import JobsStub

        return JobsStub(self.channel)

    @cached_property
    def logs_service(self) -> Any:
        """`binoculars.Binoculars`."""
        from armada.wire.services import LogStub

        return LogStub(self.channel)

    @cached_property
    def report_service(self) -> Any:
        """`schedulerobjects.SchedulerReporting`."""
        from armada.wire.services import ReportingStub

        return ReportingStub(self.channel)

    def call(self, method: Any, request: Any, *, deadline_s: float = CALL_DEADLINE_S) -> Any:
        """Make a unary call, again after UNAVAILABLE and RESOURCE_EXHAUSTED, with growing pauses.

        Raises:
            CallFailed: the server refused, failed, or could not be reached.
        """
        return self._insisted(lambda: method(request, timeout=deadline_s, metadata=self._metadata()))

    def gathered(self, method: Any, request: Any, *, deadline_s: float = LISTING_DEADLINE_S) -> list[Any]:
        """All messages of a stream that ends by itself; tried again from its beginning as `call` is.

        Raises:
            CallFailed: as for `call`.
        """
        found: list[Any] = self._insisted(lambda: list(method(request, timeout=deadline_s, metadata=self._metadata())))
        return found

    def _insisted(self, attempt: Callable[[], Any]) -> Any:
        import grpc

        pause_s = FIRST_PAUSE_S
        for number in range(1, ATTEMPTS + 1):
            try:
                return attempt()
            except grpc.RpcError as error:
                code = error.code().name
                final = code not in _RETRIED or "larger than max" in (error.details() or "")
                if final or number == ATTEMPTS:
                    raise self.failure(error) from error
            self._pause(pause_s)
            pause_s *= 2
        raise AssertionError("the last attempt returns or raises")

    def stream(self, method: Any, request: Any, *, deadline_s: float | None = None) -> Iterator[Any]:
        """Read a server stream to its end, without retries; leaving the loop early cancels the call.

        Raises:
            CallFailed: as for `call`.
        """
        import grpc

        answers = method(request, timeout=deadline_s, metadata=self._metadata())
        try:
            yield from answers
        except grpc.RpcError as error:
            raise self.failure(error) from error
        finally:
            answers.cancel()

    def failure(self, error: Any) -> CallFailed:
        """What a gRPC error means to the person who gave the command."""
        code = error.code().name
        details = (error.details() or "").strip()
        url = self.target.url
        if code == "UNAVAILABLE":
            return CallFailed(
                f"can't reach the server at {url}: {_network_cause(details)}",
                code,
                hint="Is it running (`armada up`), and is the address right (--armadaUrl, or `armadactl config`)?",
            )
        if code == "DEADLINE_EXCEEDED":
            return CallFailed(f"the server at {url} did not answer in time", code)
        if code == "UNIMPLEMENTED":
            return CallFailed(f"the server at {url} does not offer this: {details}", code)
        return CallFailed(details or code, code)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        credentials = self.target.credentials
        if isinstance(credentials, BasicCredentials):
            pair = f"{credentials.username}:{credentials.password}".encode()
            return (("authorization", f"Basic {base64.b64encode(pair).decode()}"),)
        if isinstance(credentials, ExecCredentials):
            return (("authorization", f"Bearer {_token(credentials)}"),)
        return ()


def _network_cause(details: str) -> str:
    """The part of gRPC's text that a person can use."""
    lowered = details.lower()
    for known in ("connection refused", "name resolution", "dns resolution failed", "timed out", "certificate"):
        if known in lowered:
            return known
    return details or "no connection"


def _token(credentials: ExecCredentials) -> str:
    import subprocess

    environment = {**os.environ, **dict(credentials.environment)}
    name = credentials.command[0]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own configuration names this command
            credentials.command,
            env=environment,
            stdin=None if credentials.interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sys.stderr if credentials.interactive else subprocess.PIPE,
            check=False,
        )
    except OSError as error:
        raise CommandFailed(f"can't run the credentials command {name}: {error}", ExitStatus.DENIED) from error
    if done.returncode != 0:
        said = (done.stderr or b"").decode(errors="replace").strip()
        text = f"the credentials command {name} ended with status {done.returncode}"
        raise CommandFailed(f"{text}: {said}" if said else text, ExitStatus.DENIED)
    token = done.stdout.decode(errors="replace").strip()
    if not token:
        raise CommandFailed(f"the credentials command {name} printed no token", ExitStatus.DENIED)
    return token
