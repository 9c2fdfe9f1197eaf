"""Events to bytes and back: what a backend stores of one sequence.

Layout: schema version (1 byte), flags (1), CRC-32 of all that follows (4, little-endian); then, when compressed, the
size before compression (4); then msgpack of the list of events, each a map tagged with its kind. Sequences above a
threshold are compressed.

An older version is read by upcasters: each takes the decoded events (plain lists and maps) of one version to the next.
What has been written is never rewritten.
"""

import zlib
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

import msgspec

from armada.model.errors import CorruptEntry
from armada.model.events import Event

SCHEMA_VERSION: Final = 1
"""The version that is written. Raise it, and add an upcaster, whenever an old reader or old bytes would fail."""

COMPRESSED_ABOVE_BYTES: Final = 1_024
MAX_SEQUENCE_BYTES: Final = 256 * 1024 * 1024
"""No sequence is larger, before compression."""

Upcaster = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]

UPCASTERS: Final[dict[int, Upcaster]] = {}
"""By version: how to bring events of that version to the next one."""

_HEADER: Final = Struct("<BBI")
_SIZE: Final = Struct("<I")
_COMPRESSED: Final = 1
_LEVEL: Final = 1

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[Event, ...])


def encode_events(events: tuple[Event, ...]) -> bytes:
    """Return the bytes of a sequence's events.

    Raises:
        ValueError: the sequence is larger than MAX_SEQUENCE_BYTES, or not encodable.
    """
    body = _encoder.encode(events)
    if len(body) > MAX_SEQUENCE_BYTES:
        raise ValueError(f"a sequence of {len(body)} bytes is larger than {MAX_SEQUENCE_BYTES}")
    flags = 0
    if len(body) > COMPRESSED_ABOVE_BYTES:
        flags = _COMPRESSED
        body = _SIZE.pack(len(body)) + zlib.compress(body, _LEVEL)
    return _HEADER.pack(SCHEMA_VERSION, flags, zlib.crc32(body)) + body


def plain_size(payload: bytes) -> int:
    """Return the size that an encoded sequence has before compression, as it says itself."""
    if payload[1] & _COMPRESSED:
        (size,) = _SIZE.unpack_from(payload, _HEADER.size)
        return int(size)
    return len(payload) - _HEADER.size


def decode_events(payload: bytes) -> tuple[Event, ...]:
    """Return the events of a stored sequence, in the present version.

    Raises:
        CorruptEntry: the bytes can't be what was written, or were written by a newer version.
    """
    if len(payload) < _HEADER.size:
        raise CorruptEntry(f"an entry of {len(payload)} bytes is shorter than its header")
    version, flags, checksum = _HEADER.unpack_from(payload)
    if version > SCHEMA_VERSION:
        raise CorruptEntry(f"an entry has schema version {version}; this program reads versions up to {SCHEMA_VERSION}")
    body = payload[_HEADER.size :]
    if zlib.crc32(body) != checksum:
        raise CorruptEntry("an entry's checksum does not match its bytes")
    if flags & ~_COMPRESSED:
        raise CorruptEntry(f"an entry has unknown flags {flags:#x}")
    if flags & _COMPRESSED:
        body = _decompressed(body)
    try:
        if version == SCHEMA_VERSION:
            return _decoder.decode(body)
        return msgspec.convert(_upcast(msgspec.msgpack.decode(body), version), tuple[Event, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptEntry(f"an entry of schema version {version} can't be read: {error}") from error


def _decompressed(body: bytes) -> bytes:
    if len(body) < _SIZE.size:
        raise CorruptEntry("a compressed entry lacks its size")
    (size,) = _SIZE.unpack_from(body)
    if size > MAX_SEQUENCE_BYTES:
        raise CorruptEntry(f"a compressed entry claims a size of {size} bytes")
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(body[_SIZE.size :], size + 1)
    except zlib.error as error:
        raise CorruptEntry(f"a compressed entry can't be unpacked: {error}") from error
    if len(plain) != size or not stream.eof or stream.unused_data:
        raise CorruptEntry("a compressed entry has another size than it claims")
    return plain


def _upcast(events: list[dict[str, Any]], version: int) -> list[dict[str, Any]]:
    while version < SCHEMA_VERSION:
        upcaster = UPCASTERS.get(version)
        if upcaster is None:
            raise CorruptEntry(f"an entry has schema version {version}, which nothing here can read")
        events = upcaster(events)
        version += 1
    return events
