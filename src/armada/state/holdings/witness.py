"""Who is told of each fact that the fold takes in, so that what happens can be counted without being held."""

from typing import Any, Protocol

from armada.state.holdings.jobs import Jobs
from armada.state.holdings.runs import Runs


class Witness(Protocol):
    """Told twice of a fact: before the tables change, and after they did. Of a void fact only before."""

    def before(self, jobs: Jobs, runs: Runs, fact: Any) -> Any:
        """Look at what the fact is about to change; None where `after` need not be called."""

    def after(self, jobs: Jobs, noted: Any) -> None:
        """Count what `before` has noted."""
