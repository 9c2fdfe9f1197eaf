"""What a pod spec says about how its simulated pod behaves: annotation first, then the text of its commands."""

import re
from typing import Any, Final

import msgspec

from armada.executor.pods import DEFAULT_GRACE_SECONDS
from armada.model.errors import InvalidRequest
from armada.model.jobs import JobTemplate
from armada.model.resources import parse_quantity
from armada.simulation.fleet import MAX_DURATION_MS, duration_ms, exit_code

_RANDOM: Final = re.compile(r"\(\s*RANDOM\s*%\s*(\d{1,9})\s*\)\s*\+\s*(\d{1,9})")
_SLEEP: Final = re.compile(r"\bsleep\s+(\d{1,9}(?:\.\d{1,3})?)([smhd]?)(?![\w.])")
_EXIT: Final = re.compile(r"(?:^|[;&|\s])exit\s+(\d{1,3})\s*$")
_SLEEP_UNIT_MS: Final = {"": 1_000, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How the pods of one template behave; None leaves it to the cluster. Requests are in nano units.

    A run takes `fixed_ms` plus, with a `spread_s` above 0, a whole number of seconds below it.
    """

    containers: tuple[str, ...]
    requests: tuple[tuple[str, int], ...]
    grace_ms: int
    deadline_ms: int = 0
    fixed_ms: int | None = None
    spread_s: int = 0
    exit_code: int | None = None
    start_ms: int | None = None
    stop_ms: int | None = None
    is_oom: bool = False
    stuck: str = ""

    def runtime_ms(self, chance: float) -> int | None:
        """How long a pod runs, by a chance in [0, 1)."""
        if self.fixed_ms is None:
            return None
        return min(self.fixed_ms + int(chance * self.spread_s) * 1_000, MAX_DURATION_MS)


class _PodSpec(msgspec.Struct, rename="camel"):
    containers: list[dict[str, Any]] = []
    termination_grace_period_seconds: int | str | None = None
    active_deadline_seconds: int | str | None = None


def plan_of(template: JobTemplate, annotation: str) -> Plan:
    """Read a template. Raises InvalidRequest for a wrong annotation, msgspec.DecodeError for a broken pod spec."""
    spec = msgspec.json.decode(template.pod_spec, type=_PodSpec)
    if not spec.containers:
        raise InvalidRequest("the pod has no containers")
    grace_seconds = spec.termination_grace_period_seconds
    requests = [(name, parse_quantity(quantity)) for name, quantity in template.shape.requests]
    fields: dict[str, Any] = {
        "containers": tuple(str(container.get("name", "")) for container in spec.containers),
        "requests": (*((name, amount) for name, amount in requests if name != "pods"), ("pods", parse_quantity("1"))),
        "grace_ms": int(DEFAULT_GRACE_SECONDS if grace_seconds is None else grace_seconds) * 1_000,
        "deadline_ms": int(spec.active_deadline_seconds or 0) * 1_000,
    }
    fields.update(_from_commands(spec.containers))
    fields.update(_from_annotation(template.annotations.get(annotation, ""), annotation))
    return Plan(**fields)


def _from_commands(containers: list[dict[str, Any]]) -> dict[str, Any]:
    """The longest container decides how long the pod runs, the last exit code that isn't 0 how it ends."""
    fields: dict[str, Any] = {}
    longest = -1
    for container in containers:
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        text = " ".join(str(word) for word in words)
        ending = _EXIT.search(text)
        if ending is not None:
            fields["exit_code"] = int(ending[1]) & 0xFF
        drawn = _RANDOM.search(text)
        if drawn is not None:
            fixed_ms, spread_s = int(drawn[2]) * 1_000, int(drawn[1])
        else:
            sleeps = _SLEEP.findall(text)
            if not sleeps:
                continue
            fixed_ms, spread_s = sum(int(float(number) * _SLEEP_UNIT_MS[unit]) for number, unit in sleeps), 0
        if fixed_ms + spread_s * 1_000 > longest:
            longest = fixed_ms + spread_s * 1_000
            fields["fixed_ms"], fields["spread_s"] = fixed_ms, spread_s
    return fields


def _from_annotation(text: str, annotation: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        path = f"annotation {annotation}: {key}"
        if key == "runtime":
            fields["fixed_ms"], fields["spread_s"] = duration_ms(value, path), 0
        elif key == "exit":
            fields["exit_code"] = 0 if value == "0" else exit_code(value, path)
        elif key == "start":
            fields["start_ms"] = duration_ms(value, path)
        elif key == "stop":
            fields["stop_ms"] = duration_ms(value, path)
        elif key == "stuck" and value:
            fields["stuck"] = value
        elif key == "oom" and not equals:
            fields["is_oom"] = True
        else:
            raise InvalidRequest(f"{path}: unknown; known are runtime=, exit=, start=, stop=, stuck=, oom")
    return fields
