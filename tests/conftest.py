"""What all tests share: a clean start for asyncio, and no silent skips where everything needed is present."""

import asyncio
import os

import pytest
from hypothesis import settings

from tests.shared_folder import SHARED

# Examples differ from run to run at a desk, so that more is found; in CI they are always the same ones.
# A time limit for each example would only measure the machine: pytest-timeout bounds whole tests.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_configure(config: pytest.Config) -> None:
    """Start without a current event loop: pytest-asyncio otherwise leaks the one that a sync test left."""
    del config
    asyncio.set_event_loop(None)


def skips_are_failures() -> bool:
    """In CI with the recorded vectors present, every test must run: a skip there would hide a lost proof."""
    return bool(os.environ.get("CI")) and SHARED is not None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Turn a green session with skipped tests red where nothing may skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput") or exitstatus != pytest.ExitCode.OK:
        return
    skipped = [report.nodeid for report in reporter.stats.get("skipped", ())]
    if skipped and skips_are_failures():
        reporter.write_line("")
        for node_id in skipped:
            reporter.write_line(f"skipped, though everything it needs is present: {node_id}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
