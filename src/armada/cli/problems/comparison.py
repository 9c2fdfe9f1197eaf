"""Comparing answers with recorded ones (docs/decide.md, "Checking").

The jobs scheduled with node and priority, and the jobs preempted, must be the same. A job's reason for waiting and how
a place was found must not differ where both sides name one; ours may name more. Figures may differ by 1e-9. What a
recorded answer leaves out is not compared.
"""

from collections.abc import Iterator
from typing import Any, Final

from armada.cli.problems.answers import Answer
from armada.model.errors import InvalidRequest

TOLERANCE: Final = 1e-9
MAX_NAMES: Final = 8


def differences(answers: list[Answer], expected: Any) -> list[str]:
    """Return every difference as a sentence; an empty list means equal.

    Raises:
        InvalidRequest: `expected` is not in the form of answers.
    """
    if not isinstance(expected, list) or not all(isinstance(one, dict) for one in expected):
        raise InvalidRequest("expected must be a list with one object a round")
    if len(answers) != len(expected):
        return [f"{len(answers)} rounds decided, {len(expected)} expected"]
    found = []
    for number, (ours, theirs) in enumerate(zip(answers, expected, strict=True)):
        for pool, recorded in theirs.items():
            place = f"round {number}, pool {pool}"
            if pool not in ours:
                found.append(f"{place}: not decided")
            else:
                found += [f"{place}: {difference}" for difference in _pool(ours[pool], recorded)]
    return found


def _pool(ours: Answer, theirs: Answer) -> Iterator[str]:
    for kind in ("scheduled", "preempted"):
        if kind in theirs:
            yield from _same_jobs(kind, ours[kind], theirs[kind])
    yield from _places(ours["scheduled"], theirs.get("scheduled", {}))
    for job, code in theirs.get("waiting", {}).items():
        mine = ours["waiting"].get(job, code)
        if mine != code:
            yield f"{job} waits for {mine}, expected {code}"
    yield from _figures(ours["queues"], theirs.get("queues", {}))
    for key in ("total", "termination", "spotPrice"):
        if key in theirs and key in ours and not _equal(ours[key], theirs[key]):
            yield f"{key} is {ours[key]}, expected {theirs[key]}"


def _places(ours: Answer, theirs: Answer) -> Iterator[str]:
    for job, place in theirs.items():
        mine: Any = ours.get(job, place)
        for key in ("node", "priority", "method"):
            if key in place and mine[key] != place[key]:
                yield f"{job} scheduled with {key} {mine[key]}, expected {place[key]}"


def _figures(ours: Answer, theirs: Answer) -> Iterator[str]:
    for queue, figures in theirs.items():
        if queue not in ours:
            yield f"queue {queue} has no figures"
            continue
        for key, value in figures.items():
            mine = ours[queue].get(key, value)
            if not _equal(mine, value):
                yield f"queue {queue}: {key} is {mine}, expected {value}"


def _same_jobs(kind: str, ours: Answer, theirs: Answer) -> Iterator[str]:
    extra = [job for job in ours if job not in theirs]
    missing = [job for job in theirs if job not in ours]
    if extra:
        yield f"{kind}, but not expected: {_names(extra)}"
    if missing:
        yield f"expected to be {kind}, but not: {_names(missing)}"


def _names(jobs: list[str]) -> str:
    named = ", ".join(sorted(jobs)[:MAX_NAMES])
    return named if len(jobs) <= MAX_NAMES else f"{named} and {len(jobs) - MAX_NAMES} more"


def _equal(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return all(_equal(ours.get(key), value) for key, value in theirs.items())
    numbers = isinstance(ours, int | float) and isinstance(theirs, int | float)
    return abs(ours - theirs) <= TOLERANCE if numbers else bool(ours == theirs)
