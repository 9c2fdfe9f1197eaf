"""Tasks that are kept up, and stopping in order within a bound."""

import asyncio

import pytest

from armada.runtime.supervision import Backoff, Supervisor
from armada.runtime.telemetry import make_log


def supervisor(limit_ms: int = 1_000) -> Supervisor:
    return Supervisor(make_log("error", "json"), limit_ms)


def test_waits_grow_up_to_a_limit() -> None:
    backoff = Backoff(first_s=1.0, limit_s=4.0)
    for longest_s in (1.0, 2.0, 4.0, 4.0):
        assert longest_s / 2 <= backoff.draw_s() <= longest_s
    backoff.reset()
    assert backoff.draw_s() <= 1.0


async def test_things_are_closed_in_the_reverse_order() -> None:
    closed: list[str] = []
    kept = supervisor()

    async def close(name: str) -> None:
        closed.append(name)

    for name in ("log", "history", "grpc"):
        kept.at_stop(name, lambda name=name: close(name))  # type: ignore[misc]  # the default is the point
    await kept.close()
    assert closed == ["grpc", "history", "log"]


async def test_a_task_is_cancelled_before_what_it_uses_is_closed() -> None:
    order: list[str] = []
    kept = supervisor()

    async def close() -> None:
        order.append("closed")

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            order.append("cancelled")

    kept.at_stop("log", close)
    kept.start("reader", work)
    await asyncio.sleep(0)
    await kept.close()
    assert order == ["cancelled", "closed"]


async def test_a_failed_task_is_started_again() -> None:
    kept = supervisor()
    attempts: list[int] = []
    done = asyncio.Event()

    async def work() -> None:
        attempts.append(1)
        if len(attempts) < 2:
            raise RuntimeError("not yet")
        done.set()

    kept.start("worker", work)
    async with asyncio.timeout(5):
        await done.wait()
    await kept.close()
    assert len(attempts) == 2
    assert kept.failure is None


async def test_an_essential_task_takes_the_process_with_it() -> None:
    kept = supervisor()

    async def work() -> None:
        raise RuntimeError("no log")

    kept.start("log", work, essential=True)
    async with asyncio.timeout(5):
        await kept.until_stopped()
    assert isinstance(kept.failure, RuntimeError)
    await kept.close()


async def test_what_takes_too_long_is_given_up() -> None:
    kept = supervisor(limit_ms=100)
    closed: list[str] = []

    async def slow() -> None:
        await asyncio.Event().wait()

    async def fails() -> None:
        raise OSError("gone")

    async def last() -> None:
        closed.append("last")

    kept.at_stop("first opened", last)
    kept.at_stop("fails", fails)
    kept.at_stop("slow", slow)
    async with asyncio.timeout(5):
        await kept.close()
    assert closed == ["last"]


async def test_stop_may_be_asked_for_more_than_once() -> None:
    kept = supervisor()
    kept.stop()
    kept.stop()
    await kept.until_stopped()
    await kept.close()


@pytest.mark.parametrize("form", ["json", "console"])
def test_logs_go_to_standard_error(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log("info", form)  # type: ignore[arg-type]  # one of the two
    log.info("something happened", queue="qa")
    log.debug("not worth a line")
    out, err = capsys.readouterr()
    assert out == ""
    assert "something happened" in err
    assert "qa" in err
    assert "not worth" not in err
