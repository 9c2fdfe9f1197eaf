"""What tests of the ledger share."""

import pytest

from armada.model import events as facts
from tests.unit.state.building import Story, leased, queue, submitted


@pytest.fixture
def story() -> Story:
    """A queue, a node, and a job of each stage: `q` queued, `l` leased, `r` running."""
    told = Story()
    told.fact(queue("qa"))
    told.node()
    told.tell(submitted("q", "l", "r"))
    told.tell(leased("l"), leased("r"))
    told.tell(facts.RunStarted(at_ms=20, job_id="r", run_id="r-r"))
    return told
