"""Protobuf timestamps and Unix milliseconds."""

from google.protobuf.timestamp_pb2 import Timestamp


def stamp(target: Timestamp, at_ms: int) -> None:
    """Set a timestamp to a time in Unix milliseconds."""
    target.seconds, milliseconds = divmod(at_ms, 1_000)
    target.nanos = milliseconds * 1_000_000


def unix_ms(timestamp: Timestamp) -> int:
    """The time in Unix milliseconds, rounded down."""
    return timestamp.seconds * 1_000 + timestamp.nanos // 1_000_000
