"""What the history answers with, and how values that are no columns are packed.

`pack` and `unpack` are MessagePack, deflated when that is shorter; the first byte says which.
"""

import zlib
from typing import Final, TypeVar

import msgspec

from armada.model.errors import CorruptEntry
from armada.model.events import Failure
from armada.model.jobs import JobTemplate
from armada.model.lifecycle import JobState, RunState


class Preemption(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a run was preempted: kept apart from how its pod ended, so that neither hides the other."""

    kind: str
    reason: str
    preempting_job_id: str = ""
    requestor: str = ""


class RunDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a job. `exit_code` and `failure` are the pod's end as reported; times not reached are None."""

    run_id: str
    job_id: str
    attempt: int
    state: RunState
    executor_id: str
    node_id: str
    node_name: str
    pool: str
    leased_ms: int
    pending_ms: int | None = None
    started_ms: int | None = None
    finished_ms: int | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    preemption: Preemption | None = None
    addresses: dict[int, str] = {}


class JobDetails(msgspec.Struct, frozen=True, kw_only=True):
    """One job. `runs` (newest first) and `template` are filled when asked for; reasons are "" where none was given."""

    job_id: str
    queue: str
    job_set: str
    namespace: str
    owner: str
    groups: tuple[str, ...]
    priority: int
    priority_class: str
    state: JobState
    submitted_ms: int
    last_transition_ms: int
    spec_position: int
    spec_index: int
    external_job_uri: str = ""
    latest_run_id: str = ""
    cancelled_ms: int | None = None
    cancel_reason: str = ""
    cancel_requestor: str = ""
    preempt_reason: str = ""
    preempt_requestor: str = ""
    rejection: str = ""
    failure: Failure | None = None
    runs: tuple[RunDetails, ...] = ()
    template: JobTemplate | None = None


Packed = TypeVar("Packed")

_PLAIN: Final = b"\x00"
_DEFLATED: Final = b"\x01"
_WORTH_DEFLATING_BYTES: Final = 1024
_encoder: Final = msgspec.msgpack.Encoder()


def pack(value: object) -> bytes:
    """The stored form of a value."""
    plain = _encoder.encode(value)
    if len(plain) > _WORTH_DEFLATING_BYTES:
        deflated = zlib.compress(plain, 1)
        if len(deflated) < len(plain):
            return _DEFLATED + deflated
    return _PLAIN + plain


def unpack(stored: bytes | None, decoder: msgspec.msgpack.Decoder[Packed]) -> Packed | None:
    """The value that was packed; None for a column that is null. Raises CorruptEntry."""
    if stored is None:
        return None
    try:
        plain = zlib.decompress(stored[1:]) if stored[:1] == _DEFLATED else stored[1:]
        return decoder.decode(plain)
    except (zlib.error, msgspec.DecodeError) as error:
        raise CorruptEntry(f"a value of the history can't be read: {error}") from error


read_template: Final = msgspec.msgpack.Decoder(JobTemplate)
read_failure: Final = msgspec.msgpack.Decoder(Failure)
read_preemption: Final = msgspec.msgpack.Decoder(Preemption)
read_addresses: Final = msgspec.msgpack.Decoder(dict[int, str])
