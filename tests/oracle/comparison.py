"""Comparing an answer with a recorded one, as the recordings' own description says what equal means."""

from typing import Any

TOLERANCE = 1e-9


def differences(answers: list[dict[str, Any]], expected: list[dict[str, Any]]) -> list[str]:
    """All differences, as sentences; what a recorded answer does not mention is not compared."""
    found = []
    if len(answers) != len(expected):
        return [f"{len(answers)} rounds, expected {len(expected)}"]
    for number, (answer, recorded) in enumerate(zip(answers, expected, strict=True)):
        for pool, theirs in recorded.items():
            ours = answer.get(pool)
            place = f"round {number} pool {pool}"
            found += [f"{place}: no answer"] if ours is None else [f"{place}: {d}" for d in _pool(ours, theirs)]
    return found


def _pool(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    found = []
    for kind in ("scheduled", "preempted"):
        if kind in theirs:
            extra = sorted(set(ours[kind]) - set(theirs[kind]))
            missing = sorted(set(theirs[kind]) - set(ours[kind]))
            if extra:
                found.append(f"{kind} although not expected: {', '.join(extra)}")
            if missing:
                found.append(f"not {kind}: {', '.join(missing)}")
    for job, place in theirs.get("scheduled", {}).items():
        mine = ours["scheduled"].get(job, place)
        found += [
            f"{job} {key} {mine.get(key)}, expected {place[key]}"
            for key in ("node", "priority", "method")
            if key in place and mine.get(key) != place[key]
        ]
    for job, code in theirs.get("waiting", {}).items():
        mine = ours["waiting"].get(job)
        if mine is not None and mine != code:
            found.append(f"{job} waits for {mine}, expected {code}")
    for queue, figures in theirs.get("queues", {}).items():
        mine = ours["queues"].get(queue)
        if mine is None:
            found.append(f"queue {queue} has no figures")
            continue
        for key, value in figures.items():
            if key in mine and not _same(mine[key], value):
                found.append(f"queue {queue} {key} {mine[key]}, expected {value}")
    for key in ("total", "termination", "spotPrice"):
        if key in theirs and key in ours and not _same(ours[key], theirs[key]):
            found.append(f"{key} {ours[key]}, expected {theirs[key]}")
    return found


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, (int, float)) and isinstance(ours, (int, float)):
        return abs(ours - theirs) <= TOLERANCE
    return bool(ours == theirs)
