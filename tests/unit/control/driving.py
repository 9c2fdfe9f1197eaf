"""A world with a leader that is driven step by step."""

from armada.control.cycle import Leader, Step
from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    JobSetEvents,
)
from armada.model.jobs import KubernetesObject
from armada.model.policy import SchedulingPolicy
from armada.model.submission import SubmissionPolicy
from armada.scheduling.round import schedule
from tests.unit.control.world import START_MS, World, kinds, node, pod

PREEMPTIBLE: KubernetesObject = pod(cpu="4", priorityClassName="armada-preemptible")


class Driver:
    """A world with a leader; `run` lets it do all that is due."""

    def __init__(
        self,
        policy: SchedulingPolicy | None = None,
        cadence: Cadence | None = None,
        submission: SubmissionPolicy | None = None,
    ) -> None:
        self.world = World(policy, submission)
        cadence = cadence or Cadence(round_delay_ms=0, fleet_settle_ms=0)
        self.leader = Leader(self.world.policy, cadence, "me", START_MS)
        self.heartbeats: dict[str, int] = {}
        self.seen = len(self.world.entries)
        self.run()

    def notice(self) -> None:
        """Show the leader what was folded since the last time."""
        for entry in self.world.entries[self.seen :]:
            self.leader.notice(entry, self.world.now_ms)
        self.seen = len(self.world.entries)

    def step(self) -> Step:
        self.notice()
        return self.leader.step(self.world.ledger, self.heartbeats, self.world.now_ms)

    def store(self, sequences: tuple[JobSetEvents, ...], epoch: int = 0) -> None:
        if sequences:
            self.world.store(*sequences, epoch=epoch)

    def run(self) -> list[str]:
        """Carry out steps until nothing is due; return the kinds of all facts."""
        facts: list[str] = []
        for _ in range(100):
            step = self.step()
            if step.sequences:
                facts += kinds(step.sequences)
                self.store(step.sequences, step.epoch)
            elif step.round is not None:
                decisions = schedule(step.round.snapshot, step.round.seed)
                outcome = self.leader.finish(self.world.ledger, step.round, decisions, self.world.now_ms)
                facts += kinds(outcome.sequences)
                self.store(outcome.sequences, step.epoch)
            else:
                return facts
        raise AssertionError("the leader never rests")

    def heard(self, *executor_ids: str) -> None:
        for executor_id in executor_ids:
            self.heartbeats[executor_id] = self.world.now_ms

    def nodes(self, *names: str, cpu: str = "8", executor_id: str = "east") -> None:
        self.world.report_nodes(*[node(name, executor_id, cpu) for name in names], executor_id=executor_id)
        self.heard(executor_id)

    def events(self, kind: type) -> list[object]:
        return [event for entry in self.world.entries for event in entry.events if isinstance(event, kind)]


# -- leadership --------------------------------------------------------------------------------------------------------
