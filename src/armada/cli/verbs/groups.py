"""The groups of commands (`armadactl get ...`); the nouns' files add their commands to them."""

from typing import Final

import typer

from armada.cli.session import group

JOBS: Final = "Jobs"
QUEUES: Final = "Queues"
THIS_COMMAND: Final = "This command"

create: Final = typer.Typer(
    help="Create a queue or a retry policy, by flags or from a file.",
    rich_markup_mode="rich",
    invoke_without_command=True,
)
get: Final = group("Show jobs, queues, retry policies and reports.")
update: Final = group("Change a queue or a retry policy.")
delete: Final = group("Delete a queue or a retry policy.")
cordon: Final = group("Let queues wait: nothing new starts, what runs goes on, submissions are accepted.")
uncordon: Final = group("Let cordoned queues go on.")
cancel: Final = group("Cancel jobs, queued or running.")
preempt: Final = group("Stop running jobs of preemptible classes, to make room.")
reprioritize: Final = group("Change the order of jobs inside their queue.")
config: Final = group("Choose the server to talk to.")

_NAMED: Final = {
    "get": (get, JOBS),
    "cancel": (cancel, JOBS),
    "reprioritize": (reprioritize, JOBS),
    "preempt": (preempt, JOBS),
    "create": (create, QUEUES),
    "update": (update, QUEUES),
    "delete": (delete, QUEUES),
    "cordon": (cordon, QUEUES),
    "uncordon": (uncordon, QUEUES),
    "config": (config, THIS_COMMAND),
}


def attach(app: typer.Typer) -> None:
    """Add the groups to the command line."""
    for name, (commands, panel) in _NAMED.items():
        app.add_typer(commands, name=name, rich_help_panel=panel)
