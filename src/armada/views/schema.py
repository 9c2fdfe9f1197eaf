"""The history's tables and the version they have.

One row a job, one row a run. What jobs of one submission share (template, owner, namespace) is one row of `spec`; the
two names of a job set are one row of `job_set`. Times are Unix milliseconds, states are the numbers of
`model.lifecycle`, failures are MessagePack of `model.events.Failure`.
"""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    insert,
    inspect,
    select,
    text,
)

from armada.model.errors import StartupRefused
from armada.model.lifecycle import JobState

REVISION: Final = "0001"
"""The newest revision in `views/migrations/versions`; what this code reads and writes."""

metadata: Final = MetaData()

job_set: Final = Table(
    "job_set",
    metadata,
    Column("set_id", Integer, primary_key=True),
    Column("queue", String, nullable=False),
    Column("name", String, nullable=False),
    UniqueConstraint("queue", "name", name="job_set_by_name"),
)

spec: Final = Table(
    "spec",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("spec_index", Integer, primary_key=True, autoincrement=False),
    # MessagePack of model.jobs.JobTemplate, deflated when that is shorter (`records.pack`).
    Column("template", LargeBinary, nullable=False),
    Column("owner", String, nullable=False),
    Column("groups", String, nullable=False),
    Column("namespace", String, nullable=False),
    Column("priority_class", String, nullable=False),
    # How many rows of `job` point here; at zero the row goes.
    Column("jobs", Integer, nullable=False),
)

job: Final = Table(
    "job",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("set_id", Integer, ForeignKey("job_set.set_id"), nullable=False),
    Column("spec_position", BigInteger, nullable=False),
    Column("spec_index", Integer, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("submitted_ms", BigInteger, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Column("external_job_uri", String),
    Column("latest_run_id", String),
    Column("cancelled_ms", BigInteger),
    Column("cancel_reason", String),
    Column("cancel_requestor", String),
    Column("preempt_reason", String),
    Column("preempt_requestor", String),
    Column("rejection", String),
    Column("failure", LargeBinary),
    sqlite_with_rowid=False,
)

run: Final = Table(
    "run",
    metadata,
    # The job comes first: its runs lie together, and ids that grow with time keep inserts at the table's end.
    Column("job_id", String, primary_key=True),
    Column("run_id", String, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("executor_id", String, nullable=False),
    Column("node_id", String, nullable=False),
    Column("node_name", String, nullable=False),
    Column("pool", String, nullable=False),
    Column("leased_ms", BigInteger, nullable=False),
    Column("pending_ms", BigInteger),
    Column("started_ms", BigInteger),
    Column("finished_ms", BigInteger),
    Column("exit_code", Integer),
    Column("failure", LargeBinary),
    Column("preemption", LargeBinary),
    Column("addresses", LargeBinary),
    sqlite_with_rowid=False,
)

progress: Final = Table(
    "progress",
    metadata,
    Column("only", Integer, primary_key=True),
    # The last entry whose facts the rows hold, and that entry's batch, by which another log is noticed.
    Column("position", BigInteger, nullable=False),
    Column("batch_id", String, nullable=False),
)

revision: Final = Table("alembic_version", metadata, Column("version_num", String(32), primary_key=True))

ENDED: Final = text(f"state >= {int(JobState.SUCCEEDED)}")
"""The condition of the index `job_by_end`: a query that repeats it word for word can use the index."""

job_by_set: Final = Index("job_by_set", job.c.set_id, job.c.job_id)
job_by_uri: Final = Index(
    "job_by_uri",
    job.c.external_job_uri,
    sqlite_where=job.c.external_job_uri.is_not(None),
    postgresql_where=job.c.external_job_uri.is_not(None),
)
job_by_end: Final = Index(
    "job_by_end",
    job.c.changed_ms,
    sqlite_where=ENDED,
    postgresql_where=ENDED,
)
run_by_id: Final = Index("run_by_id", run.c.run_id, unique=True)


def create(connection: Connection) -> None:
    """Make all tables of an empty store in one transaction and note their revision."""
    metadata.create_all(connection)
    connection.execute(insert(revision).values(version_num=REVISION))
    connection.execute(insert(progress).values(only=1, position=0, batch_id=""))


def stored_revision(connection: Connection) -> str | None:
    """The revision of the store, or None for an empty one."""
    if not inspect(connection).has_table(revision.name):
        return None
    return connection.execute(select(revision.c.version_num)).scalar()


def ensure(connection: Connection) -> None:
    """Create or migrate the store. Raises StartupRefused when a newer release wrote it."""
    found = stored_revision(connection)
    if found is None:
        create(connection)
    elif found != REVISION:
        # Migrations load a library of their own: only a store of an older release pays for it.
        from armada.views.migrations.upgrade import UnknownRevision, upgrade  # noqa: PLC0415 - costs 11 MB, rarely needed

        try:
            upgrade(connection)
        except UnknownRevision as error:
            raise StartupRefused(
                f"the history was written by a newer release (revision {found}, this one knows {REVISION}): "
                "run that release, or move the file away and the history is rebuilt from what the log still holds",
            ) from error
