"""Which version this is."""

import platform

import typer

from armada.cli import render
from armada.cli.session import Session, verb
from armada.cli.verbs import groups


def installed() -> str:
    """The version of the installed distribution; `unknown` when it runs from a bare source tree."""
    from importlib import metadata

    try:
        return metadata.version("armada-queue")
    except metadata.PackageNotFoundError:
        return "unknown"


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
