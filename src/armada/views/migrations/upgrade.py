"""How a history of an older release becomes one of this release. Imported only when there is such a one.

`versions/` holds one Alembic script a revision; the last one is `schema.REVISION`. A new store is made from
`schema.metadata` at once; a test holds that both ways give the same tables.
"""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy import Connection

from armada.model.errors import StartupRefused


class UnknownRevision(StartupRefused):
    """The store has a revision that is not in `versions/`."""


def upgrade(connection: Connection) -> None:
    """Bring the store up to the newest revision inside the caller's transaction. Raises UnknownRevision."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    scripts = ScriptDirectory.from_config(config)

    def steps(found: tuple[str, ...] | str, context: MigrationContext) -> list[RevisionStep]:
        del context
        return scripts._upgrade_revs("head", found)  # type: ignore[arg-type]  # noqa: SLF001 - alembic.command does the same

    with EnvironmentContext(config, scripts, fn=steps) as environment:
        environment.configure(connection=connection, target_metadata=None)
        try:
            environment.run_migrations()
        except (CommandError, ResolutionError) as error:
            raise UnknownRevision(str(error)) from error
