"""`armadactl`: the command line of users. Collects the verbs, turns failures into texts and exit statuses."""

import os
import sys
from typing import Any, Final

import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus, exit_code
from armada.cli.session import ConfigFile, ExitCodes, Output, ServerUrl, TargetName, help_text
from armada.cli.verbs import (
    configuration,
    groups,
    jobs,
    logs,
    queues,
    reports,
    submit,
    watch,
    whole_queues,
)
from armada.cli.verbs.operating import executors, retry_policies

_INTRODUCTION: Final = """Submit jobs to Armada, follow them, and look after queues.

\b
[bold]A first job[/bold]
  [cyan]armadactl create queue research[/cyan]
  [cyan]armadactl submit jobs.yaml[/cyan]                           what is in it: [cyan]armadactl submit --help[/cyan]
  [cyan]armadactl watch research hello --exit-if-inactive[/cyan]
  [cyan]armadactl logs JOB_ID[/cyan]

[bold]Output.[/bold] Tables for people; [cyan]-o json[/cyan] or [cyan]-o yaml[/cyan] (or ARMADACTL_OUTPUT=json) for
programs, with every command. Errors go to stderr.

[bold]Exit status.[/bold] 0 when it worked, 1 when it did not. With [cyan]--exit-codes detailed[/cyan] (or
ARMADACTL_EXIT_CODES=detailed): 1 the server refused, 2 wrong command line or file, 3 server not reachable, 4 not found,
5 not allowed, 6 a watched job failed. 130 after Ctrl-C.
"""

app = typer.Typer(
    name="armadactl",
    help=help_text(_INTRODUCTION),
    rich_markup_mode="rich",
    add_completion=True,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


@app.callback()
def root(
    invocation: typer.Context,
    *,
    target_name: TargetName = None,
    server_url: ServerUrl = None,
    config_file: ConfigFile = None,
    output: Output = None,
    exit_codes: ExitCodes = None,
) -> None:
    """Print the help when no command is given; the options are read by the commands themselves."""
    del target_name, server_url, config_file, output, exit_codes
    if invocation.invoked_subcommand is None:
        typer.echo(invocation.get_help())


NOUNS: Final = (configuration, executors, jobs, queues, reports, retry_policies, whole_queues)
"""Files that add their commands to the groups as they are imported."""

submit.register(app)
watch.register(app)
logs.register(app)
groups.attach(app)
configuration.register(app)


def main(arguments: list[str] | None = None) -> None:
    """Run `armadactl` and leave the process with the command's exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    status = run(given)
    sys.exit(exit_code(status, detailed=_is_detailed(given)))


def run(arguments: list[str]) -> ExitStatus:
    """Run one command; failures are printed to stderr and come back as a status."""
    try:
        stopped: Any = app(args=arguments, prog_name="armadactl", standalone_mode=False)
    except CommandFailed as failure:
        _complain(failure.message, failure.hint)
        return failure.status
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        _complain(message.rstrip(), "Run 'armadactl --help', or the command with --help, for usage.")
        return ExitStatus.USAGE
    except (KeyboardInterrupt, typer.Abort):
        return ExitStatus.INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has left (`armadactl watch ... | head`): nothing more to say to anyone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.OK
    return ExitStatus(stopped) if isinstance(stopped, int) else ExitStatus.OK


def _complain(message: str, hint: str) -> None:
    sys.stderr.write(f"Error: {render.printable(message)}\n")
    if hint:
        sys.stderr.write(f"{render.printable(hint)}\n")
    sys.stderr.flush()


def _is_detailed(arguments: list[str]) -> bool:
    """Whether exit codes are detailed; read here because a wrong command line never reaches the options."""
    chosen = os.environ.get("ARMADACTL_EXIT_CODES", "simple")
    for position, argument in enumerate(arguments):
        if argument == "--exit-codes" and position + 1 < len(arguments):
            chosen = arguments[position + 1]
        elif argument.startswith("--exit-codes="):
            chosen = argument.partition("=")[2]
    return chosen == "detailed"
