"""`api.Executor` and `api.Node`: cordon and forget executors, end what runs on an executor or node."""

from typing import Any

from armada.control.commands import operating
from armada.server.submissions import Desk
from armada.wire.operating.executors import jobs_on_executor, jobs_on_node
from armada.wire.services import ExecutorServicer, NodeServicer, empty

# ruff: noqa: N802, D102 - methods carry the API's names, and the API says what they do

Context = Any
"""A gRPC call's context (grpc.aio.ServicerContext of whatever messages)."""


class ExecutorService(ExecutorServicer):
    """Operations on executors."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def UpsertExecutorSettings(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        facts = operating.change_settings(at, request.name, request.cordonReason, cordoned=request.cordoned)
        await self._desk.store(facts)
        return empty()

    async def DeleteExecutorSettings(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(operating.delete_settings(at, request.name))
        return empty()

    async def PreemptOnExecutor(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(operating.preempt_on_place(at, jobs_on_executor(request)))
        return empty()

    async def CancelOnExecutor(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(operating.cancel_on_place(at, jobs_on_executor(request)))
        return empty()

    async def DeleteExecutor(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(operating.delete_executor(at, request.name))
        return empty()


class NodeService(NodeServicer):
    """Operations on nodes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def PreemptOnNode(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(operating.preempt_on_place(at, jobs_on_node(request)))
        return empty()

    async def CancelOnNode(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(operating.cancel_on_place(at, jobs_on_node(request)))
        return empty()
