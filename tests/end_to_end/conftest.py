"""`armadactl` as a process, and one running system for the tests that only ask it things."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.armada_process import ArmadaUp

ARMADACTL: Final = (sys.executable, "-c", "from armada.cli.user import main; main()")
LIMIT_S: Final = 60.0
SETTING_VARIABLES: Final = ("ARMADAURL", "CURRENTCONTEXT", "ARMADACTL_OUTPUT", "ARMADACTL_EXIT_CODES")


class Armadactl:
    """Runs `armadactl` in a folder of its own, with an empty home and no variables that change what it does."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def __call__(
        self, *arguments: str, url: str | None = None, limit_s: float = LIMIT_S, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run it to its end. `url` "" leaves the address to the configuration."""
        address = self.url if url is None else url
        variables = {key: value for key, value in os.environ.items() if key not in SETTING_VARIABLES}
        variables |= {"HOME": str(self.folder), "COLUMNS": "120", **environment}
        if address:
            variables.setdefault("ARMADAURL", address)
        return subprocess.run(
            [*ARMADACTL, *arguments],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmadaUp]:
    """A running system: this machine and one simulated cluster. Tests use queues of their own."""
    with ArmadaUp(tmp_path_factory.mktemp("up"), "--simulate", "1x4") as running:
        yield running.wait_ready()


@pytest.fixture
def armadactl(up: ArmadaUp, tmp_path: Path) -> Armadactl:
    """`armadactl` pointed at the running system."""
    return Armadactl(tmp_path, up.url)
