"""`armada replay`: a round from its capsule, decided once more, compared and explained; no server."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from armada.cli import render
from armada.cli.failures import CommandFailed, ExitStatus
from armada.model.errors import CorruptEntry

if TYPE_CHECKING:
    from armada.control.rounds.capsules import Capsule
    from armada.control.rounds.planning import RoundReport

File = Annotated[Path, typer.Argument(metavar="CAPSULE", help="A capsule, as servers keep them.", show_default=False)]
Job = Annotated[
    str | None, typer.Option("--job", metavar="ID", help="Tell how one job fared instead.", show_default=False)
]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FORM", help="text or json.")]
Verbosity = Annotated[
    int, typer.Option("--verbosity", "-v", min=0, max=3, help="How much to tell: 0 names queues, 3 everything.")
]

_FORMS: Final = ("text", "json")


def replay(capsule: File, *, job: Job = None, output: Output = "text", verbosity: Verbosity = 1) -> None:
    """Decide a round again from its capsule, prove that it comes out the same, and explain it.

    Exit status 0: the decisions are those of the capsule, to the last bit. 1: they are not, or the round fails, or the
    capsule can't be read. How to come by a capsule is in docs/replay.md.
    """
    if output not in _FORMS:
        raise CommandFailed(f"--output {output}: there is {' and '.join(_FORMS)}", ExitStatus.USAGE)
    kept = _read(capsule)
    row = None if job is None else kept.jobs.row(job)
    if job is not None and row is None:
        raise CommandFailed(f"there is no job {job!r} in this capsule, or it had ended before the capsule was written")
    report, error = _decided(kept)
    verdict = _verdict(kept, report, error)
    if output == "json":
        _print_json(kept, report, verdict, row)
    else:
        _print_text(kept, report, verdict, row, verbosity)
    if not verdict["equal"]:
        raise typer.Exit(1)


def _read(path: Path) -> "Capsule":
    from armada.control.rounds.capsules import read_capsule

    try:
        return read_capsule(path.read_bytes())
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror or error}") from error
    except CorruptEntry as error:
        raise CommandFailed(f"{path}: {error}") from error


def _decided(kept: "Capsule") -> tuple["RoundReport | None", str]:
    """Return the round as decided now, or what it failed with."""
    from armada.control.rounds.capsules import decided_again

    try:
        return decided_again(kept), ""
    except CorruptEntry as error:
        raise CommandFailed(str(error)) from error
    except Exception as error:  # noqa: BLE001 - whatever a round failed with then, to tell it is what the command is for
        return None, f"{type(error).__name__}: {error}"


def _verdict(kept: "Capsule", report: "RoundReport | None", error: str) -> dict[str, Any]:
    """Say how the round came out in comparison with what the capsule says."""
    from armada.control.rounds.capsules import digest_of

    digest = digest_of(report.decisions) if report is not None else ""
    if report is None:
        text = f"the round fails: {error}"
    elif not kept.digest:
        text = "the round failed then, and is decided now"
    elif digest == kept.digest:
        text = "the decisions are the same, to the last bit"
    else:
        text = "the decisions DIFFER from those in the capsule"
    return {
        "equal": bool(digest) and digest == kept.digest,
        "text": text,
        "digest": digest,
        "recorded": kept.digest,
        "failure": kept.failure,
        "error": error,
    }


def _print_text(
    kept: "Capsule", report: "RoundReport | None", verdict: dict[str, Any], row: int | None, verbosity: int
) -> None:
    from armada.control.accounts.figures import job_account, round_account
    from armada.control.accounts.words import job_text, moment, round_text

    lines = [f"Round of pool {kept.pool}, {moment(kept.started_ms)}, made by release {kept.release}"]
    if kept.failure:
        lines.append(f"It failed: {kept.failure}")
    lines.append(f"Decided again: {verdict['text']} (digest {verdict['digest'] or 'none'})")
    if report is not None and row is None:
        snapshot = report.order.snapshot
        lines += ["", round_text(round_account(report), snapshot, kept.jobs.name, verbosity)]
    elif report is not None and row is not None:
        account = job_account(report, row)
        told = job_text(account) if account is not None else "the round did not know it"
        lines += ["", f"Job {kept.jobs.name(row)}: {told}"]
    for line in lines:
        render.line(render.printable(line))


def _print_json(kept: "Capsule", report: "RoundReport | None", verdict: dict[str, Any], row: int | None) -> None:
    from armada.control.accounts.figures import job_account, round_account

    value: dict[str, Any] = {
        "pool": kept.pool,
        "release": kept.release,
        "seed": kept.seed,
        "stops": msgspec.to_builtins(kept.stops),
        "replay": verdict,
    }
    if report is not None and row is None:
        value["round"] = msgspec.to_builtins(round_account(report), enc_hook=_plain)
    elif report is not None and row is not None:
        account = job_account(report, row)
        value["job"] = {"id": kept.jobs.name(row), "account": msgspec.to_builtins(account, enc_hook=_plain)}
    render.line(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
