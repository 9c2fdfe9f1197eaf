"""`armada`: the command line of operators. Runs the system or a part of it, and tools that need no server."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from armada.cli import decide, render, replay, simulate
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.session import help_text

_INTRODUCTION: Final = """Run Armada: one batch queue above a fleet of clusters.

\b
[bold]Begin here[/bold]
  [cyan]armada demo[/cyan]                  see the whole system work, in a minute
  [cyan]armada up[/cyan]                    run everything in one process; jobs are processes of this machine
  [cyan]armada up --simulate 3x20[/cyan]    the same, and 3 simulated clusters of 20 nodes
  [cyan]armadactl --help[/cyan]             the command line of users

Exit status: 0 when it worked, 1 when it failed or could not start, 2 for a wrong command line.
"""

app = typer.Typer(
    name="armada",
    help=help_text(_INTRODUCTION),
    rich_markup_mode="rich",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

_PORTS: Final = "Addresses"

DataFolder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where everything is kept.  [dim]\\[default: ./armada-data][/dim]"),
]
SettingsFiles = Annotated[
    list[Path] | None, typer.Option("--config", metavar="FILE", help="Settings file; later ones win. May be repeated.")
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Address to listen on.  [dim]\\[default: 127.0.0.1][/dim]",
        rich_help_panel=_PORTS,
    ),
]
GrpcPort = Annotated[
    int | None,
    typer.Option(
        "--grpc-port",
        metavar="PORT",
        min=0,
        max=65_535,
        rich_help_panel=_PORTS,
        help="The API, and the executors' API; 0 takes any free port.  [dim]\\[default: 50051][/dim]",
    ),
]
HttpPort = Annotated[
    int | None,
    typer.Option(
        "--http-port",
        metavar="PORT",
        min=0,
        max=65_535,
        rich_help_panel=_PORTS,
        help="Health.  [dim]\\[default: 8080][/dim]",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        max=65_535,
        rich_help_panel=_PORTS,
        help="Prometheus metrics.  [dim]\\[default: 9000][/dim]",
    ),
]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.  [dim]\\[default: info][/dim]"),
]

KeepCapsules = Annotated[
    int | None,
    typer.Option(
        "--keep-capsules",
        metavar="N",
        min=0,
        max=1_000,
        help="Keep the latest N rounds of each pool for `armada replay`.  [dim]\\[default: 0][/dim]",
    ),
]

_TITLES: Final = {
    "grpc": "gRPC",
    "http": "HTTP",
    "metrics": "metrics",
    "server": "server",
    "data": "data",
    "clusters": "clusters",
}


@app.callback()
def root(invocation: typer.Context) -> None:
    """Print the help when no command is given."""
    if invocation.invoked_subcommand is None:
        typer.echo(invocation.get_help())


@app.command("up")
def up(
    *,
    data_dir: DataFolder = None,
    simulate: Annotated[
        str | None,
        typer.Option("--simulate", metavar="CLUSTERSxNODES", help="Simulated clusters beside this machine, as 3x20."),
    ] = None,
    config: SettingsFiles = None,
    host: Host = None,
    grpc_port: GrpcPort = None,
    http_port: HttpPort = None,
    metrics_port: MetricsPort = None,
    log_level: LogLevel = None,
    keep_capsules: KeepCapsules = None,
) -> None:
    """Run everything in one process, until Ctrl-C.

    Jobs run as processes of this machine: images are ignored, commands are what they are. With --simulate, jobs go to
    the simulated clusters, where they only pretend to run; then a job that is to run on this machine selects its node
    by the label armadaproject.io/processes=true and tolerates the taint of the same name. Prints the addresses, and
    then one line that begins with `ready`.
    """
    _run(
        "up",
        config,
        data_dir=data_dir,
        simulate=simulate,
        host=host,
        grpc_port=grpc_port,
        http_port=http_port,
        metrics_port=metrics_port,
        log_level=log_level,
        keep_capsules=keep_capsules,
    )


@app.command("server")
def server(
    *,
    data_dir: DataFolder = None,
    config: SettingsFiles = None,
    host: Host = None,
    grpc_port: GrpcPort = None,
    http_port: HttpPort = None,
    metrics_port: MetricsPort = None,
    log_level: LogLevel = None,
    keep_capsules: KeepCapsules = None,
) -> None:
    """Run the control plane alone: the API and the scheduler. Executors connect to its gRPC port."""
    _run(
        "serve",
        config,
        data_dir=data_dir,
        host=host,
        grpc_port=grpc_port,
        http_port=http_port,
        metrics_port=metrics_port,
        log_level=log_level,
        keep_capsules=keep_capsules,
    )


@app.command("executor")
def executor(
    *,
    server_url: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="HOST:PORT", help="The control plane.  [dim]\\[default: localhost:50051][/dim]"
        ),
    ] = None,
    executor_id: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="This executor's unique name.")
    ] = None,
    simulate_file: Annotated[
        Path | None,
        typer.Option("--simulate", metavar="FILE", help="Simulated clusters, as the file describes them."),
    ] = None,
    data_dir: DataFolder = None,
    config: SettingsFiles = None,
    metrics_port: MetricsPort = None,
    log_level: LogLevel = None,
) -> None:
    """Run an executor: it takes jobs from a control plane and runs them as processes of this machine.

    With --simulate it only pretends to, on as many clusters and nodes as the file describes.
    """
    _run(
        "execute",
        config,
        server_url=server_url,
        executor_id=executor_id,
        simulate_file=simulate_file,
        data_dir=data_dir,
        metrics_port=metrics_port,
        log_level=log_level,
    )


@app.command("demo")
def demo(
    *,
    small: Annotated[
        bool, typer.Option("--small", help="A short variant: 100 simulated jobs instead of 2,000.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Also write what was shown as an SVG picture.")
    ] = None,
) -> None:
    """See the whole system at work: three queues, four clusters, real and simulated jobs, in about a minute.

    Everything happens in a temporary folder and on free ports, and is gone afterwards. The exit status is 0 only when
    everything came out as expected.
    """
    from armada.cli.demo import show

    raise typer.Exit(show.run(small=small, picture=picture))


@app.command("version")
def version() -> None:
    """Print the version."""
    from armada.cli.verbs.configuration import installed

    render.line(installed())


app.command("decide")(decide.decide)
app.command("simulate")(simulate.simulate)
app.command("replay")(replay.replay)


def _run(function: str, files: list[Path] | None, **given: Any) -> None:
    """Start a part of the system with the settings that were given, and wait for its end."""
    from armada import assembly
    from armada.runtime.settings import load_settings

    overrides = {key: value for key, value in given.items() if value is not None}
    settings = load_settings(files=files or (), overrides=overrides)
    start: Callable[[Any, Callable[[Mapping[str, str]], None]], int] = getattr(assembly, function)
    raise typer.Exit(start(settings, announce))


def announce(facts: Mapping[str, str]) -> None:
    """Print where everything is, and last the line that says that everything answers."""
    width = max(len(title) for title in _TITLES.values())
    for key, title in _TITLES.items():
        if facts.get(key):
            render.line(f"  {title:<{width}}  {render.printable(facts[key], one_line=True)}")
    told = " ".join(f"{key}={shlex.quote(value)}" for key, value in facts.items() if key != "clusters")
    render.line(f"ready {told}")


def main(arguments: list[str] | None = None) -> None:
    """Run `armada` and leave the process with the command's exit status."""
    # A port in use is told in our own line; gRPC would write its own before it.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command; failures to start are one line on stderr."""
    from armada.model.errors import StartupRefused

    try:
        stopped: Any = app(args=arguments, prog_name="armada", standalone_mode=False)
    except StartupRefused as refusal:
        return _complain(str(refusal), 1)
    except CommandFailed as failure:
        return _complain(failure.message, 2 if failure.status is ExitStatus.USAGE else 1)
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        return _complain(f"{message.rstrip()}\nRun 'armada --help', or the command with --help, for usage.", 2)
    except (KeyboardInterrupt, typer.Abort):
        return int(ExitStatus.INTERRUPTED)
    return stopped if isinstance(stopped, int) else 0


def _complain(message: str, status: int) -> int:
    sys.stderr.write(f"Error: {render.printable(message)}\n")
    sys.stderr.flush()
    return status
