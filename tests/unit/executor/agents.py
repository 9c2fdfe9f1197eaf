"""An agent on a bench: stepped by hand, with a hand on its clock."""

from collections.abc import Sequence
from typing import Any

from armada.executor.agent import Agent
from armada.executor.holding.runs import Remembered
from armada.executor.holding.stimuli import (
    Acknowledged,
    Changed,
    Created,
    ExchangeFailed,
    Instructions,
    Listed,
    Replied,
    Stimulus,
)
from armada.model.leases import LeaseReply
from tests.unit.executor.builders import created, lease, listing, pod, seen, settings


class Bench:
    """An agent with a hand on its clock."""

    def __init__(self, remembered: dict[str, Remembered] | None = None, **changes: Any) -> None:
        self.settings = settings(**changes)
        self.agent = Agent(self.settings, remembered)
        self.now_ms = 10_000
        self.last = Instructions(wake_at_ms=0)
        self.is_under_way = False

    def step(self, *stimuli: Stimulus, after_ms: int = 10) -> Instructions:
        self.now_ms += after_ms
        self.is_under_way &= not any(isinstance(stimulus, Replied | ExchangeFailed) for stimulus in stimuli)
        self.last = self.agent.step(self.now_ms, stimuli)
        self.is_under_way |= self.last.exchange is not None
        return self.last

    def started(self, *run_ids: str) -> Instructions:
        """Up to pods that run and are reported."""
        self.step(Listed(listing()))
        self.step(Replied(LeaseReply(leases=tuple(lease(run_id) for run_id in run_ids))))
        self.step(Created(created(*run_ids)), Changed(seen(*(pod(run_id, "running") for run_id in run_ids))))
        return self.step(Acknowledged())

    def reply(self, *leases: str, cancel: Sequence[str] = ()) -> Instructions:
        self.settle_exchange()
        reply = LeaseReply(cancel_run_ids=tuple(cancel), leases=tuple(lease(run_id) for run_id in leases))
        return self.step(Replied(reply))

    def settle_exchange(self) -> None:
        """Be sure that an exchange is under way."""
        while not self.is_under_way:
            self.step()

    def held(self) -> dict[str, str]:
        """What the next request will say: run id -> phase, or "" on no node."""
        book = self.agent._book
        runs = {run.run_id: run.phase for node in book.reports() for run in node.runs}
        return {**runs, **dict.fromkeys(book.unassigned(), "")}
