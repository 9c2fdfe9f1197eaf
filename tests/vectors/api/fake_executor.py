"""An executor of two nodes that speaks the protocol as the recordings' one did, some twenty times as fast.

What becomes of a pod is said by its image: `r/fail-CODE-REASON` ends with that exit code and reason, `r/reject-fatal`
and `r/reject-transport` are refused for good, `r/reject-retry` is handed back; all others succeed after the seconds
that their command names.
"""

import asyncio
import contextlib
import re
import time
import uuid
from typing import Any, Final

import grpc.aio
from google.protobuf.json_format import ParseDict

from armada._proto import events_pb2 as armadaevents
from armada._proto import executor_pb2 as executorapi
from armada.wire import services
from armada.wire.times import stamp

EXECUTOR: Final = "fake-cluster"
NODES: Final = tuple(f"{EXECUTOR}-fake-node-{number}" for number in range(2))
SECOND_S: Final = 0.05
"""How long a second of a pod lasts here."""

_SLEEP: Final = re.compile(r"\+ (\d+) \)\)")
_TOTAL: Final = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi"}
_HELD_BACK: Final = {"cpu": "1", "memory": "200Mi"}
_OUTCOMES: Final = {"OOMKilled": armadaevents.OOM, "Evicted": armadaevents.Evicted}
_DEADLINE: Final = "DeadlineExceeded"
CATEGORIES: Final = {137: ("mem", "oom"), 3: ("user", "exit3")}


class FakePod:
    """A pod of one lease."""

    def __init__(self, lease: executorapi.JobRunLease) -> None:
        spec = lease.job.mainObject.pod_spec.pod_spec
        self.run_id = lease.job_run_id
        self.job_id = lease.job.job_id
        self.queue = lease.queue
        self.job_set = lease.jobset
        self.node = spec.nodeSelector["kubernetes.io/hostname"]
        self.image = spec.containers[0].image if spec.containers else ""
        slept = _SLEEP.search(" ".join(spec.containers[0].args)) if spec.containers else None
        self.lasts_s = int(slept.group(1)) * SECOND_S if slept else 0.0
        self.has_services = bool(lease.job.objects)
        self.uid = str(uuid.uuid4())
        self.namespace = lease.job.objectMeta.namespace
        self.pool = lease.job.objectMeta.annotations["armadaproject.io/pool"]
        self.state = "PENDING"
        self.task: asyncio.Task[None] | None = None

    def described(self, *, on_node: bool = True, with_uid: bool = True) -> dict[str, Any]:
        """The pod as reports name it."""
        metadata = {"executorId": EXECUTOR, "namespace": self.namespace, "name": f"armada-{self.job_id}-0"}
        if with_uid:
            metadata["kubernetesId"] = self.uid
        return {"objectMeta": metadata, "podInfo": {"nodeName": self.node} if on_node else {}}


class FakeExecutor:
    """Leases, runs and reports until its task is cancelled."""

    def __init__(self, channel: grpc.aio.Channel, *, categories: frozenset[str] = frozenset()) -> None:
        self._stub = services.ExecutorApiStub(channel)
        self._categories = categories
        self._pods: dict[str, FakePod] = {}

    async def run(self) -> None:
        """Exchange every 50 ms."""
        try:
            while True:
                await self.exchange()
                await asyncio.sleep(0.05)
        finally:
            for pod in self._pods.values():
                if pod.task is not None:
                    pod.task.cancel()

    async def exchange(self) -> None:
        """One exchange: report all that is held, start what is leased, forget what is cancelled."""
        async for message in self._stub.LeaseJobRuns(iter([self._request()]), timeout=10):
            for run_id in message.cancel_runs.job_run_ids_to_cancel:
                pod = self._pods.pop(run_id, None)
                if pod is not None and pod.task is not None:
                    pod.task.cancel()
            if message.HasField("lease") and message.lease.job_run_id not in self._pods:
                pod = FakePod(message.lease)
                self._pods[pod.run_id] = pod
                pod.task = asyncio.create_task(self._live(pod))

    def _request(self) -> executorapi.LeaseRequest:
        request = executorapi.LeaseRequest(executor_id=EXECUTOR, pool="default", max_jobs_to_lease=100)
        for name in NODES:
            node = request.nodes.add(name=name, node_type="none", pool="default")
            node.labels["kubernetes.io/hostname"] = name
            for resource, quantity in _TOTAL.items():
                node.total_resources[resource].string = quantity
                node.allocatable_resources[resource].string = quantity
            for resource, quantity in _HELD_BACK.items():
                node.non_armada_allocated_resources[2_000_000_000].resources[resource].string = quantity
            runs = {pod.run_id: pod.state for pod in self._pods.values() if pod.node == name}
            ParseDict({"runIdsByState": runs}, node)
        return request

    async def _live(self, pod: FakePod) -> None:
        if pod.image.startswith("r/reject-"):
            await self._reject(pod)
            return
        started = {"resourceInfos": [pod.described()], "pool": pod.pool}
        await self._report(pod, "jobRunAssigned", started)
        pod.state = "RUNNING"
        await self._report(pod, "jobRunRunning", started)
        if pod.has_services:
            error = _pod_error(pod, "services are beyond this cluster", on_node=False)
            await self._fail(pod, error, {})
            return
        await asyncio.sleep(pod.lasts_s)
        if pod.image.startswith("r/fail-"):
            await self._fail_as_told(pod)
            return
        pod.state = "SUCCEEDED"
        await self._report(pod, "jobRunSucceeded", {"resourceInfos": [pod.described()]})

    async def _reject(self, pod: FakePod) -> None:
        metadata = pod.described(with_uid=False)["objectMeta"]
        if pod.image == "r/reject-retry":
            returned = {"objectMeta": {"executorId": EXECUTOR}, "message": "not now", "runAttempted": True}
            await self._fail(pod, {"podLeaseReturned": returned}, {})
        else:
            await self._fail(pod, {"podError": {"objectMeta": metadata, "message": "refused"}}, {})

    async def _fail_as_told(self, pod: FakePod) -> None:
        code, reason = pod.image.removeprefix("r/fail-").split("-", 1)
        kubernetes_reason = armadaevents.DeadlineExceeded if reason == _DEADLINE else _OUTCOMES.get(reason, 0)
        container: dict[str, Any] = {
            "objectMeta": {"name": "main"},
            "exitCode": int(code),
            "reason": reason or "Error",
            "message": "told to",
        }
        if reason == "OOMKilled":
            container["kubernetesReason"] = "OOM"
        error = _pod_error(pod, f"ended with {code}")
        error["podError"] |= {"containerErrors": [container], "kubernetesReason": int(kubernetes_reason)}
        category, subcategory = CATEGORIES.get(int(code), ("other", "unknown"))
        sorted_as = {"failureCategory": category, "failureSubcategory": subcategory}
        await self._fail(pod, error, sorted_as if pod.queue in self._categories else {})

    async def _fail(self, pod: FakePod, error: dict[str, Any], more: dict[str, Any]) -> None:
        pod.state = "FAILED"
        await self._report(pod, "jobRunErrors", {"errors": [{"terminal": True, **error, **more}]})

    async def _report(self, pod: FakePod, kind: str, said: dict[str, Any]) -> None:
        message = executorapi.EventList()
        sequence = message.events.add(queue=pod.queue, job_set_name=pod.job_set)
        event = sequence.events.add()
        ParseDict({kind: {"jobId": pod.job_id, "runId": pod.run_id, **said}}, event)
        stamp(event.created, time.time_ns() // 1_000_000)
        with contextlib.suppress(grpc.aio.AioRpcError):  # the server is going down
            await self._stub.ReportEvents(message, timeout=10)


def _pod_error(pod: FakePod, text: str, *, on_node: bool = True) -> dict[str, Any]:
    node = {"nodeName": pod.node} if on_node else {}
    return {"podError": {"objectMeta": pod.described()["objectMeta"], "message": text, **node}}
