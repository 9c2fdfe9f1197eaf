"""Run reconciliation looks only at what changed: it must find all that a look at everything would find."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from armada.control.ending.reconciliation import Reconciliation
from armada.model.events import Event, ExecutorDeleted, ExecutorReported, JobSetEvents, RunLeased, RunsReleased
from armada.model.fleet import Node, Taint
from armada.model.jobs import RESERVATION, JobShape, Toleration
from armada.model.policy import PoolPolicy, ReconciliationPolicy, SchedulingPolicy
from armada.state.records import JobRecord, RunRecord
from tests.unit.control.world import World, fact, gang_item, item, pod

NAMES = ("n1", "n2", "n3")
EXECUTORS = ("east", "west")
POOLS = ("strict", "reserved", "free")
NODE_TIMEOUT_MS = 50
POLICY = SchedulingPolicy(
    pools=(
        PoolPolicy(name="strict", away_pools=("free",), reconciliation=ReconciliationPolicy()),
        PoolPolicy(name="reserved", reconciliation=ReconciliationPolicy(reservation_must_match=True)),
        PoolPolicy(name="free"),
    )
)

nodes = st.builds(
    lambda name, executor_id, pool, value, cpu: Node(
        node_id=f"{executor_id}-{name}",
        name=name,
        executor_id=executor_id,
        pool=pool,
        taints=() if value is None else (Taint(RESERVATION, value, "NoSchedule"),),
        total={"cpu": cpu},
    ),
    st.sampled_from(NAMES),
    st.sampled_from(EXECUTORS),
    st.sampled_from(POOLS),
    st.sampled_from([None, "", "blue"]),
    st.sampled_from(["4", "8"]),
)


class ReconciliationMachine(RuleBasedStateMachine):
    """Nodes come, change and go; executors are deleted and come back; jobs are leased to any node that is there."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(POLICY)
        self.reconciliation = Reconciliation(POLICY, NODE_TIMEOUT_MS, 1_000)
        self.seen = 0
        self.leases = 0
        self.gangs = 0

    @initialize()
    def begin(self) -> None:
        """Start with a node of each executor."""
        for executor_id in EXECUTORS:
            self.tell(
                executor_id, (Node(node_id=f"{executor_id}-n1", name="n1", executor_id=executor_id, pool="strict"),)
            )

    def tell(self, executor_id: str, changed: tuple[Node, ...] = (), gone: tuple[str, ...] = ()) -> None:
        self.store(ExecutorReported(at_ms=0, executor_id=executor_id, pool="strict", nodes=changed, gone=gone))

    def store(self, *events: Event) -> None:
        self.world.store(*(fact(event) for event in events))

    @rule(node=nodes, at_once=st.booleans())
    def report(self, node: Node, *, at_once: bool) -> None:
        self.tell(node.executor_id, (node,))
        self.reconcile(at_once=at_once)

    @rule(executor_id=st.sampled_from(EXECUTORS), name=st.sampled_from(NAMES), at_once=st.booleans())
    def vanish(self, executor_id: str, name: str, *, at_once: bool) -> None:
        self.tell(executor_id, gone=(name,))
        self.reconcile(at_once=at_once)

    @rule(executor_id=st.sampled_from(EXECUTORS), node=nodes)
    def delete(self, executor_id: str, node: Node) -> None:
        """An executor is forgotten; another node of anybody is reported before anyone looks."""
        self.store(ExecutorDeleted(at_ms=0, executor_id=executor_id))
        self.tell(node.executor_id, (node,))
        self.reconcile(at_once=True)

    @rule(
        data=st.data(),
        pool=st.sampled_from([None, None, None, *POOLS]),
        preemptible=st.booleans(),
        gang=st.booleans(),
        at_once=st.booleans(),
    )
    def run_a_job(self, data: st.DataObject, pool: str | None, *, preemptible: bool, gang: bool, at_once: bool) -> None:
        """Lease a job, or a gang of two, to nodes that are there, most often to where a round would."""
        there = [node for record in self.world.ledger.executors.values() for node in record.nodes]
        if not there:
            return
        first = data.draw(st.sampled_from(there))
        more: dict[str, Any] = {"priorityClassName": "armada-preemptible"} if preemptible else {}
        if first.taints:
            toleration = {"key": RESERVATION, "operator": "Equal", "value": "blue", "effect": "NoSchedule"}
            more["tolerations"] = [toleration]
        self.gangs += 1
        items = [gang_item(f"g{self.gangs}", 2, pod(**more)) for _ in range(2)] if gang else [item(pod(**more))]
        for place, job_id in enumerate(self.world.submit(*items)):
            node = data.draw(st.sampled_from(there)) if place else first
            self.leases += 1
            leased = RunLeased(
                at_ms=0,
                job_id=job_id,
                run_id=f"r{self.leases}",
                executor_id=node.executor_id,
                node_id=node.node_id,
                node_name=node.name,
                pool=pool or first.pool,
                priority=1000,
            )
            self.world.store(JobSetEvents("qa", "s", (leased,)))
        self.reconcile(at_once=at_once)

    @rule(run=st.integers(1, 20))
    def cancel(self, run: int) -> None:
        found = self.world.ledger.run(f"r{run}")
        if found is not None and not found.state.is_terminal:
            self.world.cancel(found.job_id)
            self.store(RunsReleased(at_ms=0, run_ids=(found.run_id,)))

    @rule(step_ms=st.integers(1, 2 * NODE_TIMEOUT_MS))
    def wait(self, step_ms: int) -> None:
        self.world.now_ms += step_ms
        self.reconcile(at_once=True)

    @rule(often=st.integers(0, 9))
    def begin_again(self, often: int) -> None:
        if not often:
            self.reconciliation.begin_again()
        self.reconcile(at_once=True)

    def reconcile(self, *, at_once: bool) -> None:
        """Carry out what is decided; then nothing that a look at everything finds may be left."""
        if not at_once:
            return
        for entry in self.world.entries[self.seen :]:
            self.reconciliation.notice(entry)
        decided = self.reconciliation.decide(self.world.ledger, lambda *_: True, self.world.now_ms)
        self.world.store(*decided.sequences)
        for entry in self.world.entries[self.seen :]:
            self.reconciliation.notice(entry)
        self.seen = len(self.world.entries)
        assert self.reconciliation.errors == {}
        assert [run.run_id for run, job in self.live() if stands_wrong(run, job, self.node_of(run))] == []
        assert not self.lingering()
        again = self.reconciliation.decide(self.world.ledger, lambda *_: True, self.world.now_ms)
        assert again.sequences == ()

    def live(self) -> list[tuple[RunRecord, JobRecord]]:
        ledger = self.world.ledger
        runs = [ledger.run(f"r{number}") for number in range(1, self.leases + 1)]
        live = [run for run in runs if run is not None and not run.state.is_terminal]
        return [(run, job) for run in live if (job := ledger.job(run.job_id)) is not None]

    def node_of(self, run: RunRecord) -> Node | None:
        return self.world.ledger.node(run.node_id)

    def lingering(self) -> list[str]:
        """Runs of gangs that should have gone at once with their node."""
        return [
            run.run_id
            for run, job in self.live()
            if self.node_of(run) is None
            and job.gang is not None
            and run.pool != "free"
            and self.world.ledger.executor(run.executor_id) is not None
        ]

    @invariant()
    def it_is_sound(self) -> None:
        self.world.ledger.validate()


def stands_wrong(run: RunRecord, job: JobRecord, node: Node | None) -> bool:
    """The rule once more, in other words, for one run whose node is there."""
    if node is None or run.pool == "free":
        return False
    open_to = {"strict": {"strict", "free"}, "reserved": {"reserved"}}[run.pool]
    return node.pool not in open_to or (run.pool == "reserved" and not tolerates(job.shape, node))


def tolerates(shape: JobShape, node: Node) -> bool:
    blue = Toleration(RESERVATION, "Equal", "blue", "NoSchedule")
    return blue in shape.tolerations and any(taint.value == "blue" for taint in node.taints)


ReconciliationMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestReconciliation = ReconciliationMachine.TestCase
