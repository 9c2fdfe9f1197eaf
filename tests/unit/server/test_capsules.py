"""Capsules in the data folder: which are kept, how many, and that a failed round leaves one."""

import asyncio
from pathlib import Path

from armada.control.outcome import RoundOrder
from armada.control.rounds.capsules import RoundEnd, decided_again, read_capsule
from armada.runtime.telemetry import make_log
from armada.scheduling.round import schedule
from armada.server.upkeep.capsules import KEPT_FAILURES, Capsules
from tests.unit.scheduling.builders import Setting, node
from tests.unit.server.fakes import Followed

LOG = make_log("error", "json")


def end(number: int, pool: str = "p", failure: str = "") -> RoundEnd:
    setting = Setting(nodes=[node("a", 2)])
    setting.add("A", 3)
    order = RoundOrder(pool=pool, snapshot=setting.snapshot(), seed=number, as_of=0, started_ms=1_000 + number)
    return RoundEnd(order=order, finished_ms=2_000, decisions=schedule(order.snapshot, number), failure=failure)


def kept(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*")) if folder.exists() else []


async def test_only_failed_rounds_are_kept_unless_more_is_asked_for(tmp_path: Path) -> None:
    async with Followed() as here:
        capsules = Capsules(here.replica, tmp_path / "c", rounds=0, limit_bytes=10**9, log=LOG)
        capsules.keep(end(1))
        await capsules.flush()
        assert kept(tmp_path / "c") == []
        capsules.keep(end(2, failure="a wheel came off"))
        await capsules.flush()
        (name,) = kept(tmp_path / "c")
        capsule = read_capsule((tmp_path / "c" / name).read_bytes())
        assert (capsule.failure, capsule.seed) == ("a wheel came off", 2)
        assert len(decided_again(capsule).decisions.leases.row) == 2


async def test_the_latest_of_each_pool_are_kept_and_failures_apart(tmp_path: Path) -> None:
    async with Followed() as here:
        capsules = Capsules(here.replica, tmp_path, rounds=2, limit_bytes=10**9, log=LOG)
        for number in range(5):
            for pool in ("p", "q/r"):
                capsules.keep(end(number, pool))
            await capsules.flush()
        for number in range(KEPT_FAILURES + 2):
            capsules.keep(end(number, failure="why"))
            await capsules.flush()
        names = kept(tmp_path)
        assert [name for name in names if name.startswith("round")] == [
            "round-p-0000000001003-3.capsule",
            "round-p-0000000001004-4.capsule",
            "round-q%2Fr-0000000001003-3.capsule",
            "round-q%2Fr-0000000001004-4.capsule",
        ]
        assert len(names) == 4 + KEPT_FAILURES


async def test_all_together_stay_below_a_size(tmp_path: Path) -> None:
    async with Followed() as here:
        capsules = Capsules(here.replica, tmp_path, rounds=100, limit_bytes=10**9, log=LOG)
        capsules.keep(end(0))
        await capsules.flush()
        size = (tmp_path / kept(tmp_path)[0]).stat().st_size
        capsules = Capsules(here.replica, tmp_path, rounds=100, limit_bytes=3 * size + size // 2, log=LOG)
        for number in range(1, 8):
            capsules.keep(end(number))
            await capsules.flush()
        assert len(kept(tmp_path)) == 3
        small = Capsules(here.replica, tmp_path / "small", rounds=1, limit_bytes=10, log=LOG)
        small.keep(end(9))
        await small.flush()
        assert kept(tmp_path / "small") == []


async def test_a_disk_that_refuses_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    async with Followed() as here:
        capsules = Capsules(here.replica, tmp_path / "file", rounds=1, limit_bytes=10**9, log=LOG)
        task = asyncio.create_task(capsules.run())
        capsules.keep(end(1))
        await asyncio.sleep(0.2)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
