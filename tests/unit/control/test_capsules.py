"""Capsules: what comes back out of the bytes, what is refused, and what a digest notices."""

from typing import Any

import msgspec
import numpy as np
import pytest

from armada.control.rounds.capsules import (
    MAGIC,
    Capsule,
    JobNames,
    RoundEnd,
    capsule_of,
    decided_again,
    digest_of,
    names_of,
    read_capsule,
)
from armada.model.errors import CorruptEntry
from armada.scheduling.decisions import Decisions
from armada.scheduling.round import schedule
from tests.unit.control.driving import Driver
from tests.unit.control.world import item, pod


def decided() -> tuple[Driver, RoundEnd, list[str]]:
    """A round in which the first two of three jobs are leased."""
    driver = Driver()
    driver.nodes("n1", cpu="2")
    ids = list(driver.world.submit(item(), item(), item(pod(cpu="2"))))
    order = driver.step().round
    assert order is not None
    decisions = schedule(order.snapshot, order.seed)
    return driver, RoundEnd(order=order, finished_ms=driver.world.now_ms + 3, decisions=decisions), ids


def kept(driver: Driver, end: RoundEnd) -> Capsule:
    return read_capsule(capsule_of(end, names_of(driver.world.ledger, end.order), "1.2.3").to_bytes())


def test_a_capsule_is_decided_again_alike_and_knows_its_jobs() -> None:
    driver, end, ids = decided()
    capsule = kept(driver, end)
    report = decided_again(capsule)
    assert end.decisions is not None
    assert digest_of(report.decisions) == capsule.digest == digest_of(end.decisions)
    assert (report.order.pool, report.order.started_ms, report.finished_ms) == (
        "default",
        end.order.started_ms,
        driver.world.now_ms + 3,
    )
    leased = {capsule.jobs.name(lease.row) for lease in report.decisions.each_lease()}
    assert leased == set(ids[:2])
    rows = [capsule.jobs.row(job_id) for job_id in ids]
    assert [capsule.jobs.name(row) for row in rows if row is not None] == ids
    assert (capsule.release, capsule.failure) == ("1.2.3", "")


def test_jobs_that_came_after_the_round_or_had_left_have_no_name_in_it() -> None:
    driver, end, ids = decided()
    (late,) = driver.world.submit(item())
    driver.world.cancel(ids[0])
    names = names_of(driver.world.ledger, end.order)
    assert names.row(late) is None
    assert names.row(ids[1]) is not None
    assert names.row("no id") is None
    assert names.name(10_000) == ""


def test_names_of_any_length_are_found_both_ways() -> None:
    packed = b"a" * 26 + b"\0" * 26 + b"aab" + b"c" * 23
    names = JobNames(rows=np.array([3, 5, 9], np.int32).tobytes(), packed=packed, odd=((1, "short"),))
    assert [names.name(row) for row in (3, 5, 9, 4)] == ["a" * 26, "short", "aab" + "c" * 23, ""]
    assert [names.row(name) for name in ("a" * 26, "short", "aab" + "c" * 23, "d" * 26)] == [3, 5, 9, None]


def test_the_digest_notices_every_part() -> None:
    _, end, _ = decided()
    one = end.decisions
    assert one is not None
    changes = {
        "seed": 9,
        "turns": one.turns + 1,
        "leases": msgspec.structs.replace(one.leases, priority=one.leases.priority + 1),
        "refusals": msgspec.structs.replace(one.refusals, reason=one.refusals.reason + np.uint8(1)),
        "queues": tuple(
            msgspec.structs.replace(queue, fair_share=np.nextafter(queue.fair_share, 2)) for queue in one.queues
        ),
        "evicted": np.zeros(1, np.int32),
    }
    found = {digest_of(msgspec.structs.replace(one, **{name: value})) for name, value in changes.items()}
    assert len(found | {digest_of(one)}) == len(changes) + 1
    assert set(changes) <= set(Decisions.__struct_fields__)


def test_what_is_no_whole_capsule_of_this_release_is_refused_with_the_reason() -> None:
    driver, end, _ = decided()
    whole = capsule_of(end, names_of(driver.world.ledger, end.order), "x").to_bytes()
    newer = MAGIC + bytes([whole[len(MAGIC)] + 1]) + whole[len(MAGIC) + 1 :]
    flipped = bytearray(whole)
    flipped[-5] ^= 1
    for bad, why in (
        (b"", "no round capsule"),
        (b"hello", "no round capsule"),
        (MAGIC, "cut short"),
        (whole[:-7], "damaged or cut short"),
        (bytes(flipped), "damaged or cut short"),
        (newer, "of version 2"),
    ):
        with pytest.raises(CorruptEntry, match=why):
            read_capsule(bad)
    assert read_capsule(whole).pool == "default"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"jobs": JobNames(rows=b"abc")}, "its ids are not those of its jobs"),
        ({"jobs": JobNames(rows=b"\0" * 8, packed=b"a" * 26)}, "its ids are not those of its jobs"),
        ({"jobs": JobNames(odd=((3, "short"),))}, "its ids are not those of its jobs"),
        ({"started_ms": 2**62}, "its times are on no calendar"),
        ({"finished_ms": -1}, "its times are on no calendar"),
    ],
)
def test_what_contradicts_itself_is_refused_whatever_its_check_sum_says(changes: dict[str, Any], why: str) -> None:
    driver, end, _ = decided()
    capsule = capsule_of(end, names_of(driver.world.ledger, end.order), "x")
    with pytest.raises(CorruptEntry, match=why):
        read_capsule(msgspec.structs.replace(capsule, **changes).to_bytes())
