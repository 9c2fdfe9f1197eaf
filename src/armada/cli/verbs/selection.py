"""What several verbs understand alike: comma lists, label selectors, and which queues they choose."""

from collections.abc import Iterable, Sequence
from typing import Any

from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.session import Session


def parts(values: Iterable[str] | None) -> list[str]:
    """The items of an option that may be repeated and may hold comma lists."""
    return [item.strip() for value in values or () for item in value.split(",") if item.strip()]


def labels(values: Iterable[str] | None) -> dict[str, str]:
    """The pairs of `--labels key=value,...`.

    Raises:
        CommandFailed: an item has not exactly one `=`, or an empty side.
    """
    pairs: dict[str, str] = {}
    for item in parts(values):
        key, equals, value = item.partition("=")
        if not equals or "=" in value or not key or not value:
            raise CommandFailed(f"invalid label {item!r}: want KEY=VALUE", ExitStatus.USAGE)
        pairs[key] = value
    return pairs


def matches(queue_labels: dict[str, str], selectors: Iterable[str]) -> bool:
    """True when every selector holds: `key` asks for presence, `key=value` for equality."""
    for selector in selectors:
        key, equals, value = selector.partition("=")
        if key not in queue_labels or (equals and queue_labels[key] != value):
            return False
    return True


def check_selectors(selectors: Sequence[str]) -> None:
    """Refuse selectors of another form than `key` or `key=value`."""
    for selector in selectors:
        if selector.count("=") > 1 or selector.startswith("=") or selector.endswith("="):
            raise CommandFailed(f"invalid selector {selector!r}: want KEY or KEY=VALUE", ExitStatus.USAGE)


def chosen_queues(
    session: Session, names: Sequence[str], selectors: Sequence[str], *, inverse: bool, only_cordoned: bool = False
) -> list[Any]:
    """The queues (API messages, by name) that names or labels choose; all of them when neither is given.

    Raises:
        CommandFailed: both names and labels are given, or the server can't be asked.
    """
    if names and selectors:
        raise CommandFailed(
            "you can select either with a set of queue names or a set of queue labels, but not both", ExitStatus.USAGE
        )
    check_selectors(selectors)

    def is_chosen(queue: Any) -> bool:
        fits = (not names or queue.name in names) and matches(dict(queue.labels), selectors)
        return (fits and (queue.cordoned or not only_cordoned)) is not inverse

    return [queue for queue in all_queues(session) if is_chosen(queue)]


def all_queues(session: Session) -> list[Any]:
    """Every queue, by name, as API messages.

    Raises:
        CommandFailed: the server can't be asked, or its answer broke off.
    """
    from armada_client.armada import submit_pb2

    connection = session.connection
    answers = connection.gathered(connection.submit_service.GetQueues, submit_pb2.StreamingQueueGetRequest(num=0))
    if answers and answers[-1].WhichOneof("event") == "end":
        return [answer.queue for answer in answers[:-1]]
    raise CommandFailed("the server's list of queues broke off before its end")
