"""What tests of this machine's processes share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.executor.machines import Machine


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """A machine that is emptied at the end, whatever became of the test."""
    machine = await Machine(tmp_path / "pods").open()
    yield machine
    await machine.close()
