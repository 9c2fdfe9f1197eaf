"""The published `armada-client` against `armada up`, each in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.armada_process import ArmadaUp
from tests.shared_folder import REPOSITORY

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmadaUp]:
    """A running system with two simulated clusters."""
    with ArmadaUp(tmp_path_factory.mktemp("up"), "--simulate", "2x10") as up:
        yield up.wait_ready()


@pytest.mark.parametrize("client", ["sync", "asyncio"])
def test_the_published_client_does_all_its_work(server: ArmadaUp, client: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", f"tests.compatibility.{client}_journey", server.url, f"of-{client}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    kinds = told.pop("kinds")
    assert told == {
        "health": [1, 1],
        "factor": 2.0,
        "listed": True,
        "submitted": 1_000,
        "known_at_once": True,
        "ended_once": True,
        "runs": [1, 1],
        "resumed": True,
        "reprioritised": True,
        "cancelled": True,
        "set_cancelled": True,
        "final": ["CANCELLED", "UNKNOWN"],
    }
    assert {kind: kinds[kind] for kind in ("submitted", "queued", "leased", "succeeded")} == dict.fromkeys(
        ("submitted", "queued", "leased", "succeeded"), 1_000
    )
