"""`armada decide`: a small fleet and some jobs written down, and what the scheduler decides and why; no server."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.model.errors import InvalidRequest

if TYPE_CHECKING:
    from armada.cli.problems.reading import ReadProblem

Files = Annotated[
    list[Path],
    typer.Argument(help="Problems as JSON lines, plain or gzipped; `-` is standard input.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="One line a problem: its id and the answer.")]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="JOB", help="Tell everything about one job.", show_default=False),
]
Check = Annotated[bool, typer.Option("--check", help="Compare with `expected` in the file; status 1 on a difference.")]
Bench = Annotated[
    int,
    typer.Option("--bench", metavar="N", min=0, max=100_000, help="Decide the first round N times and time each."),
]
CapsuleFile = Annotated[
    Path | None,
    typer.Option("--capsule", metavar="FILE", help="Also write the last round as a capsule.", show_default=False),
]
Only = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="Only the problem with this id.", show_default=False),
]

MAX_DIFFERENCES: Final = 20
"""Differences printed of one problem by `--check`."""


def decide(
    files: Files,
    *,
    as_json: AsJson = False,
    explain: Explain = None,
    check: Check = False,
    bench: Bench = 0,
    only: Only = None,
    capsule: CapsuleFile = None,
) -> None:
    """Decide scheduling problems from files, as the scheduler of a server would.

    The format, with a worked example, is in docs/decide.md.
    """
    if check + bool(bench) + (explain is not None) > 1:
        raise CommandFailed("--check, --bench and --explain exclude each other: give one", ExitStatus.USAGE)
    if capsule is not None and (check or bench):
        raise CommandFailed("--capsule does not go with --check or --bench", ExitStatus.USAGE)
    try:
        problems = _selected(files, only)
        if bench:
            _bench(problems, bench, as_json=as_json)
        elif check:
            _check(problems, as_json=as_json)
        else:
            _show(_written(problems, capsule), explain, as_json=as_json)
    except InvalidRequest as error:
        raise CommandFailed(str(error), ExitStatus.USAGE) from error


def _selected(files: list[Path], only: str | None) -> Iterator["ReadProblem"]:
    from armada.cli.problems.reading import not_followed, read_problems

    found = False
    for read in read_problems(tuple(files)):
        if only is None or read.problem.id == only:
            found = True
            for remark in not_followed(read):
                render.warning(remark)
            yield read
    if not found:
        what = "no problem in these files" if only is None else f"no problem with id {only!r} in these files"
        raise InvalidRequest(f"{what}: write one JSON object a line (docs/decide.md)")


def _written(problems: Iterator["ReadProblem"], path: Path | None) -> Iterator["ReadProblem"]:
    """Pass problems on; write the last round of the last one as a capsule."""
    last: ReadProblem | None = None
    for last in problems:
        yield last
    if path is None or last is None:
        return
    from armada.cli.problems.trial import rounds
    from armada.control.rounds.capsules import RoundEnd, capsule_of, names_of
    from armada.runtime.identifiers import release

    payload = b""
    for trial, pool, decisions in rounds(last):
        order = trial.order(pool, decisions)
        end = RoundEnd(order=order, finished_ms=trial.now_ms, decisions=decisions)
        payload = capsule_of(end, names_of(trial.ledger, order), release()).to_bytes()
    try:
        path.write_bytes(payload)
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror or error}") from error


def _show(problems: Iterator["ReadProblem"], job: str | None, *, as_json: bool) -> None:
    from armada.cli.problems import tables
    from armada.cli.problems.trial import rounds

    seen = False
    for read in problems:
        if job is not None:
            if all(one.id != job for one in read.problem.jobs):
                continue
            seen = True
        if as_json and job is None:
            _print_json({"id": read.problem.id, "expected": _answer(read)})
            continue
        if read.problem.submit_check:
            _show_verdicts(read, job, as_json=as_json)
            continue
        for trial, pool, decisions in rounds(read):
            if job is None:
                tables.show_round(trial, pool, decisions)
            elif as_json:
                story = dict(tables.story(trial, decisions, job))
                _print_json({"id": read.problem.id, "round": trial.number, "pool": pool, "job": job, **story})
            else:
                tables.explain(trial, pool, decisions, job)
    if job is not None and not seen:
        raise InvalidRequest(f"no problem in these files has a job {job!r}")


def _show_verdicts(read: "ReadProblem", job: str | None, *, as_json: bool) -> None:
    """Say of every job, or of one, where it can ever run, else what speaks against each pool."""
    from armada.cli.problems.submit_check import verdicts

    for name, verdict in verdicts(read).items():
        if job is not None and name != job:
            continue
        if as_json:
            told = {"schedulable": verdict.is_possible, "pools": verdict.pools, "reason": verdict.reason}
            _print_json({"id": read.problem.id, "job": name, **told})
        elif verdict.is_possible:
            render.line(render.printable(f"{name}  can run in {', '.join(verdict.pools)}"))
        else:
            render.line(render.printable(f"{name}  can never run: {verdict.reason}"))


def _answer(read: "ReadProblem") -> Any:
    from armada.cli.problems import submit_check
    from armada.cli.problems.answers import answers

    return submit_check.answer(read) if read.problem.submit_check else answers(read)


def _differences(read: "ReadProblem") -> list[str]:
    from armada.cli.problems import comparison, submit_check

    if read.problem.submit_check:
        return submit_check.differences(submit_check.answer(read), read.problem.expected)
    return comparison.differences(_answer(read), read.problem.expected)


def _check(problems: Iterator["ReadProblem"], *, as_json: bool) -> None:
    equal = different = 0
    for read in problems:
        if read.problem.expected is None:
            raise InvalidRequest(f"{read.place}: there is no expected to compare with")
        found = _differences(read)
        equal, different = equal + (not found), different + bool(found)
        if as_json:
            _print_json({"id": read.problem.id, "differences": found})
        elif found:
            known = f" (known deviations: {', '.join(read.problem.deviations)})" if read.problem.deviations else ""
            render.line(render.printable(f"{read.problem.id}: {len(found)} differences{known}"))
            for difference in found[:MAX_DIFFERENCES]:
                render.line(render.printable(f"  {difference}"))
            if len(found) > MAX_DIFFERENCES:
                render.line(f"  ... {len(found) - MAX_DIFFERENCES} more")
    closing = f"{equal + different} problems: {equal} equal, {different} different"
    if as_json:
        sys.stderr.write(closing + "\n")
    else:
        render.line(closing)
    if different:
        raise typer.Exit(1)


def _bench(problems: Iterator["ReadProblem"], times: int, *, as_json: bool) -> None:
    from armada.cli.problems.trial import Trial
    from armada.scheduling.readiness.warming import warm_up
    from armada.scheduling.round import schedule

    started = time.perf_counter()
    warm_up()
    compiling = time.perf_counter() - started
    started = time.perf_counter()
    for read in problems:
        trial = Trial(read)
        trial.begin_round()
        loading = time.perf_counter() - started
        seconds: list[float] = []
        gathering: list[float] = []
        scheduled = preempted = 0
        for _ in range(times):
            scheduled = preempted = 0
            begun = time.perf_counter()
            snapshots = [trial.snapshot(pool) for pool in trial.pools()]
            gathered = time.perf_counter()
            for snapshot in snapshots:
                decisions = schedule(snapshot)
                scheduled += len(decisions.leases.row)
                preempted += len(decisions.preemptions.row)
            seconds.append(time.perf_counter() - begun)
            gathering.append(gathered - begun)
        name = read.problem.id or read.place
        if as_json:
            _print_json({"id": name, "seconds": seconds, "scheduled": scheduled, "preempted": preempted})
        else:
            parts = ", ".join(f"{whole:.4f} ({part:.4f})" for whole, part in zip(seconds, gathering, strict=True))
            render.line(
                render.printable(
                    f"{name}: {scheduled:,} scheduled, {preempted:,} preempted\n"
                    f"  loading {loading:.2f} s, compiling {compiling:.2f} s\n"
                    f"  each round, in seconds (of it the snapshot): {parts}",
                ),
            )
        started = time.perf_counter()


def _print_json(value: dict[str, Any]) -> None:
    render.line(json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
