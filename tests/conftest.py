"""What all tests share."""

import asyncio

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Start without a current event loop: pytest-asyncio otherwise leaks the one that a sync test left."""
    del config
    asyncio.set_event_loop(None)
