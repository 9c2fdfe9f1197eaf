"""The control plane over gRPC: `executorapi.ExecutorApi` of this server or of a foreign one."""

from typing import Any, Final

import grpc
import grpc.aio
import structlog

from armada.executor.clock import wall_clock_ms
from armada.model.errors import Unavailable
from armada.model.events import Failure, JobSetEvents, RunFailed
from armada.model.leases import LeaseReply, LeaseRequest
from armada.wire.agents import HOLD_METADATA, LeaseReplyReader, RefusedLease, lease_request_message
from armada.wire.reports import EXECUTOR_METADATA, report_messages
from armada.wire.services import ExecutorApiStub, channel_options, error_from

LEASE_DEADLINE_S: Final = 25.0
"""An exchange must be answered within this long after the time for which the server may hold it."""
REPORT_DEADLINE_S: Final = 30.0

_logger = structlog.get_logger("armada.executor")


class GrpcControlPlane:
    """Implements `ControlPlane` for one executor on a channel that it doesn't own."""

    def __init__(self, channel: grpc.aio.Channel, executor_id: str, metadata: tuple[tuple[str, str], ...] = ()) -> None:
        """`metadata` goes with every call (credentials)."""
        self._stub = ExecutorApiStub(channel)
        self._executor_id = executor_id
        self._metadata = (*metadata, (EXECUTOR_METADATA, executor_id))

    @staticmethod
    def channel(address: str, credentials: grpc.ChannelCredentials | None = None) -> grpc.aio.Channel:
        """Make a channel to `host:port`, encrypted when there are credentials."""
        options = channel_options()
        compression = grpc.Compression.Gzip
        if credentials is None:
            return grpc.aio.insecure_channel(address, options=options, compression=compression)
        return grpc.aio.secure_channel(address, credentials, options=options, compression=compression)

    async def lease(self, request: LeaseRequest, hold_ms: int = 0) -> LeaseReply:
        """One exchange; leases that can't be read are reported as failed. Raises errors of model.errors."""
        reader = LeaseReplyReader()
        reply: LeaseReply | None = None
        metadata = (*self._metadata, (HOLD_METADATA, str(hold_ms))) if hold_ms else self._metadata
        call = self._stub.LeaseJobRuns(metadata=metadata, timeout=hold_ms / 1000 + LEASE_DEADLINE_S)
        try:
            await call.write(lease_request_message(request))
            await call.done_writing()
            async for message in call:
                reply = reader.feed(message) or reply
        except grpc.aio.AioRpcError as error:
            raise error_from(error) from error
        finally:
            call.cancel()
        if reply is None:
            raise Unavailable("the lease exchange ended without its end mark")
        if reader.refused:
            await self._report_refused(reader.refused)
        return reply

    async def report(self, sequences: tuple[JobSetEvents, ...]) -> None:
        """Deliver facts, in as many messages as it takes. Raises errors of model.errors."""
        try:
            for message in report_messages(sequences):
                await self._send(message)
        except grpc.aio.AioRpcError as error:
            raise error_from(error) from error

    async def _send(self, message: Any) -> None:
        await self._stub.ReportEvents(message, metadata=self._metadata, timeout=REPORT_DEADLINE_S)

    async def _report_refused(self, refused: list[RefusedLease]) -> None:
        """A lease that can't be read would come again for ever: its run failed."""
        sequences = []
        for lease in refused:
            if not (lease.run_id and lease.job_id and lease.queue and lease.job_set):
                _logger.warning("an unreadable lease was dropped", executor=self._executor_id, reason=lease.reason)
                continue
            failure = Failure(
                reason=f"the lease can't be read: {lease.reason}",
                category="internal",
                subcategory="job-creation-failed",
            )
            fact = RunFailed(at_ms=wall_clock_ms(), job_id=lease.job_id, run_id=lease.run_id, failure=failure)
            sequences.append(JobSetEvents(lease.queue, lease.job_set, (fact,)))
        if sequences:
            await self.report(tuple(sequences))
