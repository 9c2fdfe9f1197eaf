"""Between the files of users and API messages: strict on the way in, readable on the way out."""

from typing import TYPE_CHECKING, Any, TypeVar

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.model.errors import InvalidRequest

if TYPE_CHECKING:
    from google.protobuf.message import Message

AnyMessage = TypeVar("AnyMessage", bound="Message")


def message(value: Any, kind: type[AnyMessage], *, source: str, path: str = "") -> AnyMessage:
    """The message that JSON-like values describe; `path` says where in the file `source` they stand.

    Unknown fields, wrong types and bad quantities are refused; numbers and booleans become text where text is wanted.

    Raises:
        CommandFailed: one line with the file and the place of the mistake.
    """
    from armada.wire.kubernetes.reading import Reading, from_json

    try:
        return from_json(value, kind, path=path, how=Reading(coerce=True))
    except InvalidRequest as error:
        raise CommandFailed(f"{source}: {error}", ExitStatus.USAGE) from error


def document(shown: Any) -> dict[str, Any]:
    """An API message as JSON-like values: camelCase keys, Kubernetes objects as Kubernetes writes them, no zeros."""
    from armada.wire.kubernetes.writing import to_json

    converted: dict[str, Any] = render.plain_numbers(to_json(shown))
    return converted
