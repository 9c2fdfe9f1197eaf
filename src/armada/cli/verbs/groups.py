"""The groups of commands (`armadactl get ...`); the nouns' files add their commands to them."""

from typing import Final

import typer

from armada.cli.session import group

create: Final = typer.Typer(
    help="Create a queue, by flags or from a file.", rich_markup_mode="rich", invoke_without_command=True
)
get: Final = group("Show queues and jobs.")
update: Final = group("Change a queue.")
delete: Final = group("Delete a queue.")
cordon: Final = group("Keep queues from getting anything new scheduled; what runs goes on, submissions are accepted.")
uncordon: Final = group("Let cordoned queues be scheduled again.")
cancel: Final = group("Cancel jobs: queued ones leave their queue, running ones are stopped.")
preempt: Final = group("Stop running jobs that may be preempted, to make room.")
reprioritize: Final = group("Change the order of jobs inside their queue: a smaller priority goes first.")
config: Final = group("Choose the server to talk to, among the contexts of the configuration file.")

_NAMED: Final = {
    "create": create,
    "get": get,
    "update": update,
    "delete": delete,
    "cancel": cancel,
    "reprioritize": reprioritize,
    "preempt": preempt,
    "cordon": cordon,
    "uncordon": uncordon,
    "config": config,
}


def attach(app: typer.Typer) -> None:
    """Add the groups to the command line."""
    for name, commands in _NAMED.items():
        app.add_typer(commands, name=name)
