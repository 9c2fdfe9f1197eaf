"""Kubernetes protobuf messages as Kubernetes JSON, and pod specs with one conversion for equal bytes.

`to_json` works on any message by its descriptor, with the rules of `wire.fields`; `wire.reading.from_json` is the way
back. Values are checked on the way in: quantities must be quantities (and come out as Kubernetes writes them), and no
text may hold a NUL byte or anything but UTF-8. Fields that a newer Kubernetes may have added are dropped, as the
reference drops them.
"""

import base64
import datetime as dt
from collections import OrderedDict
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from armada.model.errors import InvalidRequest
from armada.model.jobs import KubernetesObject
from armada.model.resources import canonical_quantity
from armada.model.submission import SubmittedPod
from armada.wire import fields
from armada.wire.reading import from_json

Write = Callable[[KubernetesObject, Any], None]
Value = TypeVar("Value")

CACHE_BYTES: Final = 32 * 1024 * 1024
"""How many bytes of distinct pod specs a cache may hold, counted by their serialised form."""

_canonical = lru_cache(maxsize=8_192)(canonical_quantity)


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


def to_json(message: Message) -> KubernetesObject:
    """Return a message as Kubernetes JSON: camelCase keys in field order, zero values left out.

    Raises:
        InvalidRequest: a quantity that is none, a NUL byte, a text that is not UTF-8; the path leads to it.
    """
    try:
        return _to_json(message)
    except _BadValue as bad:
        place = ".".join(reversed(bad.path)).replace(".[", "[")
        raise InvalidRequest(f"{place}: {bad}") from bad


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


def parsed(message: Message, data: bytes) -> None:
    """Merge serialised bytes into `message`; raises InvalidRequest where they are no such message."""
    try:
        message.MergeFromString(data)
    except DecodeError as error:
        raise InvalidRequest(f"not a {message.DESCRIPTOR.full_name} message: {error}") from error


_submitted: ByteCache[SubmittedPod] = ByteCache()
_messages: ByteCache[core.PodSpec] = ByteCache()
_texts: ByteCache[bytes] = ByteCache()


def _decoded(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"not JSON: {error}") from error


class _BadValue(Exception):
    """A value that can't be taken; `path` gathers keys from the inside out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []


def _to_json(message: Message) -> KubernetesObject:
    out: KubernetesObject = {}
    writers = _writers(message.DESCRIPTOR)
    try:
        for field, value in message.ListFields():
            try:
                writers[field.number](out, value)
            except _BadValue as bad:
                bad.path.append(field.json_name)
                raise
    except UnicodeDecodeError as error:
        raise _BadValue(f"text that is not UTF-8 ({error.reason})") from error
    return out


@cache
def _writers(message: Descriptor) -> dict[int, Write]:
    return {field.number: _writer(field) for field in message.fields}


def _writer(field: FieldDescriptor) -> Write:
    key = field.json_name
    if fields.is_map(field):
        return _map_writer(key, fields.value_field(field))
    convert = _converter(field)
    if field.is_repeated:
        return _list_writer(key, convert)
    if fields.is_embedded(field):
        return lambda out, value: out.update(convert(value))
    keeps_zero = fields.keeps_zero(field)

    def write(out: KubernetesObject, value: Any) -> None:
        converted = convert(value)
        if keeps_zero or (converted and converted != "0"):
            out[key] = converted

    return write


def _list_writer(key: str, convert: Callable[[Any], Any]) -> Write:
    def write(out: KubernetesObject, values: Any) -> None:
        converted = []
        for value in values:
            try:
                converted.append(convert(value))
            except _BadValue as bad:
                bad.path.append(f"[{len(converted)}]")
                raise
        out[key] = converted

    return write


def _map_writer(key: str, value_field: FieldDescriptor) -> Write:
    convert = _converter(value_field)

    def write(out: KubernetesObject, values: Any) -> None:
        converted: KubernetesObject = {}
        for name in sorted(values):
            _text(str(name))
            try:
                converted[str(name)] = convert(values[name])
            except _BadValue as bad:
                bad.path.append(str(name))
                raise
        out[key] = converted

    return write


def _converter(field: FieldDescriptor) -> Callable[[Any], Any]:
    kind = field.message_type
    if kind is None:
        if field.type == FieldDescriptor.TYPE_STRING:
            return _text
        if field.type == FieldDescriptor.TYPE_BYTES:
            return _base64
        return _same
    return _SCALARS.get(kind.full_name, _to_json)


def _same(value: Any) -> Any:
    return value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _text(value: str) -> str:
    if "\0" in value:
        raise _BadValue("text with a NUL byte")
    return value


def _quantity(value: Any) -> str:
    try:
        return _canonical(value.string)
    except InvalidRequest as error:
        raise _BadValue(str(error)) from error


def _int_or_string(value: Any) -> int | str:
    return _text(value.strVal) if value.type == 1 else int(value.intVal)


def _time(value: Any) -> str:
    if not value.seconds and not value.nanos:
        return ""
    try:
        moment = dt.datetime.fromtimestamp(value.seconds, dt.UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise _BadValue(f"time out of range: {value.seconds} seconds") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _raw_json(value: Any) -> Any:
    try:
        return msgspec.json.decode(value.Raw) if value.Raw else {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _BadValue(f"not JSON: {error}") from error


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    fields.QUANTITY: _quantity,
    fields.INT_OR_STRING: _int_or_string,
    fields.RAW_JSON: _raw_json,
    **dict.fromkeys(fields.TIMES, _time),
}
