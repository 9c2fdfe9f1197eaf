"""Kubernetes JSON (or the same written as YAML) into protobuf messages, strictly.

The reverse of `writing.to_json`, for any message: Kubernetes objects and the API's own. Every refusal names the
place, such as `jobs[0].podSpec.containers[1].imagee: unknown field, did you mean image?`.
"""

import base64
import binascii
import datetime as dt
import difflib
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from armada.model.errors import InvalidRequest
from armada.model.resources import canonical_quantity
from armada.wire.kubernetes import fields

AnyMessage = TypeVar("AnyMessage", bound=Message)

_INTEGERS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


class Reading(msgspec.Struct, frozen=True):
    """How to read: `coerce` takes numbers and booleans where text is wanted; `ignore_unknown` passes over odd keys."""

    coerce: bool = False
    ignore_unknown: bool = False


STRICT: Final = Reading()


def from_json(value: Any, kind: type[AnyMessage], *, path: str = "", how: Reading = STRICT) -> AnyMessage:
    """Return a message made of JSON values; `path` names the value in errors.

    Raises:
        InvalidRequest: a wrong type, an unknown key, a bad quantity, a NUL byte, a number out of range.
    """
    message = kind()
    _Reader(how).message(message, value, path)
    return message


def _fail(path: str, text: str) -> InvalidRequest:
    return InvalidRequest(f"{path}: {text}" if path else text)


def _kind_of(value: Any) -> str:
    if value is None:
        return "nothing"
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (int, "a number"),
        (float, "a number"),
        (str, "text"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), f"a {type(value).__name__}")


@cache
def _places(message: Descriptor) -> Mapping[str, tuple[tuple[str, ...], FieldDescriptor]]:
    """For every JSON key: the embedded messages on the way to its field, and the field."""
    places: dict[str, tuple[tuple[str, ...], FieldDescriptor]] = {}
    for field in message.fields:
        if fields.is_embedded(field):
            for key, (way, inner) in _places(cast(Descriptor, field.message_type)).items():
                places[key] = ((field.name, *way), inner)
        else:
            places[field.json_name] = ((), field)
    return places


class _Reader:
    """One reading, under one set of rules."""

    def __init__(self, how: Reading) -> None:
        self._how = how

    def message(self, message: Any, value: Any, path: str) -> None:
        special = _SPECIAL.get(message.DESCRIPTOR.full_name)
        if special is not None:
            special(message, value, path)
            return
        if not isinstance(value, dict):
            raise _fail(path, f"an object is wanted, not {_kind_of(value)}")
        places = _places(message.DESCRIPTOR)
        for key, member in value.items():
            place = places.get(key)
            where = f"{path}.{key}" if path else str(key)
            if place is not None:
                self._member(message, place, member, where)
            elif not self._how.ignore_unknown:
                raise _fail(where, f"unknown field{_suggestion(str(key), places)}")

    def _member(self, message: Any, place: tuple[tuple[str, ...], FieldDescriptor], member: Any, path: str) -> None:
        if member is None:
            return
        way, field = place
        for name in way:
            message = getattr(message, name)
        try:
            if fields.is_map(field):
                self._map(getattr(message, field.name), field, member, path)
            elif field.is_repeated:
                self._list(getattr(message, field.name), field, member, path)
            elif field.message_type is None:
                setattr(message, field.name, self._scalar(field, member, path))
            else:
                inner = getattr(message, field.name)
                inner.SetInParent()
                self.message(inner, member, path)
        except InvalidRequest:
            raise
        except (ValueError, TypeError) as error:
            raise _fail(path, f"can't be taken ({error})") from error

    def _list(self, values: Any, field: FieldDescriptor, member: Any, path: str) -> None:
        if not isinstance(member, list):
            raise _fail(path, f"a list is wanted, not {_kind_of(member)}")
        for index, item in enumerate(member):
            place = f"{path}[{index}]"
            if field.message_type is None:
                values.append(self._scalar(field, item, place))
            else:
                self.message(values.add(), item, place)

    def _map(self, values: Any, field: FieldDescriptor, member: Any, path: str) -> None:
        if not isinstance(member, dict):
            raise _fail(path, f"an object is wanted, not {_kind_of(member)}")
        value_field = fields.value_field(field)
        for key, item in member.items():
            place = f"{path}.{key}"
            name = _map_key(fields.key_field(field), key, place)
            if value_field.message_type is None:
                values[name] = self._scalar(value_field, item, place)
            else:
                self.message(values[name], item, place)

    def _scalar(self, field: FieldDescriptor, value: Any, path: str) -> Any:
        if field.enum_type is not None:
            return _enum(field.enum_type, value, path)
        kind = field.cpp_type
        if field.type == FieldDescriptor.TYPE_BYTES:
            return _bytes(value, path)
        if kind == FieldDescriptor.CPPTYPE_STRING:
            return _string(value, path, coerce=self._how.coerce)
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            if not isinstance(value, bool):
                raise _fail(path, f"true or false is wanted, not {_kind_of(value)}")
            return value
        return _number(kind, value, path)


def _suggestion(key: str, places: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(key, places, n=1)
    return f", did you mean {near[0]}?" if near else ""


def _map_key(field: FieldDescriptor, key: Any, path: str) -> str | int:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if not isinstance(key, str):
            raise _fail(path, f"a key must be text, not {_kind_of(key)}")
        return _checked(key, path)
    try:
        return int(key)
    except (TypeError, ValueError) as error:
        raise _fail(path, "a key must be a whole number here") from error


def _number(kind: int, value: Any, path: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fail(path, f"a number is wanted, not {_kind_of(value)}")
    if kind not in _INTEGERS:
        return float(value)
    low, high = _INTEGERS[kind]
    if not math.isfinite(value) or value != int(value):
        raise _fail(path, f"a whole number is wanted, not {value}")
    if not low <= value <= high:
        raise _fail(path, f"{value} is outside {low} to {high}")
    return int(value)


def _string(value: Any, path: str, *, coerce: bool) -> str:
    if coerce:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if not isinstance(value, str):
        raise _fail(path, f"text is wanted, not {_kind_of(value)}")
    return _checked(value, path)


def _checked(text: str, path: str) -> str:
    if "\0" in text:
        raise _fail(path, "text with a NUL byte")
    return text


def _bytes(value: Any, path: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise _fail(path, "base64 text is wanted") from error


def _enum(kind: EnumDescriptor, value: Any, path: str) -> int:
    if isinstance(value, str) and value in kind.values_by_name:
        return kind.values_by_name[value].number
    if isinstance(value, int) and not isinstance(value, bool) and value in kind.values_by_number:
        return value
    raise _fail(path, f"one of {', '.join(kind.values_by_name)} is wanted, not {value!r}")


def _read_quantity(message: Any, value: Any, path: str) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _fail(path, f"a quantity is wanted, not {_kind_of(value)}")
    try:
        message.string = canonical_quantity(value.strip() if isinstance(value, str) else repr(value))
    except InvalidRequest as error:
        raise _fail(path, str(error)) from error


def _read_int_or_string(message: Any, value: Any, path: str) -> None:
    if isinstance(value, str):
        message.type = 1
        message.strVal = _checked(value, path)
    elif isinstance(value, int) and not isinstance(value, bool):
        message.type = 0
        message.intVal = value
    else:
        raise _fail(path, f"a number or a name is wanted, not {_kind_of(value)}")


def _read_time(message: Any, value: Any, path: str) -> None:
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise _fail(path, "a time such as 2026-01-31T12:00:00Z is wanted") from error
    message.seconds = int(moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp())
    message.nanos = 0


def _read_raw_json(message: Any, value: Any, path: str) -> None:
    del path
    message.Raw = msgspec.json.encode(value)


_SPECIAL: Final[dict[str, Callable[[Any, Any, str], None]]] = {
    fields.QUANTITY: _read_quantity,
    fields.INT_OR_STRING: _read_int_or_string,
    fields.RAW_JSON: _read_raw_json,
    **dict.fromkeys(fields.TIMES, _read_time),
}
