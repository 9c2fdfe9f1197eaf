"""The agent under random orders of everything: lost answers, crashes, deletions from outside; then it must all add up.

The model beside it is a cluster (pods that come to be, go on, end and vanish), a journal on disk and a control plane.
"""

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from armada.executor.agent import Agent
from armada.executor.cluster import Changes, Creation, Listing, Outcome, PodDeletion, PodGone
from armada.executor.holding.retention import RetentionLimits
from armada.executor.holding.runs import Remembered, remember
from armada.executor.holding.stimuli import (
    Acknowledged,
    Changed,
    Created,
    DeletionFailed,
    ExchangeFailed,
    Listed,
    Replied,
    ReportFailed,
    Stimulus,
)
from armada.executor.pods import Pod, PodOrder
from armada.model.events import JobSetEvents, RunFailed, RunSucceeded
from armada.model.leases import LeaseRequest
from tests.unit.executor.builders import NODE, ToyControlPlane, lease, pod
from tests.unit.executor.builders import settings as agent_settings

RUNS = [f"r{number}" for number in range(5)]
NEXT_PHASES = {"pending": ("running", "failed"), "running": ("succeeded", "failed")}


class AgentMachine(RuleBasedStateMachine):
    """Rules are what may happen at any time; `teardown` heals everything and waits for the end."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000_000
        self.control = ToyControlPlane()
        self.journal: dict[str, Remembered] = {}
        self.pods: dict[str, Pod] = {}
        self.births: dict[str, int] = {}
        self.true_ends: dict[str, str] = {}
        self.removed_from_outside: dict[str, None] = {}
        self.inbox: list[Stimulus] = []
        self.restart_agent()

    def restart_agent(self) -> None:
        keeps = RetentionLimits(succeeded_ms=60_000, failed_ms=60_000, pod_count=3)
        self.agent = Agent(agent_settings(max_unstarted=3, create_batch=2, retention=keeps), dict(self.journal))
        self.orders: tuple[PodOrder, ...] = ()
        self.report: tuple[JobSetEvents, ...] = ()
        self.request: LeaseRequest | None = None
        self.to_delete: list[PodDeletion] = []
        self.changed: dict[str, None] = {}
        self.gone: list[PodGone] = []
        self.inbox = [Listed(Listing(nodes=(NODE,), pods=tuple(self.pods.values())))]
        self.step()

    def step(self) -> None:
        self.now_ms += 7
        stimuli, self.inbox = self.inbox, []
        instructions = self.agent.step(self.now_ms, stimuli)
        remember(instructions.marks, self.journal)
        self.to_delete.extend(instructions.delete)
        if instructions.create:
            assert not self.orders, "two creations at once"
            self.orders = instructions.create
        if instructions.report:
            assert not self.report, "two reports at once"
            self.report = instructions.report
        if instructions.exchange is not None:
            assert self.request is None, "two exchanges at once"
            self.request = instructions.exchange

    # -- the control plane

    @rule(run_id=strategies.sampled_from(RUNS))
    def offer(self, run_id: str) -> None:
        if run_id not in self.control.leases:
            self.control.offer(lease(run_id))

    @rule(run_id=strategies.sampled_from(RUNS))
    def cancel(self, run_id: str) -> None:
        if run_id in self.control.leases and run_id not in self.control.ends:
            self.control.cancel(run_id)

    @precondition(lambda self: self.request is not None)
    @rule(arrives=strategies.booleans())
    def exchange(self, arrives: bool) -> None:  # noqa: FBT001 - drawn
        assert self.request is not None
        reply = self.control.answer(self.request)
        self.request = None
        self.inbox.append(Replied(reply) if arrives else ExchangeFailed())
        self.step()

    @precondition(lambda self: bool(self.report))
    @rule(arrives=strategies.booleans(), answered=strategies.booleans())
    def deliver_report(self, arrives: bool, answered: bool) -> None:  # noqa: FBT001 - drawn
        if arrives:
            self.control.take(self.report)
        self.report = ()
        self.inbox.append(Acknowledged() if arrives and answered else ReportFailed())
        self.step()

    # -- the cluster

    def create(self, order: PodOrder) -> Outcome:
        if order.run_id in self.pods:
            return Outcome.ALREADY_THERE
        self.births[order.run_id] = self.births.get(order.run_id, 0) + 1
        self.pods[order.run_id] = pod(order.run_id, created_ms=self.now_ms, changed_ms=self.now_ms)
        self.changed[order.run_id] = None
        return Outcome.CREATED

    @precondition(lambda self: bool(self.orders))
    @rule(faults=strategies.lists(strategies.sampled_from(["", "", "refused", "failed", "unclear"]), min_size=2))
    def carry_out_orders(self, faults: list[str]) -> None:
        creations = []
        for order, fault in zip(self.orders, faults, strict=False):
            outcome = Outcome.FAILED
            if fault == "refused" and order.run_id not in self.pods:
                outcome = Outcome.REFUSED
            elif fault == "unclear":
                self.create(order)
            elif fault != "failed":
                outcome = self.create(order)
            creations.append(Creation(order.run_id, outcome, fault))
        self.orders = ()
        self.inbox.append(Created(tuple(creations)))
        self.step()

    @rule(run_id=strategies.sampled_from(RUNS), way=strategies.integers(0, 1))
    def progress(self, run_id: str, way: int) -> None:
        now = self.pods.get(run_id)
        if now is None or now.phase not in NEXT_PHASES:
            return
        phase = NEXT_PHASES[now.phase][way]
        self.pods[run_id] = pod(run_id, phase, created_ms=now.created_ms, changed_ms=self.now_ms)
        self.changed[run_id] = None
        if phase in ("succeeded", "failed"):
            self.true_ends[run_id] = phase

    def remove(self, run_id: str) -> None:
        del self.pods[run_id]
        self.changed.pop(run_id, None)
        self.gone.append(PodGone(run_id))

    @rule(run_id=strategies.sampled_from(RUNS))
    def remove_from_outside(self, run_id: str) -> None:
        # Only what the journal knows: gone between creation and mark would be two faults at once.
        if run_id in self.pods and run_id in self.journal:
            self.removed_from_outside[run_id] = None
            self.remove(run_id)

    @precondition(lambda self: bool(self.to_delete))
    @rule(works=strategies.booleans())
    def carry_out_deletions(self, works: bool) -> None:  # noqa: FBT001 - drawn
        deletions, self.to_delete = self.to_delete, []
        if not works:
            self.inbox.append(DeletionFailed(tuple(deletions)))
            self.step()
            return
        for deletion in deletions:
            now = self.pods.get(deletion.run_id)
            if now is not None and (now.phase == "pending" or not deletion.only_pending):
                self.remove(deletion.run_id)

    @rule()
    def watch(self) -> None:
        pods = tuple(self.pods[run_id] for run_id in self.changed if run_id in self.pods)
        changes = Changes(pods=pods, gone=tuple(self.gone))
        self.changed, self.gone = {}, []
        if changes:
            self.inbox.append(Changed(changes))
        self.step()

    @rule()
    def list_again(self) -> None:
        self.changed, self.gone = {}, []
        self.inbox.append(Listed(Listing(nodes=(NODE,), pods=tuple(self.pods.values()))))
        self.step()

    @rule(passed_ms=strategies.sampled_from([10, 500, 6_000, 40_000]))
    def let_time_pass(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        self.step()

    @rule(carried_out=strategies.booleans())
    def crash(self, carried_out: bool) -> None:  # noqa: FBT001 - drawn
        if carried_out:
            for order in self.orders:
                self.create(order)
        self.restart_agent()

    # -- what must hold

    @invariant()
    def no_run_has_two_pods(self) -> None:
        for run_id, births in self.births.items():
            assert births <= 1, run_id

    def teardown(self) -> None:
        for _ in range(60):
            self.now_ms += 700
            self.step()
            for run_id in RUNS:
                self.progress(run_id, 0)
            self.watch()
            if self.orders:
                self.carry_out_orders(["", ""])
            if self.to_delete:
                self.carry_out_deletions(works=True)
            if self.report:
                self.deliver_report(arrives=True, answered=True)
            if self.request is not None:
                self.exchange(arrives=True)
        control = self.control
        for run_id in control.leases:
            assert control.is_over(run_id), f"{run_id} never ended"
            live = self.pods.get(run_id)
            assert live is None or live.has_ended, f"{run_id} is over and still runs"
            end = control.ends.get(run_id)
            if isinstance(end, RunSucceeded):
                assert self.true_ends[run_id] == "succeeded"
            if isinstance(end, RunFailed) and self.true_ends.get(run_id) == "succeeded":
                assert run_id in self.removed_from_outside, f"{run_id} succeeded and is told as failed"
        assert self.agent.run_ids() == (), "runs are held for ever"
        assert self.control.held == frozenset()
        assert self.agent.figures().facts_waiting == 0
        assert self.agent._unstarted == 0
        assert not [run_id for run_id in self.journal if run_id not in self.pods], "the journal only grows"


AgentMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60)
test_agent_adds_up = AgentMachine.TestCase
