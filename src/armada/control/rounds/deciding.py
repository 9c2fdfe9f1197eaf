"""One round, with the checks that the policy asks for."""

from armada.control.outcome import RoundOrder
from armada.model.policy import SchedulingPolicy
from armada.scheduling.decisions import Decisions, check_invariants
from armada.scheduling.repeating.stops import Clock
from armada.scheduling.round import schedule


class RoundBroken(Exception):
    """A round decided what no round may decide (`enableAssertions`); none of it counts."""

    def __init__(self, faults: tuple[str, ...], decisions: Decisions) -> None:
        super().__init__(f"it decided what no round may: {'; '.join(faults)}")
        self.decisions = decisions


def decide(order: RoundOrder, policy: SchedulingPolicy, clock: Clock | None = None) -> Decisions:
    """Decide a round.

    Raises:
        RoundBroken: assertions are on, and one of them does not hold.
    """
    decisions = schedule(order.snapshot, order.seed, clock=clock)
    if policy.assertions:
        faults = check_invariants(decisions)
        if faults:
            raise RoundBroken(faults, decisions)
    return decisions
