"""Executors and nodes: cordon, uncordon, delete; cancel and preempt what runs there."""

from typing import Annotated

import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.session import Session, verb
from armada.cli.verbs import groups, selection
from armada.model.submission import PlaceJobsRequest

ExecutorName = Annotated[str, typer.Argument(metavar="EXECUTOR", help="Name of the executor.")]
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.")]
Reason = Annotated[str, typer.Argument(metavar="REASON", help="Why; others will read it.")]
OfExecutor = Annotated[str, typer.Option("--executor", "-e", metavar="EXECUTOR", help="The node's executor.")]
Queues = Annotated[
    list[str] | None,
    typer.Option("--queues", "-q", metavar="QUEUE,...", help="Jobs of these queues; all when left out."),
]
Classes = Annotated[
    list[str] | None, typer.Option("--priority-classes", "-p", metavar="CLASS,...", help="Jobs of these classes.")
]
AllClasses = Annotated[bool, typer.Option("--all-priority-classes", "-a", help="Jobs of every class.")]
Pools = Annotated[list[str] | None, typer.Option("--pools", metavar="POOL,...", help="Jobs in these pools only.")]


@verb(groups.cordon, "executor", examples='armadactl cordon executor east "new network"')
def cordon_executor(session: Session, name: ExecutorName, reason: Reason) -> None:
    """Cordon an executor: it gets no new jobs, what runs there goes on."""
    _mark(session, name, reason, cordon=True)


@verb(groups.uncordon, "executor", examples="armadactl uncordon executor east")
def uncordon_executor(session: Session, name: ExecutorName) -> None:
    """Lift the cordon of an executor."""
    _mark(session, name, "", cordon=False)


def _mark(session: Session, name: str, reason: str, *, cordon: bool) -> None:
    from armada.wire.operating.executors import settings_request

    if session.is_human:
        render.line(f"{'Cordoning' if cordon else 'Uncordoning'} the following executors:")
    connection = session.connection
    connection.call(connection.executor_service.UpsertExecutorSettings, settings_request(name, reason, cordoned=cordon))
    word = "cordoned" if cordon else "uncordoned"
    render.emit(
        session.output,
        {"executors": [name], "cordoned": cordon},
        lambda: render.printable(f"{name} {word}", one_line=True),
    )


@verb(groups.delete, "executor", examples="armadactl delete executor east")
def delete_executor(session: Session, name: ExecutorName) -> None:
    """Forget an executor that is gone for good; one that lives comes back with its next report."""
    from armada.wire.operating.executors import delete_request

    connection = session.connection
    connection.call(connection.executor_service.DeleteExecutor, delete_request(name))
    render.emit(
        session.output,
        {"deleted": {"executor": name}},
        lambda: f"Deleted executor {render.printable(name, one_line=True)} (or it did not exist)",
    )


@verb(groups.cancel, "executor", examples="armadactl cancel executor east --queues nightly --all-priority-classes")
def cancel_executor(
    session: Session,
    name: ExecutorName,
    *,
    queues: Queues = None,
    priority_classes: Classes = None,
    all_priority_classes: AllClasses = False,
    pools: Pools = None,
) -> None:
    """Cancel the jobs that run on an executor."""
    classes = _classes(priority_classes, everything=all_priority_classes)
    _end(session, PlaceJobsRequest(name, None, _parts(queues), classes, _parts(pools)), cancels=True)


@verb(groups.preempt, "executor", examples="armadactl preempt executor east -p armada-preemptible")
def preempt_executor(
    session: Session,
    name: ExecutorName,
    *,
    queues: Queues = None,
    priority_classes: Classes = None,
    all_priority_classes: AllClasses = False,
    pools: Pools = None,
) -> None:
    """Preempt the jobs of preemptible classes that run on an executor."""
    classes = _classes(priority_classes, everything=all_priority_classes)
    _end(session, PlaceJobsRequest(name, None, _parts(queues), classes, _parts(pools)), cancels=False)


@verb(groups.cancel, "node", examples="armadactl cancel node worker-7 --executor east --all-priority-classes")
def cancel_node(
    session: Session,
    name: NodeName,
    *,
    executor: OfExecutor,
    queues: Queues = None,
    priority_classes: Classes = None,
    all_priority_classes: AllClasses = False,
) -> None:
    """Cancel the jobs that run on a node."""
    classes = _classes(priority_classes, everything=all_priority_classes)
    _end(session, PlaceJobsRequest(executor, name, _parts(queues), classes), cancels=True)


@verb(groups.preempt, "node", examples="armadactl preempt node worker-7 --executor east -p armada-preemptible")
def preempt_node(
    session: Session,
    name: NodeName,
    *,
    executor: OfExecutor,
    queues: Queues = None,
    priority_classes: Classes = None,
    all_priority_classes: AllClasses = False,
) -> None:
    """Preempt the jobs of preemptible classes that run on a node."""
    classes = _classes(priority_classes, everything=all_priority_classes)
    _end(session, PlaceJobsRequest(executor, name, _parts(queues), classes), cancels=False)


def _parts(values: list[str] | None) -> tuple[str, ...]:
    return tuple(selection.parts(values))


def _classes(given: list[str] | None, *, everything: bool) -> tuple[str, ...]:
    """The classes to address; none means all, which must be asked for outright."""
    classes = _parts(given)
    if bool(classes) is everything:
        raise CommandFailed("give either --priority-classes or --all-priority-classes", ExitStatus.USAGE)
    return classes


def _end(session: Session, place: PlaceJobsRequest, *, cancels: bool) -> None:
    from armada.wire.operating.executors import cancel_request, preempt_request

    connection, what = session.connection, "cancellation" if cancels else "preemption"
    wanted = [f"node: {place.node_name}"] if place.node_name is not None else []
    wanted += [f"executor: {place.executor_id}", f"queues: {','.join(place.queues) or 'all'}"]
    wanted.append(f"priority-classes: {','.join(place.priority_classes) or 'all'}")
    wanted += [f"pools: {','.join(place.pools) or 'all'}"] if place.node_name is None else []
    if session.is_human:
        render.line(render.printable(f"Requesting {what} of jobs matching {', '.join(wanted)}", one_line=True))
    # The server takes no queues for none at all.
    queues = place.queues or tuple(queue.name for queue in selection.all_queues(session))
    place = PlaceJobsRequest(place.executor_id, place.node_name, queues, place.priority_classes, place.pools)
    service = connection.executor_service if place.node_name is None else connection.node_service
    kind = "Executor" if place.node_name is None else "Node"
    method = getattr(service, f"{'Cancel' if cancels else 'Preempt'}On{kind}")
    connection.call(method, cancel_request(place) if cancels else preempt_request(place))
    if not session.is_human:
        render.emit(
            session.output, {"executor": place.executor_id, "node": place.node_name, "queues": list(queues)}, str
        )
