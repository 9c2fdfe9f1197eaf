"""Protobuf messages as Kubernetes JSON.

Works on any message by its descriptor, with the rules of `fields`. Values are checked on the way in: quantities must
be quantities (and come out as Kubernetes writes them), and no text may hold a NUL byte or anything but UTF-8. Fields
that a newer Kubernetes may have added are dropped, as the reference drops them.
"""

import base64
import datetime as dt
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from armada.model.errors import InvalidRequest
from armada.model.jobs import KubernetesObject
from armada.model.resources import canonical_quantity
from armada.wire.kubernetes import fields

Write = Callable[[KubernetesObject, Any], None]

_canonical = lru_cache(maxsize=8_192)(canonical_quantity)


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


class _BadValue(Exception):
    """A value that can't be taken; `path` gathers keys from the inside out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.path: list[str] = []


def _to_json(message: Message) -> KubernetesObject:
    out: KubernetesObject = {}
    writers = _writers(message.DESCRIPTOR)
    for field, value in message.ListFields():
        try:
            writers[field.number](out, value)
        except _BadValue as bad:
            bad.path.append(field.json_name)
            raise
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
        for name in sorted(values, key=str):
            key_text = _text(name) if isinstance(name, bytes | str) else str(name)
            try:
                converted[key_text] = convert(values[name])
            except _BadValue as bad:
                bad.path.append(key_text)
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


def _text(value: str | bytes) -> str:
    if isinstance(value, bytes):  # protobuf leaves text of Kubernetes' messages unchecked, and gives what it can't read
        raise _BadValue("text that is not UTF-8")
    if "\0" in value:
        raise _BadValue("text with a NUL byte")
    return value


def _quantity(value: Any) -> str:
    try:
        return _canonical(_text(value.string))
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
