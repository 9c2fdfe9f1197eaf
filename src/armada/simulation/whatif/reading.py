"""Reads files of clusters and of workloads (YAML). A key that means nothing here is told as a remark and left out."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import yaml

from armada.control.commands.submission.affinity import affinity_fault, affinity_terms
from armada.model.configuration import reading
from armada.model.configuration.reading import Section, listed, number, quantities, text, texts, whole
from armada.model.errors import InvalidRequest
from armada.model.fleet import Taint
from armada.model.jobs import AffinityTerm, Toleration
from armada.simulation.whatif.specs import (
    CLUSTER_LABEL,
    MAX_DELAY_MS,
    MAX_JOBS,
    MAX_NODES,
    ClusterSpec,
    Delay,
    FleetSpec,
    NodeTemplate,
    QueueSpec,
    TemplateSpec,
    WorkloadSpec,
)

NANOSECONDS_PER_MS: Final = 1_000_000
MAX_PRIORITY: Final = 2**31 - 1

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WRITE_A_DURATION: Final = "write 6m, {seconds: 360}, or nanoseconds"

T = TypeVar("T")


def read_fleet_spec(content: str, name: str, remarks: list[str]) -> FleetSpec:
    """Read a file of clusters; `name` stands in for a name that the file leaves out.

    Raises:
        InvalidRequest: something is wrong; the text begins with the path of the field.
    """
    reader = _Reader(remarks)
    return reader.closed(lambda root: reader.fleet(root, name))(_parsed(content), "")


def read_workload_spec(content: str, name: str, remarks: list[str]) -> WorkloadSpec:
    """Read a file of queues and their jobs; `name` stands in for a name that the file leaves out.

    Raises:
        InvalidRequest: something is wrong; the text begins with the path of the field.
    """
    reader = _Reader(remarks)
    return reader.closed(lambda root: reader.workload(root, name))(_parsed(content), "")


def _parsed(content: str) -> Any:
    try:
        return yaml.load(content, Loader=_LOADER)  # noqa: S506 - the C twin of the safe loader
    # Beside its own errors the parser lets through what its constructors of dates, numbers and tagged values raise.
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRequest(f"not YAML: {error}") from error


class _Lenient(Section):
    """A mapping whose unknown keys are remarked upon."""

    def __init__(self, values: Any, path: str, remarks: list[str]) -> None:
        super().__init__(values, path)
        self._remarks = remarks

    def close(self) -> None:
        for key in self._values:
            if key not in self._read:
                known = ", ".join(sorted(self._read))
                self._remarks.append(f"{self.path(str(key))}: unknown, not looked at; known here are {known}")


class _Requirements(NamedTuple):
    requests: tuple[tuple[str, str], ...]
    node_selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]
    affinity: tuple[AffinityTerm, ...] | None
    annotations: tuple[tuple[str, str], ...]


class _Reader:
    """Readers of all kinds of sections."""

    def __init__(self, remarks: list[str]) -> None:
        self.remarks = remarks

    def closed(self, read: Callable[[Section], T]) -> Callable[[Any, str], T]:
        def read_section(values: Any, path: str) -> T:
            section = _Lenient(values, path, self.remarks)
            result = read(section)
            section.close()
            return result

        return read_section

    # -- clusters -----------------------------------------------------------------------------------------------------

    def fleet(self, root: Section, name: str) -> FleetSpec:
        clusters = root.need("clusters", listed(self.closed(self._cluster)))
        spec = FleetSpec(
            name=root.get("name", text, "") or name,
            clusters=clusters,
            workflow_delay=root.get("workflowManagerDelayDistribution", self._delay, Delay()),
            pending_delay=root.get("pendingDelayDistribution", self._delay, Delay()),
        )
        _refuse_repeats((f"clusters[{index}].name", cluster.name) for index, cluster in enumerate(clusters))
        if not 1 <= spec.node_count <= MAX_NODES:
            raise InvalidRequest(f"clusters: {spec.node_count:,} nodes in all; there must be 1 to {MAX_NODES:,}")
        return spec

    def _cluster(self, section: Section) -> ClusterSpec:
        return ClusterSpec(
            name=section.need("name", _name),
            pool=section.need("pool", _name),
            node_templates=section.need("nodeTemplates", listed(self.closed(self._node_template))),
        )

    def _node_template(self, section: Section) -> NodeTemplate:
        def total(inner: Section) -> dict[str, str]:
            return inner.need("resources", quantities)

        return NodeTemplate(
            number=section.need("number", whole),
            total=section.need("totalResources", self.closed(total)),
            labels=section.get("labels", _labels, {}),
            taints=section.get("taints", listed(self.closed(self._taint)), ()),
        )

    def _taint(self, section: Section) -> Taint:
        section.get("timeAdded", _anything, None)
        return Taint(
            section.need("key", text), section.get("value", _label, ""), section.get("effect", text, "NoSchedule")
        )

    # -- workloads ----------------------------------------------------------------------------------------------------

    def workload(self, root: Section, name: str) -> WorkloadSpec:
        queues = root.need("queues", listed(self.closed(self._queue)))
        queues = tuple(_with_ids(queue) for queue in queues)
        spec = WorkloadSpec(
            name=root.get("name", text, "") or name, seed=root.get("randomSeed", _seed, 0), queues=queues
        )
        if not queues:
            raise InvalidRequest("queues: there is none; name at least one with jobTemplates")
        _refuse_repeats((f"queues[{index}].name", queue.name) for index, queue in enumerate(queues))
        if not 1 <= spec.job_count <= MAX_JOBS:
            raise InvalidRequest(f"queues: {spec.job_count:,} jobs in all; there must be 1 to {MAX_JOBS:,}")
        check_dependencies(spec)
        return spec

    def _queue(self, section: Section) -> QueueSpec:
        weight = section.get("weight", number, 1.0)
        if not 0 < weight <= 1e9:
            raise InvalidRequest(
                f"{section.path('weight')}: {weight:g} is no weight; write a number above 0, such as 1"
            )
        return QueueSpec(
            name=section.need("name", _name),
            weight=weight,
            templates=section.get("jobTemplates", listed(self.closed(self._template)), ()),
        )

    def _template(self, section: Section) -> TemplateSpec:
        asked = section.need("requirements", self.closed(self._requirements))
        count = section.need("number", _positive)
        cardinality = section.get("gangCardinality", whole, 0) or 1
        if count % cardinality:
            raise InvalidRequest(
                f"{section.path('gangCardinality')}: {count} jobs can't be split into gangs of {cardinality};"
                " it must divide number"
            )
        repeats, period_ms = section.get("repeat", self.closed(self._repeat), (1, 0))
        return TemplateSpec(
            id=section.get("id", text, ""),
            place=section.path("")[:-1],
            number=count,
            job_set=section.get("jobSet", text, ""),
            runtime=section.need("runtimeDistribution", self._delay),
            requests=asked.requests,
            queue_priority=section.get("queuePriority", _priority, 0),
            priority_class=section.get("priorityClassName", text, ""),
            node_selector=asked.node_selector,
            tolerations=asked.tolerations,
            affinity=asked.affinity,
            annotations=asked.annotations,
            dependencies=section.get("dependencies", texts, ()),
            earliest_ms=section.get("earliestSubmitTime", self.length_ms, 0),
            after_dependencies_ms=section.get("earliestSubmitTimeFromDependencyCompletion", self.length_ms, 0),
            gang_cardinality=cardinality,
            uniformity_label=section.get("gangNodeUniformityLabel", text, "") or CLUSTER_LABEL,
            repeats=repeats,
            period_ms=period_ms,
        )

    def _repeat(self, section: Section) -> tuple[int, int]:
        return section.need("numTimes", _positive), section.need("period", self.length_ms)

    def _requirements(self, section: Section) -> _Requirements:
        for inert in ("labels", "priority", "preemptionPolicy", "schedulingResourceRequirements"):
            section.get(inert, _anything, None)

        def amounts(inner: Section) -> dict[str, str]:
            limits = inner.get("limits", quantities, {})
            return {**limits, **inner.get("requests", quantities, {})}

        requests = section.need("resourceRequirements", self.closed(amounts))
        if not requests:
            path = section.path("resourceRequirements.requests")
            raise InvalidRequest(f"{path} is missing: say what a job asks for, such as {{cpu: 1, memory: 1Gi}}")
        return _Requirements(
            requests=tuple(sorted(requests.items())),
            node_selector=tuple(sorted(section.get("nodeSelector", _labels, {}).items())),
            tolerations=section.get("tolerations", listed(reading.toleration), ()),
            affinity=section.get("affinity", _affinity, None),
            annotations=tuple(sorted(section.get("annotations", _labels, {}).items())),
        )

    # -- lengths of time ----------------------------------------------------------------------------------------------

    def _delay(self, values: Any, path: str) -> Delay:
        def parts(section: Section) -> Delay:
            return Delay(section.get("minimum", self.length_ms, 0), section.get("tailMean", self.length_ms, 0))

        return self.closed(parts)(values, path)

    def length_ms(self, value: Any, path: str) -> int:
        """Read a length of time: a text such as 6m, whole nanoseconds, or {seconds: ..., nanos: ...}."""
        if isinstance(value, Mapping):
            return self.closed(self._seconds)(value, path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            milliseconds = _whole_or_text(value, path, _WRITE_A_DURATION) / NANOSECONDS_PER_MS
            if 0 < milliseconds < 1:
                self.remarks.append(f"{path}: {value} nanoseconds are less than a millisecond; {_WRITE_A_DURATION}")
            return _bounded(milliseconds, path)
        if not isinstance(value, str):
            raise InvalidRequest(f"{path}: {value!r} is no length of time; {_WRITE_A_DURATION}")
        try:
            return _bounded(reading.duration_ms(value, path), path)
        except InvalidRequest:
            raise InvalidRequest(f"{path}: {value!r} is no length of time; {_WRITE_A_DURATION}") from None

    def _seconds(self, section: Section) -> int:
        def part(value: Any, path: str) -> int:
            return _whole_or_text(value, path, _WRITE_A_DURATION)

        seconds, nanos = section.get("seconds", part, 0), section.get("nanos", part, 0)
        return _bounded(seconds * 1_000 + nanos / NANOSECONDS_PER_MS, section.path("seconds"))


def _with_ids(queue: QueueSpec) -> QueueSpec:
    """Give templates without an id one, and those without a job set their id's."""
    named = []
    for index, template in enumerate(queue.templates):
        template_id = template.id or f"{queue.name}-{index}"
        named.append(msgspec.structs.replace(template, id=template_id, job_set=template.job_set or template_id))
    return msgspec.structs.replace(queue, templates=tuple(named))


def check_dependencies(spec: WorkloadSpec) -> None:
    """Check that template ids are unique, and that dependencies exist and never lead back.

    Raises:
        InvalidRequest: they do not; the text names the template's place.
    """
    templates = {template.id: template for queue in spec.queues for template in queue.templates}
    _refuse_repeats((f"{one.place}.id", one.id) for queue in spec.queues for one in queue.templates)
    left: dict[str, int] = {}
    dependents: dict[str, list[str]] = {}
    for template in templates.values():
        for index, wanted in enumerate(template.dependencies):
            if wanted not in templates:
                place = f"{template.place}.dependencies[{index}]"
                raise InvalidRequest(f"{place}: no template has the id {wanted!r}; ids are {_some(templates)}")
            dependents.setdefault(wanted, []).append(template.id)
        left[template.id] = len(template.dependencies)
    ready = [template_id for template_id, count in left.items() if not count]
    while ready:
        for follower in dependents.get(ready.pop(), ()):
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    circle = [template_id for template_id, count in left.items() if count]
    if circle:
        place = templates[circle[0]].place
        raise InvalidRequest(f"{place}.dependencies: these wait for each other: {_some(circle)}; break the circle")


def _some(names: Any) -> str:
    shown = list(names)
    return ", ".join(shown[:10]) + (", ..." if len(shown) > 10 else "")


def _refuse_repeats(named: Iterator[tuple[str, str]]) -> None:
    for (_, before), (path, name) in pairwise(sorted(named, key=lambda pair: pair[1])):
        if before == name:
            raise InvalidRequest(f"{path}: {name!r} is there twice; give each a name of its own")


def _anything(value: Any, _path: str) -> Any:
    return value


def _name(value: Any, path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value or len(value) > 253 or not value.isprintable():
        raise InvalidRequest(f"{path}: {value!r} is no name; write 1 to 253 printable characters")
    return value


def _label(value: Any, path: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else text(value, path)


_labels: Final = reading.mapped(_label)


def _affinity(value: Any, path: str) -> tuple[AffinityTerm, ...] | None:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{path}: expected a mapping, found {value!r}")
    pod = {"affinity": dict(value)}
    try:
        fault = affinity_fault(pod)
        if fault:
            raise InvalidRequest(f"{path}: {fault}")
        return affinity_terms(pod)
    except (AttributeError, TypeError) as error:
        raise InvalidRequest(f"{path}: it has not the form of a Kubernetes node affinity") from error


def _positive(value: Any, path: str) -> int:
    count = whole(value, path)
    if not 1 <= count <= MAX_JOBS:
        raise InvalidRequest(f"{path}: {value!r} is not from 1 to {MAX_JOBS:,}")
    return count


def _priority(value: Any, path: str) -> int:
    priority = whole(value, path)
    if priority > MAX_PRIORITY:
        raise InvalidRequest(f"{path}: {value!r} is above {MAX_PRIORITY}")
    return priority


def _seed(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise InvalidRequest(f"{path}: {value!r} is no seed; write a whole number of at most 63 bits (0: the clock's)")
    return value


def _whole_or_text(value: Any, path: str, advice: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 19:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63 or value != int(value):
        raise InvalidRequest(f"{path}: {value!r} is no whole number of at least 0; {advice}")
    return int(value)


def _bounded(milliseconds: float, path: str) -> int:
    if not 0 <= milliseconds <= MAX_DELAY_MS:
        raise InvalidRequest(f"{path}: it is negative or longer than ten years")
    return round(milliseconds)
