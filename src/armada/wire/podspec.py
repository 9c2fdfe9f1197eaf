"""Pod specs: protobuf to Kubernetes JSON and back, converted once for equal bytes.

Clients repeat one pod spec many times, and every stage of a job's life shows it again; so the conversions here keep
what they made, bounded by the size of what it was made from.
"""

from collections import OrderedDict
from typing import Any, Final, Generic, TypeVar

import msgspec
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core

from armada.model.errors import InvalidRequest
from armada.model.submission import SubmittedPod
from armada.wire.kubernetes.reading import Reading, from_json
from armada.wire.kubernetes.writing import to_json

__all__ = ["ByteCache", "Reading", "from_json", "pod_spec_json", "pod_spec_message", "submitted_pod", "to_json"]

Value = TypeVar("Value")

CACHE_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of keys a cache may hold; what is made of them takes several times as much."""


class ByteCache(Generic[Value]):
    """Values by the bytes they come from; the least recently used are dropped above `limit_bytes` of keys."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._values: OrderedDict[bytes, Value] = OrderedDict()

    def get(self, key: bytes) -> Value | None:
        """The value for these bytes, if it is still held."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: bytes, value: Value) -> Value:
        """Hold a value, drop what no longer fits, and return the value."""
        if key not in self._values:
            self._size_bytes += len(key)
        self._values[key] = value
        while self._size_bytes > self._limit_bytes:
            dropped, _ = self._values.popitem(last=False)
            self._size_bytes -= len(dropped)
        return value

    def clear(self) -> None:
        """Hold nothing any more."""
        self._values.clear()
        self._size_bytes = 0


def submitted_pod(spec: core.PodSpec) -> SubmittedPod:
    """Return a pod spec's JSON and size; equal specs are one object while the cache holds it.

    Raises:
        InvalidRequest: as `to_json`.
    """
    serialised = spec.SerializeToString(deterministic=True)
    return _submitted.get(serialised) or _submitted.put(serialised, SubmittedPod(to_json(spec), len(serialised)))


def pod_spec_message(spec: bytes) -> core.PodSpec:
    """Return the message for a pod spec's JSON text; the same one for equal texts, so it must not be changed.

    Raises:
        InvalidRequest: the text is not JSON, or not a pod spec.
    """
    cached = _messages.get(spec)
    return cached or _messages.put(spec, from_json(_decoded(spec), core.PodSpec, path="podSpec"))


def pod_spec_json(spec: core.PodSpec) -> bytes:
    """Return a pod spec as JSON text, converted once for equal specs.

    Raises:
        InvalidRequest: as `to_json`.
    """
    serialised = spec.SerializeToString(deterministic=True)
    return _texts.get(serialised) or _texts.put(serialised, msgspec.json.encode(to_json(spec)))


def forget() -> None:
    """Empty the caches of this module (to measure conversions as if they were the first)."""
    for cache in (_submitted, _messages, _texts):
        cache.clear()


_submitted: ByteCache[SubmittedPod] = ByteCache()
_messages: ByteCache[core.PodSpec] = ByteCache()
_texts: ByteCache[bytes] = ByteCache()


def _decoded(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"not JSON: {error}") from error
