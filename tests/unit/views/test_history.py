"""What the history answers, and that it keeps what users gave as reasons (field case F044)."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from armada.model.errors import CorruptEntry, StartupRefused, Unavailable
from armada.model.lifecycle import JobState, RunState
from armada.views import records, schema
from armada.views.history import History
from armada.views.migrations.upgrade import upgrade
from armada.views.projector import Projector
from armada.views.reads import IDS_PER_QUERY
from armada.views.records import Preemption, pack, read_template, unpack
from armada.views.store import Store
from tests.unit.views.story import ListedLog, mixed_story, submitted, success, template


@pytest.fixture
async def history(tmp_path: Path) -> AsyncIterator[History]:
    """The history of the mixed story."""
    opened = History.open(tmp_path / "history.db")
    await project(opened, mixed_story())
    yield opened
    await opened.close()


async def project(history: History, log: ListedLog) -> None:
    await Projector(log, history, lambda one: one, lambda: len(log.entries)).flush()


async def test_states(history: History) -> None:
    found = await history.states(["j1", "j2", "j3", "j4", "j5", "j6", "k1", "k2", "nobody", "j1"])
    assert {job_id: state.name for job_id, state in found.items()} == {
        "j1": "SUCCEEDED",
        "j2": "FAILED",
        "j3": "CANCELLED",
        "j4": "CANCELLED",
        "j5": "PREEMPTED",
        "j6": "PREEMPTED",
        "k1": "REJECTED",
        "k2": "QUEUED",
    }


async def test_details_in_the_order_asked_for(history: History) -> None:
    found = await history.jobs(["k2", "nobody", "j1"])
    assert list(found) == ["k2", "j1"]
    job = found["j1"]
    assert (job.queue, job.job_set, job.namespace, job.owner) == ("alice", "set-1", "default", "anna")
    assert (job.groups, job.priority, job.priority_class) == (("staff", "all"), 10, "armada-default")
    assert (job.submitted_ms, job.last_transition_ms, job.latest_run_id) == (1, 5, "r1")
    assert (job.runs, job.template, job.cancel_reason, job.rejection) == ((), None, "", "")
    assert found["k2"].priority == 3


async def test_runs_come_newest_first_with_their_times(history: History) -> None:
    job = (await history.jobs(["j2"], with_runs=True))["j2"]
    assert [(run.run_id, run.attempt, run.state) for run in job.runs] == [
        ("r3", 1, RunState.FAILED),
        ("r2", 0, RunState.LEASE_RETURNED),
    ]
    newest, oldest = job.runs
    assert (newest.leased_ms, newest.pending_ms, newest.started_ms, newest.finished_ms) == (6, None, 7, 8)
    assert (newest.executor_id, newest.node_id, newest.node_name, newest.pool) == (
        "east",
        "east-node-1",
        "node-1",
        "default",
    )
    assert newest.exit_code == 3
    assert oldest.failure is not None
    assert oldest.failure.reason == "image"
    assert (await history.runs(["r2", "nothing"])) == {"r2": oldest}
    assert (await history.runs(["r4"]))["r4"].addresses == {8080: "10.0.0.1:8080"}


async def test_reasons_name_who_asked_and_outlive_the_end(history: History) -> None:
    found = await history.jobs(["j3", "j4", "j5", "j6"], with_runs=True)
    assert (found["j3"].cancel_reason, found["j3"].cancel_requestor) == ("no longer needed", "anna")
    assert (found["j3"].runs[0].state, found["j3"].runs[0].finished_ms) == (RunState.CANCELLED, 9)
    assert (found["j4"].cancel_reason, found["j4"].cancel_requestor, found["j4"].cancelled_ms) == (
        "clean up",
        "otto",
        9,
    )
    assert (found["j5"].preempt_reason, found["j5"].preempt_requestor) == ("node repair 42", "anna")
    assert found["j5"].runs[0].preemption == Preemption(
        kind="api", reason="Preempted by anna - node repair 42", requestor="anna"
    )
    assert found["j5"].runs[0].failure is None
    assert found["j6"].runs[0].preemption == Preemption(
        kind="fairshare", reason="made room for k2", preempting_job_id="k2"
    )


async def test_errors(history: History) -> None:
    assert await history.errors(["j1", "j2", "j4", "j6", "k1", "k2", "nobody"]) == {
        "j1": "",
        "j2": "exit",
        "j4": "",
        "j6": "made room for k2",
        "k1": "no node has 900 cpu",
        "k2": "Lease expired",
    }


async def test_by_external_uri_and_by_job_set(history: History) -> None:
    assert await history.states_by_uri("alice", "set-1", "uri:1") == {
        "j5": JobState.PREEMPTED,
        "j6": JobState.PREEMPTED,
    }
    assert await history.states_by_uri("bob", "other", "uri:1") == {}
    assert await history.job_ids_in_set("alice", "set-1", limit=4) == ["j1", "j2", "j3", "j4"]
    assert await history.job_ids_in_set("alice", "set-1", after="j4") == ["j5", "j6"]
    assert await history.job_ids_in_set("alice", "nothing") == []


async def test_specs(history: History) -> None:
    found = await history.jobs(["j1", "j5"], with_spec=True)
    assert found["j1"].template == template()
    assert found["j5"].template == template(external_job_uri="uri:1")
    assert await history.spec(1, 1) == template(external_job_uri="uri:1")
    assert await history.spec(1, 9) is None


async def test_more_ids_than_one_statement_names(tmp_path: Path) -> None:
    history = History.open(tmp_path / "many.db")
    ids = [f"job{number:05}" for number in range(IDS_PER_QUERY * 2 + 1)]
    log = ListedLog()
    log.add(submitted(*ids))
    await project(history, log)
    assert list(await history.jobs(ids)) == ids
    await history.close()


async def test_pruning_removes_what_ended_long_ago_and_nothing_else(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    log = ListedLog()
    log.add(submitted("old1", "old2", "young", "waiting"))
    log.add(submitted("old3"), queue="bob", job_set="short")
    for job_id in ("old1", "old2", "old3"):
        log.add(*success(job_id, f"run-{job_id}", at_ms=10))
    log.add(*success("young", "run-young", at_ms=1000))
    await project(history, log)
    assert await history.prune(500, batch=2) == 2
    assert await history.prune(500, batch=2) == 1
    assert await history.prune(500, batch=2) == 0
    assert list(await history.jobs(["old1", "old2", "old3", "young", "waiting"])) == ["young", "waiting"]
    assert list(await history.runs(["run-old1", "run-old2", "run-old3", "run-young"])) == ["run-young"]
    assert await history.spec(1, 0) is not None, "young and waiting still need it"
    assert await history.spec(2, 0) is None
    assert await history.job_ids_in_set("bob", "short") == []
    assert history._store.count(schema.job_set) == 1
    # The emptied set can come back.
    log.add(submitted("new"), queue="bob", job_set="short")
    await project(history, log)
    assert await history.job_ids_in_set("bob", "short") == ["new"]
    await history.close()


async def test_age_never_takes_the_spec_of_a_live_job(tmp_path: Path) -> None:
    """Jobs of one submission: those that ended go, and what a live one is made of stays until its own end."""
    log = ListedLog()
    log.add(submitted("live", "over", at_ms=1), submitted("alone", at_ms=1))
    log.add(*success("over", "run-over"))
    log.add(*success("alone", "run-alone"))
    history = History.open(tmp_path / "history.db")
    await project(history, log)
    assert await history.prune(2**62) == 2
    assert await history.prune(2**62) == 0
    assert list(await history.jobs(["live", "over", "alone"])) == ["live"]
    assert await history.spec(1, 0) is not None
    assert await history.spec(1, 1) is None
    log.add(*success("live", "run-live"))
    await project(history, log)
    assert await history.prune(2**62) == 1
    assert await history.spec(1, 0) is None
    await history.close()


async def test_settling_changes_nothing(tmp_path: Path) -> None:
    log = mixed_story()
    history = History.open(tmp_path / "history.db")
    await project(history, log)
    position, jobs = history.position, await history.jobs(["j1", "j2"], with_runs=True)
    for _ in range(2):
        await history.settle()
    assert history._store.progress() == (position, history.batch_id)
    assert await history.jobs(["j1", "j2"], with_runs=True) == jobs
    with history._store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1, "single transactions are cheap again"
    await history.close()


async def test_reopening_goes_on_where_it_stopped(tmp_path: Path) -> None:
    log = mixed_story()
    history = History.open(tmp_path / "history.db")
    await project(history, log)
    await history.close()
    again = History.open(tmp_path / "history.db")
    assert again.position == len(log.entries)
    assert (await again.states(["j1"])) == {"j1": JobState.SUCCEEDED}
    await again.close()


async def test_closing_tells_those_who_wait(tmp_path: Path) -> None:
    history = History.open(tmp_path / "history.db")
    told: list[str] = []

    def close_soon() -> None:
        told.append("asked")

    history.on_demand = close_soon
    waiting = asyncio.create_task(history.caught_up(5))
    await asyncio.sleep(0)
    await history.close()
    with pytest.raises(Unavailable, match="closing"):
        await waiting
    assert told == ["asked"]


# The file


def test_a_store_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    make(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(StartupRefused, match="newer release"):
        History.open(path)


def test_a_file_that_is_no_database_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StartupRefused, match="move the file away"):
        History.open(path)


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match="unable to open database file"):
        History.open(tmp_path / "nowhere" / "history.db")


def test_migrating_from_nothing_gives_the_same_tables_as_creating(tmp_path: Path) -> None:
    created, migrated = tmp_path / "created.db", tmp_path / "migrated.db"
    make(created)
    engine = create_engine(f"sqlite+pysqlite:///{migrated}")
    with engine.begin() as connection:
        upgrade(connection)
        assert schema.stored_revision(connection) == schema.REVISION
    engine.dispose()
    assert shape(created) == shape(migrated)


def test_opening_a_current_store_loads_no_migrations(tmp_path: Path) -> None:
    """The migration library costs memory that an idle server need not hold."""
    code = (
        "import sys; from pathlib import Path; from armada.views.store import Store; "
        f"[Store.open(Path({str(tmp_path / 'h.db')!r})).close() for _ in range(2)]; "
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def make(path: Path) -> None:
    Store.open(path).close()


def shape(path: Path) -> dict[str, object]:
    """Tables with columns, keys and indexes as the database tells them."""
    engine = create_engine(f"sqlite+pysqlite:///{path}")
    found: dict[str, object] = {}
    with engine.connect() as connection:
        seen = inspect(connection)
        for name in seen.get_table_names():
            columns: list[tuple[object, ...]] = [
                (c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns(name)
            ]
            indexes = sorted((str(i["name"]), i["column_names"], i["unique"]) for i in seen.get_indexes(name))
            columns.append(("key", *seen.get_pk_constraint(name)["constrained_columns"]))
            found[name] = (columns, indexes, seen.get_foreign_keys(name), seen.get_unique_constraints(name))
        found["conditions"] = sorted(
            row[0] for row in connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql LIKE '%WHERE%'")
        )
    engine.dispose()
    return found


# Packing


def test_long_values_are_deflated_and_come_back() -> None:
    long = template(pod_spec=b'{"a":"' + b"x" * 5000 + b'"}')
    stored = pack(long)
    assert len(stored) < 1000
    assert unpack(stored, read_template) == long
    assert unpack(None, read_template) is None


@pytest.mark.parametrize("stored", [b"", b"\x01broken", b"\x00\xc1", pack(records.Preemption(kind="a", reason="b"))])
def test_damaged_values_are_told(stored: bytes) -> None:
    with pytest.raises(CorruptEntry):
        unpack(stored, read_template)
