"""Between the files of users and API messages: strict on the way in, readable on the way out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.model.errors import InvalidRequest

if TYPE_CHECKING:
    from google.protobuf.message import Message

API_VERSION: Final = "armadaproject.io/v1beta1"


class Manifest(NamedTuple):
    """What a file describes: its kind, its other fields, and what messages call the file."""

    kind: str
    fields: dict[str, Any]
    source: str


def manifest(path: Path, kinds: Sequence[str]) -> Manifest:
    """The first document of a file, which must be of one of these kinds.

    Raises:
        CommandFailed: the file is broken, or of another kind or version.
    """
    from armada.cli import documents

    source = documents.source_name(path)
    document, count = documents.read_document(path)
    if count > 1:
        render.warning(f"{source} holds {count} documents; only the first is read")
    version, kind = document.pop("apiVersion", ""), document.pop("kind", "")
    if version != API_VERSION:
        raise CommandFailed(f"{source}: apiVersion must be {API_VERSION}, not {version!r}", ExitStatus.USAGE)
    if kind not in kinds:
        raise CommandFailed(f"{source}: kind must be one of {', '.join(kinds)}, not {kind!r}", ExitStatus.USAGE)
    return Manifest(kind, document, source)


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
