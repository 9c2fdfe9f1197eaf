"""A simulated cluster: nodes, and pods that start, run and end after drawn times, without a clock of its own.

It stands still between calls; `advance(now_ms)` lets time pass. Everything drawn about a pod follows from the seed, the
cluster and the run alone, so that the order of calls changes nothing. A pod's behaviour comes from, in this order: its
annotation `armadaproject.io/sim` (`runtime=1s,exit=3,start=2s,stop=5s,oom,stuck=ImagePullBackOff`), the text of its
commands (`sleep N`, `(RANDOM % A) + B`, `exit N`), and what the cluster's file says.
"""

import heapq
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from armada.executor.cluster import (
    Capabilities,
    Changes,
    ClusterUnavailable,
    Creation,
    Listing,
    LogLine,
    LogRequest,
    Outcome,
    PodDeletion,
    PodGone,
)
from armada.executor.pods import (
    DEADLINE_REASON,
    FAILED,
    OOM_REASON,
    PENDING,
    RUNNING,
    SUCCEEDED,
    ContainerState,
    Pod,
    PodOrder,
)
from armada.model.errors import InvalidRequest, NotFound
from armada.model.fleet import Node
from armada.model.jobs import JobTemplate
from armada.model.resources import parse_quantity
from armada.simulation.behaviour import Plan, plan_of
from armada.simulation.fleet import ClusterSpec, Fault

_CHANCES: Final = 2**64
_MAX_PLANS: Final = 10_000
_START, _END, _VANISH, _FAULT, _HEAL = range(5)
_TERMINATED: Final = 143
_OOM_KILLED: Final = 137


class _SimulatedNode:
    __slots__ = ("free", "frozen_until_ms", "is_there", "node", "pods", "waiting")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.free = {name: parse_quantity(quantity) for name, quantity in node.total.items()}
        self.frozen_until_ms = 0
        self.is_there = True
        self.pods: dict[str, _SimulatedPod] = {}
        self.waiting: dict[str, _SimulatedPod] = {}


class _SimulatedPod:
    __slots__ = (
        "chances",
        "created_ms",
        "deletion_due_ms",
        "exit_code",
        "finished_ms",
        "grace_ms",
        "holds_room",
        "node",
        "order",
        "phase",
        "plan",
        "reason",
        "started_ms",
        "turn",
    )

    def __init__(self, order: PodOrder, node: _SimulatedNode, plan: Plan, now_ms: int) -> None:
        self.order = order
        self.node = node
        self.plan = plan
        self.chances: tuple[float, ...] = ()
        self.phase = PENDING
        self.created_ms = now_ms
        self.started_ms = 0
        self.finished_ms = 0
        self.deletion_due_ms = 0
        self.grace_ms = plan.grace_ms
        self.exit_code = 0
        self.reason = ""
        self.holds_room = False
        self.turn = 0


class SimulatedCluster:
    """One cluster of a `Fleet`; implements `executor.cluster.SteppedCluster`."""

    capabilities = Capabilities(runs_images=False, survives_agent=False, enforces_resources=True, has_logs=True)

    def __init__(self, spec: ClusterSpec, seed: int = 0) -> None:
        """The clock of the cluster's faults starts at the first call that tells the time."""
        self._spec = spec
        self._key = blake2b(f"{seed}:{spec.executor_id}".encode(), digest_size=16).digest()
        self._nodes = {node.name: _SimulatedNode(node) for node in spec.nodes}
        self._pods: dict[str, _SimulatedPod] = {}
        self._plans: dict[int, tuple[JobTemplate, Plan]] = {}
        self._heap: list[tuple[int, int, int, object, int]] = []
        self._ties = 0
        self._now_ms: int | None = None
        self._calls = 0
        self._errors_until_ms = 0
        self._error_rate = 0.0
        self._changed_pods: dict[str, _SimulatedPod] = {}
        self._changed_nodes: dict[str, _SimulatedNode] = {}
        self._gone: list[PodGone] = []

    # -- the port

    def listing(self, now_ms: int) -> Listing:
        """All nodes and pods as of `now_ms`."""
        self.advance(now_ms)
        return Listing(
            nodes=tuple(node.node for node in self._nodes.values() if node.is_there),
            pods=tuple(self._shown(pod) for pod in self._pods.values()),
        )

    def advance(self, now_ms: int) -> Changes:
        """Let time pass until `now_ms` and return what changed since the last call or listing."""
        self._start_clock(now_ms)
        self._run_until(now_ms)
        pods, self._changed_pods = self._changed_pods, {}
        nodes, self._changed_nodes = self._changed_nodes, {}
        gone, self._gone = self._gone, []
        return Changes(
            nodes=tuple(node.node for node in nodes.values() if node.is_there),
            nodes_gone=tuple(name for name, node in nodes.items() if not node.is_there),
            pods=tuple([self._shown(pod) for pod in pods.values()]),
            gone=tuple(gone),
        )

    def next_wake_ms(self) -> int | None:
        """When something will happen by itself, or has happened and was not told yet; None when nothing will."""
        if self._changed_pods or self._gone or self._changed_nodes:
            return self._now_ms
        return self._heap[0][0] if self._heap else None

    def create(self, orders: Sequence[PodOrder], now_ms: int) -> Sequence[Creation]:
        """Create pods. Raises ClusterUnavailable during a fault of the interface."""
        self._start_clock(now_ms)
        self._run_until(now_ms)
        self._maybe_fail()
        return [self._create(order, now_ms) for order in orders]

    def delete(self, deletions: Sequence[PodDeletion], now_ms: int) -> None:
        """Ask for deletions. Raises ClusterUnavailable during a fault of the interface."""
        self._start_clock(now_ms)
        self._run_until(now_ms)
        self._maybe_fail()
        for deletion in deletions:
            self._delete(deletion, now_ms)

    def read_log(self, request: LogRequest, now_ms: int) -> Sequence[LogLine]:
        """A simulated pod writes one line when it starts and one when it ends. Raises NotFound, InvalidRequest."""
        self._start_clock(now_ms)
        self._run_until(now_ms)
        pod = self._pods.get(request.run_id)
        if pod is None and request.job_id:
            pod = next((p for p in reversed(self._pods.values()) if p.order.lease.job_id == request.job_id), None)
        if pod is None:
            raise NotFound(f"there is no pod of job {request.job_id or request.run_id} here: finished and cleaned up?")
        if request.container and request.container not in pod.plan.containers:
            raise InvalidRequest(f"pod {pod.order.name} has no container {request.container!r}")
        lines: list[LogLine] = []
        if pod.started_ms:
            place = f"node {pod.node.node.name} of simulated cluster {self._spec.executor_id}"
            lines.append(LogLine(pod.started_ms * 1_000_000, f"simulated: nothing is executed; started on {place}"))
        if pod.finished_ms:
            lines.append(LogLine(pod.finished_ms * 1_000_000 + 1, f"simulated: ended with exit code {pod.exit_code}"))
        lines = [line for line in lines if line.time_ns > request.since_ns]
        return lines if request.tail_lines is None else lines[len(lines) - min(request.tail_lines, len(lines)) :]

    # -- orders and deletions

    def _create(self, order: PodOrder, now_ms: int) -> Creation:
        if order.run_id in self._pods:
            return Creation(order.run_id, Outcome.ALREADY_THERE)
        lease = order.lease
        node = self._nodes.get(lease.node_name)
        if node is None or not node.is_there:
            message = f"there is no node {lease.node_name!r} in cluster {self._spec.executor_id}"
            return Creation(order.run_id, Outcome.NO_NODE, message)
        try:
            plan = self._plan(lease.template)
        except (InvalidRequest, msgspec.DecodeError) as error:
            return Creation(order.run_id, Outcome.REFUSED, str(error))
        pod = _SimulatedPod(order, node, plan, now_ms)
        pod.chances = self._draw(order.run_id)
        self._pods[order.run_id] = node.pods[order.run_id] = pod
        self._changed_pods[order.run_id] = pod
        if not plan.stuck:
            delay_ms = (
                plan.start_ms if plan.start_ms is not None else self._spec.behaviour.start_delay.at(pod.chances[0])
            )
            self._push(now_ms + self._scaled(delay_ms), _START, pod)
        return Creation(order.run_id, Outcome.CREATED)

    def _delete(self, deletion: PodDeletion, now_ms: int) -> None:
        pod = self._pods.get(deletion.run_id)
        if pod is None or (deletion.only_pending and pod.phase != PENDING):
            return
        grace_ms = pod.grace_ms if deletion.grace_ms is None else min(deletion.grace_ms, pod.grace_ms)
        due_ms = now_ms + grace_ms
        if pod.deletion_due_ms and pod.deletion_due_ms <= due_ms:
            return
        pod.deletion_due_ms = due_ms
        if pod.phase != RUNNING:
            self._vanish(pod, now_ms)
            return
        stop_ms = (
            pod.plan.stop_ms if pod.plan.stop_ms is not None else self._spec.behaviour.stop_delay.at(pod.chances[3])
        )
        self._changed_pods[deletion.run_id] = pod
        pod.turn += 1
        self._push(min(now_ms + self._scaled(stop_ms), due_ms), _VANISH, pod)

    def _vanish(self, pod: _SimulatedPod, at_ms: int, reason: str = "") -> None:
        run_id = pod.order.run_id
        pod.turn += 1
        del self._pods[run_id]
        del pod.node.pods[run_id]
        pod.node.waiting.pop(run_id, None)
        self._changed_pods.pop(run_id, None)
        self._free(pod, at_ms)
        self._gone.append(PodGone(run_id, reason))

    def _plan(self, template: JobTemplate) -> Plan:
        known = self._plans.get(id(template))
        if known is not None:
            return known[1]
        plan = plan_of(template, self._spec.annotation)
        if len(self._plans) >= _MAX_PLANS:
            self._plans.clear()
        self._plans[id(template)] = (template, plan)
        return plan

    # -- time

    def _start_clock(self, now_ms: int) -> None:
        if self._now_ms is None:
            self._now_ms = now_ms
            for fault in self._spec.faults:
                self._push(now_ms + self._scaled(fault.at_ms), _FAULT, fault)

    def _push(self, due_ms: int, kind: int, subject: object) -> None:
        self._ties += 1
        turn = subject.turn if isinstance(subject, _SimulatedPod) else 0
        heapq.heappush(self._heap, (due_ms, self._ties, kind, subject, turn))

    def _run_until(self, now_ms: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            due_ms, _, kind, subject, turn = heapq.heappop(heap)
            if isinstance(subject, _SimulatedPod):
                if turn == subject.turn:
                    self._pod_due(subject, kind, due_ms)
            elif isinstance(subject, Fault):
                self._fault_due(subject, kind, due_ms)
        self._now_ms = max(now_ms, self._now_ms or 0)

    def _pod_due(self, pod: _SimulatedPod, kind: int, due_ms: int) -> None:
        frozen_until_ms = pod.node.frozen_until_ms
        if due_ms < frozen_until_ms:
            self._push(frozen_until_ms, kind, pod)
        elif kind == _START:
            self._start(pod, due_ms)
        elif kind == _END:
            self._end(pod, due_ms)
        else:
            self._vanish(pod, due_ms)

    def _start(self, pod: _SimulatedPod, at_ms: int) -> None:
        free, requests = pod.node.free, pod.plan.requests
        for name, amount in requests:
            if free.get(name, 0) < amount:
                pod.node.waiting[pod.order.run_id] = pod
                return
        for name, amount in requests:
            free[name] -= amount
        pod.holds_room = True
        pod.phase = RUNNING
        pod.started_ms = at_ms
        self._changed_pods[pod.order.run_id] = pod
        plan, behaviour = pod.plan, self._spec.behaviour
        runtime_ms = plan.runtime_ms(pod.chances[1])
        length_ms = self._scaled(runtime_ms if runtime_ms is not None else behaviour.runtime.at(pod.chances[1]))
        self._draw_end(pod)
        if plan.deadline_ms and length_ms > plan.deadline_ms:
            length_ms, pod.exit_code, pod.reason = plan.deadline_ms, _TERMINATED, DEADLINE_REASON
        self._push(at_ms + length_ms, _END, pod)

    def _draw_end(self, pod: _SimulatedPod) -> None:
        if pod.plan.is_oom:
            pod.exit_code, pod.reason = _OOM_KILLED, OOM_REASON
        elif pod.plan.exit_code is not None:
            pod.exit_code = pod.plan.exit_code
        else:
            chance, behaviour = pod.chances[2], self._spec.behaviour
            for code, share in behaviour.exits:
                if chance < share:
                    pod.exit_code = code
                    return
                chance -= share
            if chance < behaviour.oom:
                pod.exit_code, pod.reason = _OOM_KILLED, OOM_REASON

    def _end(self, pod: _SimulatedPod, at_ms: int) -> None:
        pod.phase = FAILED if pod.exit_code or pod.reason else SUCCEEDED
        pod.finished_ms = at_ms
        self._changed_pods[pod.order.run_id] = pod
        self._free(pod, at_ms)

    def _free(self, pod: _SimulatedPod, at_ms: int) -> None:
        if not pod.holds_room:
            return
        pod.holds_room = False
        node = pod.node
        for name, amount in pod.plan.requests:
            node.free[name] += amount
        if node.waiting:
            waiting, node.waiting = node.waiting, {}
            for other in waiting.values():
                self._start(other, at_ms)

    # -- faults

    def _fault_due(self, fault: Fault, kind: int, at_ms: int) -> None:
        if kind == _FAULT and fault.every_ms:
            self._push(at_ms + self._scaled(fault.every_ms), _FAULT, fault)
        if fault.kind == "apiErrors":
            self._error_rate = fault.rate
            self._errors_until_ms = at_ms + self._scaled(fault.for_ms)
            return
        node = self._nodes[fault.node]
        if kind == _HEAL:
            node.is_there = True
            node.node = msgspec.structs.replace(node.node, unschedulable=False)
        else:
            self._push(at_ms + self._scaled(fault.for_ms), _HEAL, fault)
            if fault.kind == "Gone":
                node.is_there = False
                for pod in list(node.pods.values()):
                    self._vanish(pod, at_ms, f"node {fault.node} is gone")
            else:
                node.frozen_until_ms = at_ms + self._scaled(fault.for_ms)
                node.node = msgspec.structs.replace(node.node, unschedulable=True)
        self._changed_nodes[fault.node] = node

    def _maybe_fail(self) -> None:
        if self._now_ms is None or self._now_ms >= self._errors_until_ms:
            return
        self._calls += 1
        if self._draw(f"call {self._calls}")[0] < self._error_rate:
            raise ClusterUnavailable(f"cluster {self._spec.executor_id} has a simulated fault")

    # -- chance and show

    def _draw(self, name: str) -> tuple[float, ...]:
        digest = blake2b(name.encode(), key=self._key, digest_size=32).digest()
        return tuple(int.from_bytes(digest[start : start + 8], "big") / _CHANCES for start in (0, 8, 16, 24))

    def _scaled(self, length_ms: int) -> int:
        return int(length_ms / self._spec.time_scale)

    def _shown(self, pod: _SimulatedPod) -> Pod:
        lease = pod.order.lease
        plan = pod.plan
        reason = message = ""
        if pod.phase == PENDING:
            containers = tuple(ContainerState(name=name, reason=plan.stuck) for name in plan.containers)
        else:
            containers = self._container_states(pod)
            if pod.phase == FAILED and pod.reason == DEADLINE_REASON:
                reason, message = DEADLINE_REASON, "the pod ran longer than its active deadline"
        return Pod(
            run_id=pod.order.run_id,
            job_id=lease.job_id,
            queue=lease.queue,
            job_set=lease.job_set,
            name=pod.order.name,
            namespace=pod.order.namespace,
            uid=pod.order.run_id,
            phase=pod.phase,
            changed_ms=pod.finished_ms or pod.started_ms or pod.created_ms,
            created_ms=pod.created_ms,
            node_name=lease.node_name,
            pool=self._spec.pool,
            started_ms=pod.started_ms,
            finished_ms=pod.finished_ms,
            deletion_due_ms=pod.deletion_due_ms,
            deadline_ms=plan.deadline_ms,
            grace_ms=pod.grace_ms,
            reason=reason,
            message=message,
            containers=containers,
        )

    def _container_states(self, pod: _SimulatedPod) -> tuple[ContainerState, ...]:
        if pod.phase == RUNNING:
            return ()
        reason = pod.reason if pod.reason == OOM_REASON else ("Error" if pod.exit_code else "Completed")
        return tuple(
            ContainerState(
                name=name,
                started_ms=pod.started_ms,
                finished_ms=pod.finished_ms,
                exit_code=pod.exit_code,
                reason=reason,
            )
            for name in pod.plan.containers
        )
