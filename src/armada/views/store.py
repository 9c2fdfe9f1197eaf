"""The history's tables behind one engine: writing changes, pruning, starting over. Blocks: called from threads only.

Statements are built with SQLAlchemy, compiled to text once and then run with plain tuples: a row costs little more than
the database's own work.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Table,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DatabaseError

from armada.model.errors import StartupRefused
from armada.model.lifecycle import JobState, RunState
from armada.views import schema
from armada.views.changes import Changes, Row

_CONNECTIONS: Final = 4
_BUSY_TIMEOUT_MS: Final = 10_000
_CACHED_SETS: Final = 10_000
_CACHED_STATEMENTS: Final = 500

_INSERTS: Final[dict[str, Callable[[Table], Any]]] = {"sqlite": sqlite.insert}
"""Inserts that can pass over rows that exist, by dialect."""

_PRAGMAS: Final = (
    "PRAGMA journal_mode = WAL",
    # A power cut may take the last transactions, rows and cursor together: they are projected again (see `settle`).
    "PRAGMA synchronous = NORMAL",
    f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}",
    "PRAGMA temp_store = MEMORY",
)

_KEY: Final = "key_"
"""Begins the names of values that say which row is meant, to tell them from columns to set."""


class Statement:
    """One compiled statement: its text, and how to make the tuple it wants from a row."""

    def __init__(self, sql: str, tuple_of: Callable[[Mapping[str, Any]], tuple[Any, ...]]) -> None:
        self.sql = sql
        self.tuple_of = tuple_of


class Store:
    """The tables of one database. One thread writes; reads may run beside it on connections of their own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._sets: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._statements: dict[tuple[str, str, tuple[str, ...]], Statement] = {}

    @classmethod
    def open(cls, path: Path) -> "Store":
        """Open or create the file. Raises StartupRefused when it can't be used, with the remedy."""
        engine = create_engine(
            f"sqlite+pysqlite:///{path}",
            pool_size=_CONNECTIONS,
            max_overflow=0,
            connect_args={"check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare)
        try:
            with engine.begin() as connection:
                schema.ensure(connection)
        except DatabaseError as error:
            engine.dispose()
            raise StartupRefused(
                f"the history {path} can't be opened ({error.orig}): check the folder's permissions and free space, "
                "or move the file away and it is rebuilt from what the log still holds",
            ) from error
        except StartupRefused:
            engine.dispose()
            raise
        return cls(engine)

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    def progress(self) -> tuple[int, str]:
        """Position and batch id of the last entry whose facts are stored; (0, "") for none."""
        with self.engine.connect() as connection:
            row = connection.execute(select(schema.progress.c.position, schema.progress.c.batch_id)).one()
        return int(row[0]), str(row[1])

    def write(self, changes: Changes) -> None:
        """Store the changes and the position they reach, all or nothing."""
        try:
            with self.engine.begin() as connection:
                self._write(connection, changes)
        except BaseException:
            self._sets.clear()  # numbers given out in the transaction that is undone
            raise

    def _write(self, connection: Connection, changes: Changes) -> None:
        for job_id, names in changes.job_sets.items():
            changes.new_jobs[job_id]["set_id"] = self._set_id(connection, names)
        self._insert(connection, schema.spec, changes.specs)
        self._insert(connection, schema.job, changes.new_jobs.values())
        self._insert(connection, schema.run, changes.new_runs.values())
        self._update(connection, schema.job, [row | {"key_job_id": key} for key, row in changes.jobs.items() if row])
        keyed = [row | {"key_job_id": key[0], "key_run_id": key[1]} for key, row in changes.runs.items() if row]
        self._update(connection, schema.run, keyed)
        for state, ended in changes.ended.items():
            rows: list[Row] = [{"key_job_id": job_id, "finished_ms": at, "state": state} for job_id, at in ended]
            statement = self._statement("end", schema.run, ("state", "finished_ms"))
            connection.exec_driver_sql(statement.sql, [statement.tuple_of(row) for row in rows])
        connection.execute(update(schema.progress).values(position=changes.position, batch_id=changes.batch_id))

    def _set_id(self, connection: Connection, names: tuple[str, str]) -> int:
        known = self._sets.get(names)
        if known is not None:
            return known
        table = schema.job_set
        found = connection.execute(select(table.c.set_id).where(table.c.queue == names[0], table.c.name == names[1]))
        number = found.scalar()
        if number is None:
            made = connection.execute(insert(table).values(queue=names[0], name=names[1]))
            key = made.inserted_primary_key
            number = int(key[0]) if key is not None else 0
        self._sets[names] = int(number)
        if len(self._sets) > _CACHED_SETS:
            self._sets.popitem(last=False)
        return int(number)

    def _insert(self, connection: Connection, table: Table, rows: Iterable[Row]) -> None:
        for columns, group in _by_columns(rows).items():
            statement = self._statement("insert", table, columns)
            connection.exec_driver_sql(statement.sql, [statement.tuple_of(row) for row in group])

    def _update(self, connection: Connection, table: Table, rows: Iterable[Row]) -> None:
        for columns, group in _by_columns(rows).items():
            statement = self._statement("update", table, columns)
            connection.exec_driver_sql(statement.sql, [statement.tuple_of(row) for row in group])

    def _statement(self, verb: str, table: Table, columns: tuple[str, ...]) -> Statement:
        key = (verb, table.name, columns)
        known = self._statements.get(key)
        if known is None:
            if len(self._statements) >= _CACHED_STATEMENTS:
                self._statements.clear()
            known = self._statements[key] = self._compile(verb, table, columns)
        return known

    def _compile(self, verb: str, table: Table, columns: tuple[str, ...]) -> Statement:
        values: dict[str, Any] = {name: bindparam(name) for name in columns if not name.startswith(_KEY)}
        built: Any
        if verb == "insert":
            # The ledger forgets ended jobs, and then lets their ids be used again. Here the first one keeps the id.
            built = _INSERTS[self.engine.dialect.name](table).values(values).on_conflict_do_nothing()
        else:
            keys: list[Column[Any]] = list(table.primary_key.columns) if verb == "update" else [table.c.job_id]
            built = (
                update(table).where(*(column == bindparam(f"{_KEY}{column.name}") for column in keys)).values(values)
            )
            if "state" in values:  # an end is final
                end = JobState.SUCCEEDED if table is schema.job else RunState.SUCCEEDED
                built = built.where(table.c.state < literal_column(str(int(end))))
        compiled = built.compile(dialect=self.engine.dialect)
        order = list(compiled.positiontup or ())
        picked = itemgetter(*order)
        return Statement(str(compiled), picked if len(order) > 1 else lambda row: (picked(row),))

    def reset(self) -> None:
        """Forget everything, so that the log is read from its start."""
        self._sets.clear()
        with self.engine.begin() as connection:
            for table in (schema.run, schema.job, schema.spec, schema.job_set):
                connection.execute(delete(table))
            connection.execute(update(schema.progress).values(position=0, batch_id=""))

    def settle(self) -> None:
        """Have all transactions so far on disk. Single ones are not synced, but a synced one takes them along."""
        with self.engine.connect() as connection:
            is_sqlite = self.engine.dialect.name == "sqlite"
            if is_sqlite:
                connection.exec_driver_sql("PRAGMA synchronous = FULL")
            try:
                connection.execute(update(schema.progress).values(position=schema.progress.c.position))
                connection.commit()
            finally:
                if is_sqlite:
                    connection.rollback()
                    connection.exec_driver_sql("PRAGMA synchronous = NORMAL")

    def prune(self, before_ms: int, batch: int) -> int:
        """Remove up to `batch` jobs that ended before `before_ms`, with runs and what only they needed."""
        job, spec = schema.job, schema.spec
        with self.engine.begin() as connection:
            chosen = (
                select(job.c.job_id, job.c.set_id, job.c.spec_position, job.c.spec_index)
                .where(schema.ENDED, job.c.changed_ms < before_ms)
                .order_by(job.c.changed_ms)
                .limit(batch)
            )
            gone = connection.execute(chosen).all()
            if not gone:
                return 0
            job_ids = [row.job_id for row in gone]
            for table in (schema.run, job):
                connection.execute(
                    delete(table).where(table.c.job_id == bindparam("gone")), [{"gone": key} for key in job_ids]
                )
            specs: dict[tuple[int, int], int] = {}
            for row in gone:
                key = (row.spec_position, row.spec_index)
                specs[key] = specs.get(key, 0) + 1
            where = (spec.c.position == bindparam("at"), spec.c.spec_index == bindparam("number"))
            used = [{"at": at, "number": number, "fewer": count} for (at, number), count in specs.items()]
            connection.execute(update(spec).where(*where).values(jobs=spec.c.jobs - bindparam("fewer")), used)
            connection.execute(delete(spec).where(*where, spec.c.jobs <= 0), used)
            self._prune_sets(connection, sorted({int(row.set_id) for row in gone}))
        return len(gone)

    def _prune_sets(self, connection: Connection, set_ids: list[int]) -> None:
        """Remove the job sets among these that have no job left."""
        job, job_set = schema.job, schema.job_set
        used = select(job.c.job_id).where(job.c.set_id == job_set.c.set_id).exists()
        gone = delete(job_set).where(job_set.c.set_id == bindparam("number"), ~used)
        connection.execute(gone, [{"number": number} for number in set_ids])
        self._sets.clear()

    def count(self, table: Table) -> int:
        """How many rows a table has."""
        with self.engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _prepare(connection: Any, record: object) -> None:
    """Set up a new SQLite connection."""
    del record
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _by_columns(rows: Iterable[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Rows that set the same columns, together: one statement each."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row), []).append(row)
    return groups
