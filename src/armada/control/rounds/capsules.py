"""Capsules: a round in one piece of bytes, so that it can be decided again and explained on another machine.

A capsule holds the snapshot, the seed, where the clock stopped the round, the ids of its jobs, and a digest of what was
decided. Layout: MAGIC, one byte of version, 16 bytes of BLAKE2b over the rest, and the rest: compressed MessagePack.
"""

import zlib
from hashlib import blake2b
from typing import Any, Final

import msgspec
import numpy as np

from armada.control.outcome import RoundOrder
from armada.control.rounds.planning import RoundReport
from armada.model.errors import CorruptEntry
from armada.model.jobs import JOB_ID_LENGTH
from armada.scheduling.decisions import Decisions
from armada.scheduling.repeating.stops import Stop
from armada.scheduling.round import schedule
from armada.scheduling.snapshot import PoolSnapshot
from armada.state.ledger import Ledger

MAGIC: Final = b"armada round capsule\n"
VERSION: Final = 1
LARGEST: Final = 8 * 2**30
"""Bytes that a capsule may unpack to."""

LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""

_CHECK_BYTES: Final = 16
_ROW_BYTES: Final = 4
_HEAD: Final = len(MAGIC) + 1 + _CHECK_BYTES
_QUICK: Final = 1


class JobNames(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of a round's jobs: `rows` ascending (int32 as bytes), their ids side by side, and those of odd length."""

    rows: bytes = b""
    packed: bytes = b""
    odd: tuple[tuple[int, str], ...] = ()

    def name(self, row: int) -> str:
        """Return the id of the job of a row; empty when it had left before the capsule was made."""
        rows = np.frombuffer(self.rows, np.int32)
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            return ""
        start = place * JOB_ID_LENGTH
        own = self.packed[start : start + JOB_ID_LENGTH].rstrip(b"\0").decode("ascii")
        return own or dict(self.odd).get(place, "")

    def row(self, name: str) -> int | None:
        """Return the row of a job, or None."""
        rows = np.frombuffer(self.rows, np.int32)
        for place, odd in self.odd:
            if odd == name:
                return int(rows[place])
        wanted = name.encode()
        if len(wanted) != JOB_ID_LENGTH:
            return None
        start = self.packed.find(wanted)
        while start >= 0 and start % JOB_ID_LENGTH:
            start = self.packed.find(wanted, start + 1)
        return int(rows[start // JOB_ID_LENGTH]) if start >= 0 else None


class RoundEnd(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A round that was decided, or that failed and why; then it may have no decisions."""

    order: RoundOrder
    finished_ms: int
    decisions: Decisions | None
    failure: str = ""


class Capsule(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A round and what came of it.

    `digest` is that of its decisions, empty where there are none. `failure` says why the pool failed, empty where it
    did not. `release` made it. Times are in milliseconds since 1970.
    """

    pool: str
    started_ms: int
    finished_ms: int
    seed: int
    stops: tuple[Stop, ...]
    digest: str
    failure: str
    release: str
    jobs: JobNames
    snapshot: bytes

    def to_bytes(self) -> bytes:
        """Return the capsule as it is kept in a file."""
        rest = zlib.compress(msgspec.msgpack.encode(self), _QUICK)
        check = blake2b(rest, digest_size=_CHECK_BYTES).digest()
        return b"".join((MAGIC, bytes([VERSION]), check, rest))

    def order(self) -> RoundOrder:
        """Return the round to run. Raises CorruptEntry where this release can't read the snapshot."""
        return RoundOrder(
            pool=self.pool,
            snapshot=PoolSnapshot.from_bytes(self.snapshot),
            seed=self.seed,
            as_of=0,
            started_ms=self.started_ms,
        )


def read_capsule(kept: bytes) -> Capsule:
    """Read a capsule.

    Raises:
        CorruptEntry: the bytes are no capsule, a damaged one, or one of a newer release; the text says which.
    """
    if not kept.startswith(MAGIC):
        raise CorruptEntry("this is no round capsule")
    if len(kept) <= _HEAD:
        raise CorruptEntry("this capsule is cut short")
    version = kept[len(MAGIC)]
    if version != VERSION:
        raise CorruptEntry(f"this capsule is of version {version}; this release reads version {VERSION}")
    rest = memoryview(kept)[_HEAD:]
    if blake2b(rest, digest_size=_CHECK_BYTES).digest() != kept[_HEAD - _CHECK_BYTES : _HEAD]:
        raise CorruptEntry("this capsule is damaged or cut short: its check sum does not fit its bytes")
    try:
        unpacked = zlib.decompressobj().decompress(rest, LARGEST)
        capsule = msgspec.msgpack.decode(unpacked, type=Capsule)
    except (zlib.error, msgspec.DecodeError) as error:
        raise CorruptEntry(f"this capsule can't be read: {error}") from error
    jobs = capsule.jobs
    count, odd_bytes = divmod(len(jobs.rows), _ROW_BYTES)
    if odd_bytes or len(jobs.packed) != count * JOB_ID_LENGTH or any(not 0 <= place < count for place, _ in jobs.odd):
        raise CorruptEntry("this capsule can't be read: its ids are not those of its jobs")
    if not (0 <= capsule.started_ms <= LATEST_MS and 0 <= capsule.finished_ms <= LATEST_MS):
        raise CorruptEntry("this capsule can't be read: its times are on no calendar")
    return capsule


def capsule_of(end: RoundEnd, jobs: JobNames, release: str) -> Capsule:
    """Return the capsule of a round."""
    order, decisions = end.order, end.decisions
    return Capsule(
        pool=order.pool,
        started_ms=order.started_ms,
        finished_ms=end.finished_ms,
        seed=order.seed,
        stops=decisions.stops if decisions is not None else (),
        digest=digest_of(decisions) if decisions is not None else "",
        failure=end.failure,
        release=release,
        jobs=jobs,
        snapshot=order.snapshot.to_bytes(),
    )


def names_of(ledger: Ledger, order: RoundOrder) -> JobNames:
    """Return the ids of a round's jobs, as far as they are still here."""
    snapshot = order.snapshot
    rows = np.unique(np.concatenate((snapshot.queued.row, snapshot.running.row)).astype(np.int32))
    rows = ledger.rows_as_of(rows, order.as_of)
    packed, odd = ledger.packed_ids(rows)
    return JobNames(rows=rows.tobytes(), packed=packed, odd=odd)


def decided_again(capsule: Capsule) -> RoundReport:
    """Decide a capsule's round once more.

    Raises:
        CorruptEntry: this release can't read the snapshot.
        Exception: whatever the round fails with.
    """
    order = capsule.order()
    decisions = schedule(order.snapshot, order.seed, stops=capsule.stops)
    return RoundReport(
        order=order,
        decisions=decisions,
        finished_ms=capsule.finished_ms,
        leased=len(decisions.leases.row),
        preempted=len(decisions.preemptions.row),
    )


def digest_of(decisions: Decisions) -> str:
    """Return a digest of all that was decided: equal decisions have equal ones, to the last bit of every figure."""
    parts = [getattr(decisions, name) for name in Decisions.__struct_fields__ if name != "snapshot"]
    return blake2b(msgspec.msgpack.encode(parts, enc_hook=_plain), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"decisions can't hold {type(value)}")
