"""All that a command is decided by, besides the request itself."""

from dataclasses import dataclass

from armada.model.policy import SchedulingPolicy
from armada.model.submission import Caller, SubmissionPolicy
from armada.state.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of things as a command arrives: what is known, who asks, by which rules, when."""

    ledger: Ledger
    caller: Caller
    submission: SubmissionPolicy
    scheduling: SchedulingPolicy
    now_ms: int
