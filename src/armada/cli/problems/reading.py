"""The problem format as typed values, and reading it from files: JSON lines, plain or gzipped, or standard input.

A file whose first line is a lone `{` holds one problem over several lines.

Every mistake is reported with file, line, the path inside the problem and what to do about it.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from armada.model.configuration import scheduling_policy
from armada.model.errors import InvalidRequest
from armada.model.fleet import MAX_FACTOR, MIN_FACTOR, PRICE_BANDS, Bid
from armada.model.policy import SchedulingPolicy
from armada.model.resources import parse_quantity

MAX_LINE_BYTES: Final = 512 * 2**20
"""A longer problem is refused: a million jobs need about a third of it."""

MAX_ROUNDS: Final = 1_000

MAX_SECONDS: Final = 100 * 365 * 86_400

_GZIP_MAGIC: Final = b"\x1f\x8b"
_Q = dict[str, str]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class TaintSpec(_Part, frozen=True, kw_only=True):
    """A node's taint."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class NodeSpec(_Part, frozen=True, kw_only=True):
    """A node; `unallocatable` is room that pods of others take, by their priority."""

    id: str
    name: str = ""
    pool: str = "default"
    labels: _Q = {}
    taints: tuple[TaintSpec, ...] = ()
    total: dict[str, str | int | float]
    unallocatable: dict[int, dict[str, str | int | float]] = {}
    unschedulable: bool = False
    type: str = ""
    reservation: str = ""


class ExecutorSpec(_Part, frozen=True, kw_only=True):
    """An executor with its nodes, in index order."""

    id: str
    nodes: tuple[NodeSpec, ...]
    cordoned: bool = False
    heartbeat_seconds_ago: float = 0.0


class ClassLimitSpec(_Part, frozen=True, kw_only=True):
    """A queue's limit in one class. By pool it is {pool: {resource: fraction}}."""

    maximum_resource_fraction: dict[str, float] = {}
    maximum_resource_fraction_by_pool: dict[str, dict[str, float]] = {}


class QueueSpec(_Part, frozen=True, kw_only=True):
    """A queue."""

    name: str
    priority_factor: float = 1.0
    cordoned: bool = False
    resource_limits_by_priority_class_name: dict[str, ClassLimitSpec] = {}


class TolerationSpec(_Part, frozen=True, kw_only=True):
    """A job's toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ExpressionSpec(_Part, frozen=True, kw_only=True):
    """One line of a node affinity term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class TermSpec(_Part, frozen=True, kw_only=True):
    """One term of a node affinity: all its lines must hold."""

    match_expressions: tuple[ExpressionSpec, ...] = ()
    match_fields: tuple[ExpressionSpec, ...] = ()


class AffinitySpec(_Part, frozen=True, kw_only=True):
    """A required node affinity: one term must hold."""

    node_selector_terms: tuple[TermSpec, ...]


class GangSpecText(_Part, frozen=True, kw_only=True):
    """What a job says about its gang."""

    id: str
    cardinality: int
    uniformity: str = ""


class RunSpec(_Part, frozen=True, kw_only=True):
    """The run that a job has when the problem begins."""

    node: str
    pool: str = "default"
    scheduled_at_priority: int | None = None
    leased_seconds_ago: float = 0.0
    unacknowledged: bool = False


class FinishedSpec(_Part, frozen=True, kw_only=True):
    """A run that ended just before the problem begins."""

    pool: str
    node: str = ""
    running_seconds_ago: float = 0.0


class JobSpecText(_Part, frozen=True, kw_only=True):
    """A job. `submitted` gives the submit order; `arrives` and `leaves` are rounds."""

    id: str
    queue: str
    priority_class: str = ""
    priority: int = 0
    submitted: int = 0
    request: dict[str, str | int | float] = {}
    pools: tuple[str, ...] | None = None
    node_selector: _Q = {}
    tolerations: tuple[TolerationSpec, ...] = ()
    node_affinity: AffinitySpec | None = None
    gang: GangSpecText | None = None
    price_band: int = 0
    run: RunSpec | None = None
    finished: FinishedSpec | None = None
    arrives: int = 0
    leaves: int | None = None


class BidSpec(_Part, frozen=True, kw_only=True):
    """A queue's bid in a market pool."""

    queue: str
    band: int
    pool: str
    queued: float
    running: float


class OverrideSpec(_Part, frozen=True, kw_only=True):
    """A priority factor that holds in one pool instead of the queue's own."""

    pool: str
    queue: str
    priority: float


class Problem(_Part, frozen=True, kw_only=True):
    """One problem. Keys that describe an answer (`expected`, `deviations`) are carried along untouched."""

    id: str = ""
    config: dict[str, Any] = {}
    executors: tuple[ExecutorSpec, ...]
    queues: tuple[QueueSpec, ...]
    jobs: tuple[JobSpecText, ...]
    rounds: int = 1
    seconds_per_round: float = 0.0
    bids: tuple[BidSpec, ...] = ()
    overrides: tuple[OverrideSpec, ...] = ()
    resource_units: dict[str, _Q] = {}
    submit_check: bool = False
    bench: bool = False
    expected: Any = None
    deviations: tuple[str, ...] = ()


class ReadProblem(msgspec.Struct, frozen=True, eq=False):
    """A problem with its resolved policy and where it was read."""

    problem: Problem
    policy: SchedulingPolicy
    place: str


_DECODER: Final = msgspec.json.Decoder(Problem)


def read_problems(files: tuple[Path, ...]) -> Iterator[ReadProblem]:
    """Read the problems of all files in order; `-` is standard input.

    Raises:
        InvalidRequest: a file can't be read, or a line is no valid problem.
    """
    for file in files:
        name = "standard input" if str(file) == "-" else str(file)
        try:
            with _opened(file) as stream:
                for number, line in enumerate(stream, 1):
                    if len(line) > MAX_LINE_BYTES:
                        raise InvalidRequest(f"{name}, line {number}: longer than {MAX_LINE_BYTES:,} bytes")
                    if number == 1 and line.strip() == b"{":
                        # One problem over several lines, as people write it.
                        yield read_problem(line + stream.read(MAX_LINE_BYTES), name)
                        return
                    if line.strip():
                        yield read_problem(line, f"{name}, line {number}")
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidRequest(f"{name} can't be read: {reason}") from error


@contextmanager
def _opened(file: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for its lines; gzip is known by its first bytes. What can't be rewound is read whole."""
    with ExitStack() as closing:
        source: io.BufferedIOBase
        source = io.BytesIO(sys.stdin.buffer.read()) if str(file) == "-" else closing.enter_context(file.open("rb"))
        if not source.seekable():
            source = io.BytesIO(source.read())
        start = source.read(2)
        source.seek(0)
        yield closing.enter_context(gzip.GzipFile(fileobj=source)) if start == _GZIP_MAGIC else source


def read_problem(line: bytes, place: str) -> ReadProblem:
    """Read one problem; `place` says where it stands, for messages.

    Raises:
        InvalidRequest: it is no JSON, has an unknown or missing key, or contradicts itself.
    """
    try:
        problem = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{place}: {_fault(line, error)}; docs/decide.md describes the format") from error
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"{place}: not one JSON object on a line: {error}") from error
    try:
        policy = scheduling_policy(problem.config, "config")
        _check(problem, policy)
    except InvalidRequest as error:
        name = f" ({problem.id})" if problem.id else ""
        raise InvalidRequest(f"{place}{name}: {error}") from error
    return ReadProblem(problem, policy, place)


def _fault(line: bytes, error: msgspec.ValidationError) -> str:
    """Say what is wrong with a problem, and in which item: a decoder knows that it was one of a list, not which."""
    values = msgspec.json.decode(line)
    for key, kind in (("executors", ExecutorSpec), ("queues", QueueSpec), ("jobs", JobSpecText)):
        items = values.get(key) if isinstance(values, dict) else None
        for index, item in enumerate(items if isinstance(items, list) else ()):
            try:
                msgspec.convert(item, kind)
            except msgspec.ValidationError as closer:
                name = item.get("id", item.get("name", "")) if isinstance(item, dict) else ""
                return f"{key}[{index}]{f' ({name})' if name else ''}: {closer}"
    return str(error)


def _check(problem: Problem, policy: SchedulingPolicy) -> None:
    if not 1 <= problem.rounds <= MAX_ROUNDS:
        raise InvalidRequest(f"rounds must be 1 to {MAX_ROUNDS}, found {problem.rounds}")
    _check_numbers(problem)
    _check_names("executors", [executor.id for executor in problem.executors])
    _check_names("nodes", [node.id for executor in problem.executors for node in executor.nodes])
    _check_names("queues", [queue.name for queue in problem.queues])
    _check_names("jobs", [job.id for job in problem.jobs])
    for executor in problem.executors:
        for node in executor.nodes:
            _check_quantities(f"node {node.id}: total", node.total)
            for amounts in node.unallocatable.values():
                _check_quantities(f"node {node.id}: unallocatable", amounts)
    classes = tuple(kind.name for kind in policy.priority_classes)
    queues = {queue.name: None for queue in problem.queues}
    for job in problem.jobs:
        if job.queue not in queues:
            raise InvalidRequest(f"job {job.id}: queue {job.queue!r} is not among the problem's queues")
        _check_job(job, classes)
    _check_bids(problem)


def _check_numbers(problem: Problem) -> None:
    """Refuse times that no clock can show, and weights with which no share can be worked out."""
    _check_seconds("secondsPerRound", problem.seconds_per_round)
    for executor in problem.executors:
        _check_seconds(f"executor {executor.id}: heartbeatSecondsAgo", executor.heartbeat_seconds_ago)
    for job in problem.jobs:
        for key, run in (("run.leasedSecondsAgo", job.run), ("finished.runningSecondsAgo", job.finished)):
            if run is not None:
                seconds = run.leased_seconds_ago if isinstance(run, RunSpec) else run.running_seconds_ago
                _check_seconds(f"job {job.id}: {key}", seconds)
        if job.arrives < 0 or (job.leaves is not None and job.leaves < 0):
            raise InvalidRequest(f"job {job.id}: arrives and leaves are rounds, counted from 0")
    factors = [(f"queue {queue.name}: priorityFactor", queue.priority_factor) for queue in problem.queues]
    factors += [
        (f"override of queue {one.queue} in pool {one.pool}: priority", one.priority) for one in problem.overrides
    ]
    for place, factor in factors:
        if factor > MAX_FACTOR or 0 < factor < MIN_FACTOR:
            raise InvalidRequest(f"{place} must be from {MIN_FACTOR:g} to {MAX_FACTOR:g}, found {factor:g}")


def _check_seconds(place: str, seconds: float) -> None:
    if abs(seconds) > MAX_SECONDS:
        raise InvalidRequest(f"{place}: {seconds:g} seconds are more than a hundred years")


def _check_job(job: JobSpecText, classes: tuple[str, ...]) -> None:
    if job.priority_class and job.priority_class not in classes:
        known = ", ".join(classes)
        raise InvalidRequest(f"job {job.id}: priorityClass {job.priority_class!r} is not configured; there is {known}")
    if job.gang is not None and job.gang.cardinality < 1:
        raise InvalidRequest(f"job {job.id}: gang.cardinality must be at least 1")
    if job.run is not None and job.arrives:
        raise InvalidRequest(f"job {job.id}: a job that runs already can't arrive later; leave out run or arrives")
    if not 0 <= job.price_band <= len(PRICE_BANDS):
        raise InvalidRequest(f"job {job.id}: priceBand must be 1 (A) to {len(PRICE_BANDS)}, or 0 for none")
    _check_quantities(f"job {job.id}: request", job.request)
    for name, amount in job.request.items():
        if parse_quantity(str(amount)) < 0:
            raise InvalidRequest(f"job {job.id}: request: {name}: {amount} is less than nothing")


def _check_bids(problem: Problem) -> None:
    for one in problem.bids:
        place = f"bid of queue {one.queue} in pool {one.pool}"
        if not 0 <= one.band <= len(PRICE_BANDS):
            raise InvalidRequest(f"{place}: band must be 1 (A) to {len(PRICE_BANDS)}, or 0 for jobs without a band")
        try:
            Bid(one.queued, one.running)
        except InvalidRequest as error:
            raise InvalidRequest(f"{place}: {error}") from error
    for pool, amounts in problem.resource_units.items():
        _check_quantities(f"resourceUnits of pool {pool}", {**amounts})
        for name, amount in amounts.items():
            if parse_quantity(amount) <= 0:
                raise InvalidRequest(f"resourceUnits of pool {pool}: a unit of {amount!r} of {name} is not above 0")


def _check_names(key: str, names: list[str]) -> None:
    if len(dict.fromkeys(names)) != len(names):
        seen: dict[str, None] = {}
        for name in names:
            if name in seen:
                raise InvalidRequest(f"{key}: {name!r} occurs twice; every one needs a name of its own")
            seen[name] = None
    if "" in names:
        raise InvalidRequest(f"{key}: number {names.index('') + 1} has an empty name")


def _check_quantities(place: str, amounts: dict[str, str | int | float]) -> None:
    for name, amount in amounts.items():
        try:
            parse_quantity(str(amount))
        except InvalidRequest as error:
            raise InvalidRequest(f"{place}: {name}: {error}") from error


def not_followed(read: ReadProblem) -> list[str]:
    """Return what the problem asks for and this version's scheduler does not do yet, as sentences."""
    return [
        f"{read.place}: experimentalRunReconciliation of pool {pool.name} is not followed yet"
        for pool in read.policy.pools
        if pool.reconciliation
    ]


def quantities(amounts: dict[str, str | int | float]) -> _Q:
    """Return amounts as quantity texts; a bare number is taken as its text."""
    return {name: str(amount) for name, amount in amounts.items()}
