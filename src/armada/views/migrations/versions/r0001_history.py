"""The first history: job sets, specs, jobs, runs and how far the log was read."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "job_set",
        sa.Column("set_id", sa.Integer, primary_key=True),
        sa.Column("queue", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.UniqueConstraint("queue", "name", name="job_set_by_name"),
    )
    op.create_table(
        "spec",
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("spec_index", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("template", sa.LargeBinary, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("groups", sa.String, nullable=False),
        sa.Column("namespace", sa.String, nullable=False),
        sa.Column("priority_class", sa.String, nullable=False),
        sa.Column("jobs", sa.Integer, nullable=False),
    )
    _create_job()
    _create_run()
    op.create_table(
        "progress",
        sa.Column("only", sa.Integer, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("batch_id", sa.String, nullable=False),
    )
    op.execute("INSERT INTO progress (only, position, batch_id) VALUES (1, 0, '')")


def _create_job() -> None:
    op.create_table(
        "job",
        sa.Column("job_id", sa.String, primary_key=True),
        sa.Column("set_id", sa.Integer, sa.ForeignKey("job_set.set_id"), nullable=False),
        sa.Column("spec_position", sa.BigInteger, nullable=False),
        sa.Column("spec_index", sa.Integer, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("priority", sa.BigInteger, nullable=False),
        sa.Column("submitted_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_ms", sa.BigInteger, nullable=False),
        sa.Column("external_job_uri", sa.String),
        sa.Column("latest_run_id", sa.String),
        sa.Column("cancelled_ms", sa.BigInteger),
        sa.Column("cancel_reason", sa.String),
        sa.Column("cancel_requestor", sa.String),
        sa.Column("preempt_reason", sa.String),
        sa.Column("preempt_requestor", sa.String),
        sa.Column("rejection", sa.String),
        sa.Column("failure", sa.LargeBinary),
        sqlite_with_rowid=False,
    )
    op.create_index("job_by_set", "job", ["set_id", "job_id"])
    has_uri, has_ended = sa.text("external_job_uri IS NOT NULL"), sa.text("state >= 4")
    op.create_index("job_by_uri", "job", ["external_job_uri"], sqlite_where=has_uri, postgresql_where=has_uri)
    op.create_index("job_by_end", "job", ["changed_ms"], sqlite_where=has_ended, postgresql_where=has_ended)


def _create_run() -> None:
    op.create_table(
        "run",
        sa.Column("job_id", sa.String, primary_key=True),
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        sa.Column("executor_id", sa.String, nullable=False),
        sa.Column("node_id", sa.String, nullable=False),
        sa.Column("node_name", sa.String, nullable=False),
        sa.Column("pool", sa.String, nullable=False),
        sa.Column("leased_ms", sa.BigInteger, nullable=False),
        sa.Column("pending_ms", sa.BigInteger),
        sa.Column("started_ms", sa.BigInteger),
        sa.Column("finished_ms", sa.BigInteger),
        sa.Column("exit_code", sa.Integer),
        sa.Column("failure", sa.LargeBinary),
        sa.Column("preemption", sa.LargeBinary),
        sa.Column("addresses", sa.LargeBinary),
        sqlite_with_rowid=False,
    )
    op.create_index("run_by_id", "run", ["run_id"], unique=True)
