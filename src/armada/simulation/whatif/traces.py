"""Reads traces in the Standard Workload Format as workloads: one template a job.

A line is a job, 18 numbers: (1) job, (2) submit second, (4) run seconds, (5) processors used, (7) memory used and (10)
asked for, in KB a processor, (8) processors asked for, (12) user, (13) group, (15) queue, (17) the job that it follows,
(18) think time in seconds after that one; -1 means unknown. Lines that begin with `;` are comments.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from armada.model.errors import InvalidRequest
from armada.model.resources import NANO_PER_UNIT, parse_quantity
from armada.simulation.whatif.specs import (
    MAX_DELAY_MS,
    MAX_JOBS,
    Delay,
    FleetSpec,
    QueueSpec,
    TemplateSpec,
    WorkloadSpec,
)

FIELDS: Final = 18
MAX_PROCESSORS: Final = 1_000_000
MAX_MEMBERS: Final = 10_000
MAX_LINE_CHARS: Final = 10_000

_JOB, _SUBMIT, _RUN, _USED, _MEMORY_USED, _ASKED, _MEMORY_ASKED = 0, 1, 3, 4, 6, 7, 9
_AFTER, _THINK = 16, 17

QUEUE_FIELDS: Final[Mapping[str, tuple[str, int]]] = {
    "user": ("user", 11),
    "group": ("group", 12),
    "queue": ("queue", 14),
    "none": ("trace", -1),
}
"""What may become the queues: the beginning of a queue's name, and the place of its number in a line."""


class TraceRules(msgspec.Struct, frozen=True, kw_only=True):
    """How lines become jobs.

    A job of more processors than `pod_processors` becomes a gang of as few equal members as that allows. Where a line
    knows no memory, a processor has `memory_per_processor` bytes. `queues_by` is a key of `QUEUE_FIELDS`.
    """

    pod_processors: int
    memory_per_processor: int = 0
    queues_by: str = "user"
    priority_class: str = ""


class _Line(msgspec.Struct, frozen=True):
    number: int
    fields: tuple[float, ...]

    def whole(self, field: int) -> int:
        return int(self.fields[field])


def largest_node_processors(fleet: FleetSpec) -> int:
    """Return the whole cpus of the largest node, at least 1."""
    found = 1
    for cluster in fleet.clusters:
        for template in cluster.node_templates:
            if template.number:
                found = max(found, parse_quantity(template.total.get("cpu", "0")) // NANO_PER_UNIT)
    return found


def read_trace(lines: Iterable[str], name: str, rules: TraceRules, remarks: list[str]) -> WorkloadSpec:
    """Read a trace.

    Jobs that never ran (no run time, or no processors) are left out, with a remark that counts them.

    Raises:
        InvalidRequest: a line is none of the format; the text begins with its number.
    """
    parsed = [line for number, text in enumerate(lines, start=1) if (line := _parsed(number, text)) is not None]
    ran = [line for line in parsed if line.fields[_RUN] >= 0 and _processors(line) >= 1]
    if not ran:
        raise InvalidRequest("there is no job with a run time and processors in this trace")
    if len(ran) < len(parsed):
        remarks.append(f"{len(parsed) - len(ran):,} of {len(parsed):,} jobs never ran and are left out")
    ran.sort(key=lambda line: (line.fields[_SUBMIT], line.number))
    known = {line.whole(_JOB): None for line in ran}
    if len(known) < len(ran):
        raise InvalidRequest("two lines have the same job number (field 1); each job must have its own")
    begin_s = ran[0].fields[_SUBMIT]
    by_queue: dict[str, list[TemplateSpec]] = {}
    prefix, field = QUEUE_FIELDS[rules.queues_by]
    jobs = 0
    earlier: dict[int, None] = {}
    for line in ran:
        job = line.whole(_JOB)
        queue = prefix if field < 0 else f"{prefix}-{line.whole(field)}" if line.fields[field] >= 0 else prefix
        template = _template(line, queue, begin_s, rules, earlier)
        earlier[job] = None
        by_queue.setdefault(queue, []).append(template)
        jobs += template.number
        if jobs > MAX_JOBS:
            raise InvalidRequest(
                f"line {line.number}: more than {MAX_JOBS:,} jobs, members of gangs counted one by one"
            )
    queues = tuple(QueueSpec(name=queue, weight=1.0, templates=tuple(by_queue[queue])) for queue in sorted(by_queue))
    return WorkloadSpec(name=name, queues=queues)


def _parsed(number: int, text: str) -> _Line | None:
    if len(text) > MAX_LINE_CHARS:
        raise InvalidRequest(f"line {number}: it has more than {MAX_LINE_CHARS:,} characters")
    words = text.split()
    if not words or words[0].startswith(";"):
        return None
    if len(words) != FIELDS:
        raise InvalidRequest(f"line {number}: a job has {FIELDS} numbers, this line has {len(words)}")
    try:
        fields = tuple(float(word) for word in words)
    except ValueError as error:
        raise InvalidRequest(f"line {number}: {error}; all {FIELDS} fields are numbers") from error
    longest_s = MAX_DELAY_MS / 1_000
    for field, limit in ((_JOB, 2**53), (_SUBMIT, longest_s), (_RUN, longest_s), (_THINK, longest_s)):
        if not -1 <= fields[field] <= limit:
            raise InvalidRequest(f"line {number}: field {field + 1} is {words[field]}; it may be -1 to {limit:.0f}")
    if not all(math.isfinite(value) for value in fields):
        raise InvalidRequest(f"line {number}: all {FIELDS} fields are finite numbers")
    return _Line(number, fields)


def _processors(line: _Line) -> int:
    return line.whole(_ASKED) if line.fields[_ASKED] > 0 else line.whole(_USED)


def _template(line: _Line, queue: str, begin_s: float, rules: TraceRules, earlier: Mapping[int, None]) -> TemplateSpec:
    processors = _processors(line)
    members = -(-processors // rules.pod_processors)
    if processors > MAX_PROCESSORS or members > MAX_MEMBERS:
        raise InvalidRequest(
            f"line {line.number}: {processors:,} processors would be a gang of {members:,} members;"
            f" at most {MAX_MEMBERS:,} are possible: give pods more processors"
        )
    own = -(-processors // members)
    kilobytes = line.fields[_MEMORY_ASKED] if line.fields[_MEMORY_ASKED] > 0 else line.fields[_MEMORY_USED]
    memory = (round(kilobytes * 1024) if kilobytes > 0 else rules.memory_per_processor) * own
    requests = (("cpu", str(own)), ("memory", str(memory))) if memory else (("cpu", str(own)),)
    after = line.whole(_AFTER)
    follows = after in earlier
    return TemplateSpec(
        id=str(line.whole(_JOB)),
        place=f"line {line.number}",
        number=members,
        job_set=queue,
        runtime=Delay(round(line.fields[_RUN] * 1_000)),
        requests=requests,
        priority_class=rules.priority_class,
        dependencies=(str(after),) if follows else (),
        earliest_ms=round((line.fields[_SUBMIT] - begin_s) * 1_000),
        after_dependencies_ms=round(max(line.fields[_THINK], 0) * 1_000) if follows else 0,
        gang_cardinality=members,
    )
