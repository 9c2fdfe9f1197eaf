"""This command itself: its version, the contexts of its configuration, and which is the current one."""

import os
import platform
from typing import Annotated

import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.cli.remote import targets
from armada.cli.session import Session, verb
from armada.cli.verbs import groups


def installed() -> str:
    """The version of the installed distribution; `unknown` when it runs from a bare source tree."""
    from armada.runtime.identifiers import release

    return release()


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""

    @verb(app, "version", panel=groups.THIS_COMMAND, examples="armadactl version -o json")
    def version(session: Session) -> None:
        """Print the version of this command."""
        facts = {"version": installed(), "python": platform.python_version(), "client": _client_version()}
        render.emit(
            session.output,
            facts,
            lambda: render.fields(
                [("Version:", facts["version"]), ("Python:", facts["python"]), ("armada-client:", facts["client"])]
            ),
        )


def _client_version() -> str:
    from importlib import metadata

    return metadata.version("armada-client")


@verb(groups.config, "get-contexts", examples="armadactl config get-contexts")
def get_contexts(session: Session) -> None:
    """List the contexts of the configuration file."""
    configuration = session.configuration
    names = sorted(configuration.contexts)
    current = configuration.current
    shown = ", ".join(f"{name} (current)" if name == current else name for name in names)
    render.emit(
        session.output,
        {"contexts": names, "currentContext": current},
        lambda: f"Available contexts: {shown or 'none'}",
    )


@verb(groups.config, "current-context", examples="armadactl config current-context")
def current_context(session: Session) -> None:
    """Print the name of the current context, and the server behind it."""
    configuration = session.configuration
    if not configuration.current:
        target = targets.resolve(configuration, named=None, url=session.server_url, environment=os.environ)
        raise CommandFailed(f"no context is set; commands go to {target.url}", ExitStatus.NOT_FOUND)
    render.emit(
        session.output,
        {"currentContext": configuration.current},
        lambda: f"Current context: {configuration.current}",
    )


@verb(groups.config, "use-context", examples="armadactl config use-context lab")
def use_context(
    session: Session, name: Annotated[str, typer.Argument(metavar="NAME", help="A context of the configuration.")]
) -> None:
    """Make a context the current one. The rest of the configuration file stays as it is."""
    configuration = session.configuration
    chosen = name.lower()
    if chosen not in configuration.contexts or configuration.source is None:
        raise CommandFailed(
            f"unable to use context {name}: it is not defined in {configuration.source or 'any configuration file'}",
            ExitStatus.NOT_FOUND,
        )
    targets.set_current(configuration.source, chosen)
    render.emit(session.output, {"currentContext": chosen}, lambda: f"Current context set to {chosen}")
