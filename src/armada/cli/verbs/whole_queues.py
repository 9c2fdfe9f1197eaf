"""Cancel and preempt over whole queues."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.session import Session, verb
from armada.cli.verbs import groups, selection

STATES = ("queued", "leased", "pending", "running")

QueueNames = Annotated[list[str] | None, typer.Argument(metavar="[QUEUE]...", help="Names of queues.")]
States = Annotated[
    list[str] | None,
    typer.Option("--job-states", "-s", metavar="STATE,...", help="Jobs in these states: " + ", ".join(STATES) + "."),
]
Classes = Annotated[
    list[str] | None, typer.Option("--priority-classes", "-p", metavar="CLASS,...", help="Jobs of these classes.")
]
AllClasses = Annotated[bool, typer.Option("--all-priority-classes", "-a", help="Jobs of every class.")]
Pools = Annotated[list[str] | None, typer.Option("--pools", metavar="POOL,...", help="Jobs in these pools only.")]
Selector = Annotated[
    list[str] | None,
    typer.Option("--selector", "-l", metavar="KEY[=VALUE],...", help="Queues with all of these labels."),
]
Inverse = Annotated[bool, typer.Option("--inverse", help="All queues but these.")]
OnlyCordoned = Annotated[bool, typer.Option("--only-cordoned", help="Only cordoned queues.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@verb(
    groups.cancel,
    "queues",
    names=("queue",),
    examples="""
    armadactl cancel queues nightly --job-states queued --all-priority-classes
    armadactl cancel queues -l team=imaging -s queued,running -p armada-preemptible --dry-run
    """,
)
def cancel_queues(
    session: Session,
    names: QueueNames = None,
    *,
    job_states: States = None,
    priority_classes: Classes = None,
    all_priority_classes: AllClasses = False,
    pools: Pools = None,
    selector: Selector = None,
    inverse: Inverse = False,
    only_cordoned: OnlyCordoned = False,
    dry_run: DryRun = False,
) -> None:
    """Cancel the jobs of whole queues, by state and class."""
    from armada_client.armada import submit_pb2

    states = selection.parts(job_states)
    if not states:
        raise CommandFailed("--job-states must say which jobs: " + ", ".join(STATES), ExitStatus.USAGE)
    for state in states:
        if state not in STATES:
            raise CommandFailed(f"{state} is no state to cancel in: one of {', '.join(STATES)}", ExitStatus.USAGE)
    classes = _classes(priority_classes, everything=all_priority_classes)
    chosen = _queues(session, names or (), selector, inverse=inverse, only_cordoned=only_cordoned)
    wanted_pools = selection.parts(pools)
    for name in chosen:
        _say(session, "cancellation", name, classes, states, wanted_pools)
        if not dry_run:
            request = submit_pb2.QueueCancelRequest(
                name=name,
                priorityClasses=classes,
                jobStates=[submit_pb2.JobState.Value(state.upper()) for state in states],
                pools=wanted_pools,
            )
            session.connection.call(session.connection.queue_service.CancelOnQueue, request)
    _tell(session, chosen, dry_run=dry_run)


@verb(
    groups.preempt,
    "queues",
    names=("queue",),
    examples="armadactl preempt queues nightly --priority-classes armada-preemptible",
)
def preempt_queues(
    session: Session,
    names: QueueNames = None,
    *,
    priority_classes: Classes = None,
    all_priority_classes: AllClasses = False,
    pools: Pools = None,
    selector: Selector = None,
    inverse: Inverse = False,
    only_cordoned: OnlyCordoned = False,
    dry_run: DryRun = False,
) -> None:
    """Preempt the jobs of whole queues that have begun and are of a preemptible class."""
    from armada_client.armada import submit_pb2

    classes = _classes(priority_classes, everything=all_priority_classes)
    chosen = _queues(session, names or (), selector, inverse=inverse, only_cordoned=only_cordoned)
    wanted_pools = selection.parts(pools)
    for name in chosen:
        _say(session, "preemption", name, classes, [], wanted_pools)
        if not dry_run:
            request = submit_pb2.QueuePreemptRequest(name=name, priorityClasses=classes, pools=wanted_pools)
            session.connection.call(session.connection.queue_service.PreemptOnQueue, request)
    _tell(session, chosen, dry_run=dry_run)


def _classes(given: list[str] | None, *, everything: bool) -> list[str]:
    """The classes to address; none means all, which must be asked for outright."""
    classes = selection.parts(given)
    if bool(classes) is everything:
        raise CommandFailed("give either --priority-classes or --all-priority-classes", ExitStatus.USAGE)
    return classes


def _queues(
    session: Session, names: Sequence[str], selector: list[str] | None, *, inverse: bool, only_cordoned: bool
) -> list[str]:
    selectors = selection.parts(selector)
    if not names and not selectors:
        raise CommandFailed("queues must be chosen, by their names or by --selector", ExitStatus.USAGE)
    chosen: list[Any] = selection.chosen_queues(session, names, selectors, inverse=inverse, only_cordoned=only_cordoned)
    return [queue.name for queue in chosen]


def _say(session: Session, what: str, name: str, classes: list[str], states: list[str], pools: list[str]) -> None:
    if session.is_human:
        wanted = [f"queue: {name}", f"priorityClasses: {','.join(classes) or 'all'}"]
        wanted += [f"jobStates: {','.join(states)}"] if states else []
        wanted.append(f"pools: {','.join(pools) or 'all'}")
        render.line(render.printable(f"Requesting {what} of jobs matching {', '.join(wanted)}", one_line=True))


def _tell(session: Session, chosen: list[str], *, dry_run: bool) -> None:
    if not session.is_human:
        render.emit(session.output, {"queues": chosen, "dryRun": dry_run}, str)
