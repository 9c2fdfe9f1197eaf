"""Queues: create, update, get, delete, cordon and uncordon."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from armada.cli import manifests, render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote.connection import LISTING_DEADLINE_S
from armada.cli.session import Session, command_function, verb
from armada.cli.verbs import groups, selection
from armada.cli.verbs.operating import retry_policies

KIND: Final = "Queue"

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]
QueueNames = Annotated[list[str] | None, typer.Argument(metavar="[QUEUE]...", help="Names of queues.")]
Factor = Annotated[
    float,
    typer.Option("--priority-factor", metavar="FACTOR", help="The queue's weight is 1 / FACTOR; at least 1."),
]
Owners = Annotated[list[str] | None, typer.Option("--owners", metavar="USER,...", help="Users with every right.")]
GroupOwners = Annotated[
    list[str] | None, typer.Option("--group-owners", metavar="GROUP,...", help="Groups with every right.")
]
Cordoned = Annotated[bool, typer.Option("--cordon", help="Cordon the queue.")]
Labels = Annotated[list[str] | None, typer.Option("--labels", "-l", metavar="KEY=VALUE,...", help="Labels.")]
RetryPolicies = Annotated[
    list[str] | None, typer.Option("--retry-policies", metavar="NAME,...", help="Retry policies; the first one counts.")
]
Selectors = Annotated[
    list[str] | None,
    typer.Option("--match-labels", "-l", metavar="KEY[=VALUE],...", help="Only queues with all of these labels."),
]
Inverse = Annotated[bool, typer.Option("--inverse", help="All queues but these.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
QueueFile = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", help="YAML or JSON file of a Queue or RetryPolicy; - reads stdin."),
]


@groups.create.callback()
@command_function
def create_from_file(session: Session, file: QueueFile = None, *, dry_run: DryRun = False) -> None:
    """Create a queue or a retry policy, by flags or from a file.

    One that exists already is replaced as a whole.
    """
    if file is None:
        raise CommandFailed("nothing to create: give a file (-f FILE) or a noun (create queue NAME)", ExitStatus.USAGE)
    given = manifests.manifest(file, (KIND, retry_policies.KIND))
    if given.kind == retry_policies.KIND:
        retry_policies.create(session, retry_policies.policy_of_file(given), dry_run=dry_run)
        return
    queue = queue_of_file(given)
    if dry_run:
        render.line(f"Would create queue {render.printable(queue.name)} (dry run)")
        return
    session.connection.call(session.connection.submit_service.CreateQueue, queue)
    _told(session, queue, f"Created queue {queue.name}")


@verb(
    groups.create,
    "queue",
    examples="""
    armadactl create queue research
    armadactl create queue nightly --priority-factor 4 --owners dana,lee --labels team=imaging
    """,
)
def create_queue(
    session: Session,
    name: QueueName,
    *,
    priority_factor: Factor = 1.0,
    owners: Owners = None,
    group_owners: GroupOwners = None,
    cordon: Cordoned = False,
    labels: Labels = None,
    retry_policies: RetryPolicies = None,
    dry_run: DryRun = False,
) -> None:
    """Create a queue. One of this name that exists already is replaced as a whole.

    Of two busy queues, the one with half the priority factor gets twice the share. Without owners, you are the owner.
    """
    queue = _queue_message(name, priority_factor, cordon=cordon, labels=labels, policies=retry_policies)
    queue.user_owners.extend(selection.parts(owners))
    queue.group_owners.extend(selection.parts(group_owners))
    if dry_run:
        render.line(f"Would create queue {render.printable(name)} (dry run)")
        return
    session.connection.call(session.connection.submit_service.CreateQueue, queue)
    _told(session, queue, f"Created queue {name}")


@verb(
    groups.update,
    "queue",
    examples="""
    armadactl update queue nightly --priority-factor 2 --keep
    """,
)
def update_queue(
    session: Session,
    name: QueueName,
    *,
    priority_factor: Annotated[
        float | None, typer.Option("--priority-factor", metavar="FACTOR", help="The queue's weight is 1 / FACTOR.")
    ] = None,
    owners: Owners = None,
    group_owners: GroupOwners = None,
    cordon: Cordoned = False,
    labels: Labels = None,
    retry_policies: RetryPolicies = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what is not given instead of resetting it.")] = False,
) -> None:
    """Change a queue. Everything that is not given is reset, unless --keep is set."""
    connection = session.connection
    given = _queue_message(
        name, 1.0 if priority_factor is None else priority_factor, cordon=cordon, labels=labels, policies=retry_policies
    )
    given.user_owners.extend(selection.parts(owners))
    given.group_owners.extend(selection.parts(group_owners))
    if keep:
        queue = _fetched(session, name)
        if priority_factor is not None:
            queue.priority_factor = priority_factor
        for field in ("labels", "retry_policies", "user_owners", "group_owners"):
            if getattr(given, field):
                queue.ClearField(field)
        queue.cordoned = queue.cordoned or cordon
        given.ClearField("priority_factor")
        given.ClearField("cordoned")
        queue.MergeFrom(given)
        given = queue
    connection.call(connection.submit_service.UpdateQueue, given)
    _told(session, given, f"Updated queue {name}")


@verb(groups.delete, "queue", examples="armadactl delete queue nightly")
def delete_queue(session: Session, name: QueueName) -> None:
    """Delete a queue. It is no error when there is none of this name."""
    from armada_client.armada import submit_pb2

    connection = session.connection
    connection.call(connection.submit_service.DeleteQueue, submit_pb2.QueueDeleteRequest(name=name))
    render.emit(
        session.output,
        {"deleted": {"queue": name}},
        lambda: f"Deleted queue {render.printable(name, one_line=True)} (or it did not exist)",
    )


@verb(groups.get, "queue", examples="armadactl get queue nightly\narmadactl get queue nightly -o yaml > nightly.yaml")
def get_queue(session: Session, name: QueueName) -> None:
    """Show one queue.

    With -o yaml it is printed as a file that `create -f` reads.
    """
    queue = _fetched(session, name)
    render.emit(session.output, queue_document(queue), lambda: _details(queue))


@verb(
    groups.get,
    "queues",
    examples="""
    armadactl get queues
    armadactl get queues --match-labels team=imaging --only-cordoned
    """,
)
def get_queues(
    session: Session,
    names: QueueNames = None,
    *,
    match_labels: Selectors = None,
    inverse: Inverse = False,
    only_cordoned: Annotated[bool, typer.Option("--only-cordoned", help="Only cordoned queues.")] = False,
) -> None:
    """List queues: all, or those that names or labels choose."""
    chosen = selection.chosen_queues(
        session, names or (), selection.parts(match_labels), inverse=inverse, only_cordoned=only_cordoned
    )
    items = [queue_document(queue) for queue in chosen]
    listing = {"apiVersion": manifests.API_VERSION, "kind": "QueueList", "items": items}
    render.emit(session.output, listing, lambda: _listing(chosen))


@verb(
    groups.cordon,
    "queues",
    names=("queue",),
    examples="armadactl cordon queues nightly\narmadactl cordon queues -l team=imaging --dry-run",
)
def cordon_queues(
    session: Session,
    names: QueueNames = None,
    *,
    match_labels: Selectors = None,
    inverse: Inverse = False,
    dry_run: DryRun = False,
) -> None:
    """Cordon queues: their jobs wait, running ones go on."""
    _mark(session, names or (), match_labels, inverse=inverse, dry_run=dry_run, cordon=True)


@verb(groups.uncordon, "queues", names=("queue",), examples="armadactl uncordon queues nightly")
def uncordon_queues(
    session: Session,
    names: QueueNames = None,
    *,
    match_labels: Selectors = None,
    inverse: Inverse = False,
    dry_run: DryRun = False,
) -> None:
    """Lift the cordon of queues."""
    _mark(session, names or (), match_labels, inverse=inverse, dry_run=dry_run, cordon=False)


def _mark(
    session: Session,
    names: Sequence[str],
    match_labels: list[str] | None,
    *,
    inverse: bool,
    dry_run: bool,
    cordon: bool,
) -> None:
    from armada_client.armada import submit_pb2

    word = "cordoned" if cordon else "uncordoned"
    selectors = selection.parts(match_labels)
    if not names and not selectors:
        raise CommandFailed(
            f"either queue names or --match-labels must say which queues are to be {word}", ExitStatus.USAGE
        )
    connection = session.connection
    chosen = [queue.name for queue in selection.chosen_queues(session, names, selectors, inverse=inverse)]
    service = connection.queue_service
    method, request = (
        (service.CordonQueue, submit_pb2.QueueCordonRequest)
        if cordon
        else (service.UncordonQueue, submit_pb2.QueueUncordonRequest)
    )
    if session.is_human:
        heading = "Cordoning" if cordon else "Uncordoning"
        render.line(f"{heading} the following queues:{' (DRY RUN)' if dry_run else ''}")
    for name in chosen:
        if not dry_run:
            connection.call(method, request(name=name))
        if session.is_human:
            render.line(render.printable(name if dry_run else f"{name} {word}", one_line=True))
    if not session.is_human:
        render.emit(session.output, {"queues": chosen, "cordoned": cordon, "dryRun": dry_run}, str)


def _queue_message(
    name: str, factor: float, *, cordon: bool, labels: list[str] | None, policies: list[str] | None
) -> Any:
    from armada_client.armada import submit_pb2

    return submit_pb2.Queue(
        name=name,
        priority_factor=factor,
        cordoned=cordon,
        labels=selection.labels(labels),
        retry_policies=selection.parts(policies),
    )


def _fetched(session: Session, name: str) -> Any:
    from armada_client.armada import submit_pb2

    connection = session.connection
    request = submit_pb2.QueueGetRequest(name=name)
    return connection.call(connection.submit_service.GetQueue, request, deadline_s=LISTING_DEADLINE_S)


def queue_of_file(given: manifests.Manifest) -> Any:
    """The queue that a file describes, as an API message.

    Raises:
        CommandFailed: it holds fields that a queue does not have.
    """
    from armada_client.armada import submit_pb2

    document, source = dict(given.fields), given.source
    for ignored in ("userOwners", "groupOwners"):
        if document.pop(ignored, None) is not None:
            render.warning(f"{source}: {ignored} is not read from files; give `permissions` instead")
    queue: Any = manifests.message(document, submit_pb2.Queue, source=source)
    if not queue.name:
        raise CommandFailed(f"{source}: name is missing", ExitStatus.USAGE)
    if "priorityFactor" not in document:
        queue.priority_factor = 1.0
    return queue


def queue_document(queue: Any) -> dict[str, Any]:
    """The queue as a file describes it: what is unset or zero is left out."""
    document: dict[str, Any] = manifests.document(queue)
    return {"apiVersion": manifests.API_VERSION, "kind": KIND, **document}


def _told(session: Session, queue: Any, text: str) -> None:
    render.emit(session.output, queue_document(queue), lambda: render.printable(text, one_line=True))


def _pairs(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _listing(queues: list[Any]) -> Any:
    rows = [
        (queue.name, f"{queue.priority_factor:g}", "yes" if queue.cordoned else "", _pairs(dict(queue.labels)))
        for queue in queues
    ]
    if not rows:
        return "No queues."
    return render.table(("name", "priority factor", "cordoned", "labels"), rows, right=("priority factor",))


def _details(queue: Any) -> Any:
    rows: list[tuple[str, str]] = [
        ("Name", queue.name),
        ("Priority factor", f"{queue.priority_factor:g}"),
        ("Cordoned", "yes" if queue.cordoned else "no"),
    ]
    if queue.labels:
        rows.append(("Labels", _pairs(dict(queue.labels))))
    for permission in queue.permissions:
        who = ", ".join(f"{subject.kind} {subject.name}" for subject in permission.subjects)
        rows.append(("Permission", f"{who}: {', '.join(permission.verbs)}"))
    for name, limits in sorted(queue.resource_limits_by_priority_class_name.items()):
        rows.append((f"Limit of {name}", _fractions(limits.maximum_resource_fraction)))
        for pool, limit in sorted(limits.maximum_resource_fraction_by_pool.items()):
            rows.append((f"Limit of {name} in {pool}", _fractions(limit.maximum_resource_fraction)))
    if queue.retry_policies:
        rows.append(("Retry policies", ", ".join(queue.retry_policies)))
    return render.fields(rows)


def _fractions(limits: Any) -> str:
    return ", ".join(f"{resource} {fraction:.1%}" for resource, fraction in sorted(limits.items())) or "none"
