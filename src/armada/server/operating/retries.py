"""`api.RetryPolicyService`: retry policies, kept as facts like queues."""

from typing import Any

from armada.control.commands import retry_policies
from armada.server.submissions import Desk
from armada.wire.operating.retries import retry_policy, retry_policy_list, retry_policy_message
from armada.wire.services import RetryPolicyServicer, empty

# ruff: noqa: N802, D102 - methods carry the API's names, and the API says what they do

Context = Any
"""A gRPC call's context (grpc.aio.ServicerContext of whatever messages)."""


class RetryPolicyService(RetryPolicyServicer):
    """Create, replace, delete and show retry policies; whoever may call at all may see them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def CreateRetryPolicy(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(retry_policies.create(at, retry_policy(request)))
        return empty()

    async def UpdateRetryPolicy(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(retry_policies.update(at, retry_policy(request)))
        return empty()

    async def DeleteRetryPolicy(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        await self._desk.store(retry_policies.delete(at, request.name))
        return empty()

    async def GetRetryPolicy(self, request: Any, context: Context) -> Any:
        at = await self._desk.situation(context)
        return retry_policy_message(retry_policies.named(at.ledger, request.name))

    async def GetRetryPolicies(self, request: Any, context: Context) -> Any:
        del request
        at = await self._desk.situation(context)
        return retry_policy_list(retry_policies.listing(at.ledger))
