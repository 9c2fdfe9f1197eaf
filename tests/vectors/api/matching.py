"""Comparing an answer with a recorded one.

Recorded values hold placeholders: `<job:1>`, `<uuid:2>`, `<msgid:...>`, `<ts>`, `<int>`. A numbered one is bound to
what is first seen in its place and must be the same ever after. Wording is free, the recorded user `alice` stands for
whoever calls here (who is not in her group `admins`), and what is absent equals what is empty: Go writes empty fields
of Kubernetes' messages.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

CALLER: Final = "anonymous"
"""Who calls in these tests: with the defaults of this server nobody has a name."""

FREE: Final = frozenset({"message", "error"})
"""Keys whose texts are free; they must be there, and not be empty, where the recording has them."""

_FREE_REASONS: Final = ("failed", "leaseReturned", "preempted")
_UNORDERED: Final = "jobRunIdsToCancel"
_PLACEHOLDER: Final = re.compile(r"<(job|uuid|msgid|old-form-msgid|ts|int|rid|stamp)(?::([^>]*))?>")
_PATTERNS: Final[Mapping[str, str]] = {
    "job": r"[0-9a-z]{26}",
    "uuid": r"[0-9a-f-]{36}",
    "msgid": r"[0-9]+:[0-9]+:[0-9]+:[01]",
    "old-form-msgid": r"[0-9]+-[0-9]+",
    "ts": r"\S+",
    "int": r"[0-9]+",
    "rid": r"\S*",
    "stamp": r".*",
}
_BOUND: Final = frozenset({"job", "uuid", "msgid"})


class Matcher:
    """Compares values, and remembers what placeholders stand for."""

    def __init__(self) -> None:
        self.bound: dict[str, str] = {}

    def differences(self, recorded: Any, seen: Any, path: str = "") -> list[str]:
        """Where `seen` is not what was recorded; binds placeholders on the way."""
        if _is_empty(recorded) and _is_empty(seen):
            return []
        if path.endswith(_UNORDERED) and isinstance(recorded, list) and isinstance(seen, list):
            recorded, seen = sorted(self.filled(item) for item in recorded), sorted(seen)
        if path.endswith("groups") and isinstance(recorded, list):
            recorded = [group for group in recorded if group != "admins"]
        if isinstance(recorded, dict) and isinstance(seen, dict | None):
            return self._objects(recorded, seen or {}, path)
        if isinstance(recorded, list) and isinstance(seen, list):
            found = [] if len(recorded) == len(seen) else [f"{path}: {len(seen)} items, recorded {len(recorded)}"]
            for index, (left, right) in enumerate(zip(recorded, seen, strict=False)):
                found += self.differences(left, right, f"{path}[{index}]")
            return found
        if isinstance(recorded, str) and isinstance(seen, str):
            return [] if self._same_text(recorded, seen) else [f"{path}: {seen!r}, recorded {recorded!r}"]
        return [] if recorded == seen else [f"{path}: {seen!r}, recorded {recorded!r}"]

    def _objects(self, recorded: dict[str, Any], seen: dict[str, Any], path: str) -> list[str]:
        named = {self.filled(key): value for key, value in recorded.items()}
        unbound = {key: value for key, value in named.items() if _PLACEHOLDER.search(key)}
        found = []
        for key, value in unbound.items():  # a map from ids that are seen here for the first time
            free = sorted(seen.keys() - named.keys())
            match = next((candidate for candidate in free if self._same_text(key, candidate)), None)
            if match is not None:
                del named[key]
                named[match] = value
        for key in sorted(named.keys() | seen.keys()):
            place = f"{path}.{key}" if path else key
            if key in FREE or (key == "reason" and path.rpartition(".")[2] in _FREE_REASONS):
                if _is_empty(named.get(key)) != _is_empty(seen.get(key)):
                    found.append(f"{place}: {seen.get(key)!r}, recorded {named.get(key)!r}")
            else:
                found += self.differences(named.get(key), seen.get(key), place)
        return found

    def _same_text(self, recorded: str, seen: str) -> bool:
        if recorded == "alice":
            return seen == CALLER
        pattern, names = "", []
        position = 0
        for match in _PLACEHOLDER.finditer(recorded):
            kind, number = match.group(1), match.group(2)
            pattern += re.escape(recorded[position : match.start()])
            known = self.bound.get(match.group(0))
            pattern += re.escape(known) if known is not None else f"({_PATTERNS[kind]})"
            if known is None:
                names.append(match.group(0) if kind in _BOUND and number else "")
            position = match.end()
        pattern += re.escape(recorded[position:])
        matched = re.fullmatch(pattern, seen, re.DOTALL)
        if matched is None:
            return False
        self.bound.update({name: value for name, value in zip(names, matched.groups(), strict=True) if name})
        return True

    def filled(self, text: str) -> str:
        """A recorded text with what its placeholders are bound to; unbound ones stay."""
        return _PLACEHOLDER.sub(lambda match: self.bound.get(match.group(0), match.group(0)), text)

    def request(self, recorded: Any) -> Any:
        """A recorded request as it can be sent: placeholders bound, or made up where nothing is known."""
        if isinstance(recorded, dict):
            return {self.request(key): self.request(value) for key, value in recorded.items()}
        if isinstance(recorded, list):
            return [self.request(value) for value in recorded]
        return _PLACEHOLDER.sub(self._made_up, self.filled(recorded)) if isinstance(recorded, str) else recorded

    def _made_up(self, match: re.Match[str]) -> str:
        kind, number = match.group(1), match.group(2) or "0"
        if kind == "job":
            made = f"01zz{int(number):022d}"
        elif kind == "uuid":
            made = f"00000000-0000-4000-8000-{int(number):012d}"
        elif kind == "ts":
            return "2026-01-31T12:00:00Z"
        else:
            return "0:0:0:0"
        self.bound[match.group(0)] = made
        return made


def events_by_job(events: Iterable[str]) -> dict[str, list[str]]:
    """Lines `type job` as, per job, the types in order: the order among different jobs is incidental."""
    found: dict[str, list[str]] = {}
    for line in events:
        kind, _, job = line.partition(" ")
        found.setdefault(job, []).append(kind)
    return found


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_empty(member) for member in value.values())
    return value in (None, "", "0", 0, False, [])
