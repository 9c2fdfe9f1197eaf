"""What all commands of `armadactl` share: global options, the session that holds them, and how commands register."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar

import typer

from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.render import OutputFormat

if TYPE_CHECKING:
    from armada.cli.remote.connection import Connection
    from armada.cli.remote.targets import Configuration, Target

_PANEL: Final = "Global options"

TargetName = Annotated[
    str | None,
    typer.Option(
        "--context", "-c", metavar="NAME", help="Context of the configuration to use.", rich_help_panel=_PANEL
    ),
]
ServerUrl = Annotated[
    str | None,
    typer.Option(
        "--armadaUrl",
        metavar="HOST:PORT",
        help="Server to talk to; wins over the context.  [dim]\\[default: localhost:50051][/dim]",
        rich_help_panel=_PANEL,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Configuration file, instead of ~/.armadactl.yaml.", rich_help_panel=_PANEL
    ),
]
Output = Annotated[
    OutputFormat | None,
    typer.Option(
        "--output",
        "-o",
        envvar="ARMADACTL_OUTPUT",
        show_envvar=False,
        help="What to print.  [dim]\\[default: table][/dim]",
        rich_help_panel=_PANEL,
    ),
]
ExitCodes = Annotated[
    str | None,
    typer.Option(
        "--exit-codes",
        envvar="ARMADACTL_EXIT_CODES",
        show_envvar=False,
        metavar="simple|detailed",
        help="Tell failures apart by exit status (see `armadactl --help`).",
        rich_help_panel=_PANEL,
    ),
]

_GLOBALS: Final = {
    "target_name": TargetName,
    "server_url": ServerUrl,
    "config_file": ConfigFile,
    "output": Output,
    "exit_codes": ExitCodes,
}

Verb = TypeVar("Verb", bound=Callable[..., None])


class Session:
    """One run of one command: what was asked for globally, the target, the connection to it."""

    def __init__(
        self,
        *,
        target_name: str | None = None,
        server_url: str | None = None,
        config_file: Path | None = None,
        output: OutputFormat | None = None,
        exit_codes: str | None = None,
    ) -> None:
        self.is_detailed = exit_codes == "detailed"
        self.target_name = target_name
        self.server_url = server_url
        self.config_file = config_file
        self.output = output or OutputFormat.TABLE

    @property
    def is_human(self) -> bool:
        """True when a person reads the output."""
        return self.output is OutputFormat.TABLE

    @cached_property
    def configuration(self) -> "Configuration":
        """The configuration files and environment."""
        from armada.cli.remote import targets

        return targets.load(self.config_file, os.environ)

    @cached_property
    def target(self) -> "Target":
        """The server that this command talks to."""
        from armada.cli.remote import targets

        return targets.resolve(self.configuration, named=self.target_name, url=self.server_url, environment=os.environ)

    @cached_property
    def connection(self) -> "Connection":
        """The connection to it."""
        from armada.cli.remote.connection import Connection

        return Connection(self.target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if "connection" in self.__dict__:
            self.connection.close()


def global_parameters() -> list[inspect.Parameter]:
    """The global options as parameters of a command function."""
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _GLOBALS.items()
    ]


def _nearest(invocation: typer.Context, chosen: dict[str, Any]) -> dict[str, Any]:
    """Global options as given nearest to the command: its own, else its group's, else the program's."""
    outer = invocation.parent
    while outer is not None:
        chosen = {key: outer.params.get(key) if value is None else value for key, value in chosen.items()}
        outer = outer.parent
    return chosen


def _refuse_bytes(values: Iterable[Any]) -> None:
    """Raise CommandFailed for arguments that were no UTF-8: Python hands such bytes on as lone surrogates."""
    texts = (text for value in values for text in (value if isinstance(value, list) else [value]))
    for text in texts:
        if isinstance(text, str) and not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            shown = text.encode("utf-8", "backslashreplace").decode()
            raise CommandFailed(f"'{shown[:100]}' is not UTF-8 text", ExitStatus.USAGE)


def command_function(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer wants it: the global options added, the session made from them.

    As a group's callback it does nothing when one of the group's commands follows.
    """
    signature = inspect.signature(function, eval_str=True)

    @functools.wraps(function)
    def command(invocation: typer.Context, **given: Any) -> None:
        chosen = _nearest(invocation, {key: given.pop(key) for key in _GLOBALS})
        if invocation.invoked_subcommand is None:
            _refuse_bytes((*given.values(), *chosen.values()))
            with Session(**chosen) as session:
                function(session, **given)

    own = (part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in list(signature.parameters.values())[1:])
    _sign(command, [_INVOCATION, *own, *global_parameters()])
    return command


def verb(
    app: typer.Typer,
    name: str,
    *,
    examples: str = "",
    purpose: str | None = None,
    panel: str | None = None,
    names: tuple[str, ...] = (),
    takes_negative_numbers: bool = False,
) -> Callable[[Verb], Verb]:
    """Register a function as a command of `app`, with the global options added.

    The function takes the `Session` first; the rest of its parameters are the command's own. `names` are further,
    hidden spellings; `purpose` is the help text, when the docstring is not; `examples` are shown below it, one command
    a line; `panel` is the heading under which the command is listed.
    """

    def register(function: Verb) -> Verb:
        command = command_function(function)
        shown = help_text(purpose or function.__doc__ or "", examples)
        settings = {"ignore_unknown_options": takes_negative_numbers}
        for spelling in (name, *names):
            hidden = spelling != name
            app.command(spelling, help=shown, hidden=hidden, context_settings=settings, rich_help_panel=panel)(command)
        return function

    return register


def help_text(purpose: str, examples: str = "") -> str:
    r"""A command's help: the purpose, its paragraphs flowed to the width of the terminal, then the examples.

    A paragraph that begins with a line `\b` keeps its line breaks.
    """
    paragraphs = [
        part if part.startswith("\b") else " ".join(part.split()) for part in inspect.cleandoc(purpose).split("\n\n")
    ]
    if examples:
        lines = [f"  [cyan]{part.strip()}[/cyan]" for part in examples.strip().splitlines()]
        paragraphs.append("\n".join(("\b", "[bold]Examples[/bold]", *lines)))
    return "\n\n".join(paragraphs)


def group(purpose: str) -> typer.Typer:
    """A group of commands that prints its help (status 0) when it is called without one."""
    app = typer.Typer(help=purpose, rich_markup_mode="rich", add_completion=False, invoke_without_command=True)

    def show_help(invocation: typer.Context, **_globals: Any) -> None:
        if invocation.invoked_subcommand is None:
            typer.echo(invocation.get_help())

    _sign(show_help, [_INVOCATION, *global_parameters()])
    app.callback()(show_help)
    return app


_INVOCATION: Final = inspect.Parameter("invocation", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)


def _sign(function: Callable[..., None], parameters: list[inspect.Parameter]) -> None:
    """Give a function the parameters that typer is to see."""
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # typer reads it
    function.__annotations__ = {part.name: part.annotation for part in parameters}
