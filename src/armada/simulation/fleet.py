"""Simulated clusters as a file describes them: nodes, how pods behave, faults. Reads YAML, checks everything.

```yaml
seed: 7
timeScale: 10                  # simulated seconds per real second
clusters:
  - id: east
    pool: gpu
    nodes: [{name: a100, count: 200, allocatable: {cpu: "96", memory: 1Ti}, labels: {zone: z1}, taints: []}]
    pods:
      default:
        startDelay: {dist: lognormal, p50: 2s, p99: 30s}
        runtime: {dist: exponential, mean: 10m}
        outcome: {succeed: 0.97, exit: {"1": 0.02}, oom: 0.01}
    faults:
      - {at: 1h, node: east-a100-3, kind: NotReady, for: 20m}
      - {every: 30m, kind: apiErrors, rate: 0.2, for: 1m}
```

A file with `application: {clusterId: ..., pool: ...}` and `nodes` is read as one cluster of that name.
"""

import math
import re
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, Final

import msgspec
import yaml

from armada.executor.pods import HOSTNAME_LABEL
from armada.model.errors import InvalidRequest
from armada.model.fleet import Node, Taint
from armada.model.resources import canonical_quantity, parse_quantity

MAX_CLUSTERS: Final = 1_000
MAX_NODES: Final = 200_000
MAX_DURATION_MS: Final = 366 * 86_400_000
DEFAULT_ALLOCATABLE: Final[Mapping[str, str]] = {
    "cpu": "8",
    "memory": "128Gi",
    "ephemeral-storage": "1Ti",
    "pods": "250",
}
SIMULATED_LABEL: Final = "armadaproject.io/simulated"
POD_ANNOTATION: Final = "armadaproject.io/sim"

_UNIT_MS: Final = {"ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6, "d": 8.64e7}
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_QUANTILE_99: Final = NormalDist().inv_cdf(0.99)
_NORMAL: Final = NormalDist()


class Distribution(msgspec.Struct, frozen=True):
    """Lengths of time in milliseconds.

    `kind` is constant (a), uniform (a to b), exponential (mean a) or lognormal (median a, 99th percentile b).
    """

    kind: str
    a_ms: float
    b_ms: float = 0.0

    def at(self, chance: float) -> int:
        """The length for a chance in [0, 1)."""
        if self.kind == "constant":
            value = self.a_ms
        elif self.kind == "uniform":
            value = self.a_ms + (self.b_ms - self.a_ms) * chance
        elif self.kind == "exponential":
            value = -self.a_ms * math.log1p(-chance)
        else:
            spread = math.log(self.b_ms / self.a_ms) / _QUANTILE_99
            value = self.a_ms * math.exp(spread * _NORMAL.inv_cdf(min(max(chance, 1e-9), 1 - 1e-9)))
        return int(min(max(value, 0.0), MAX_DURATION_MS))


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How pods behave unless they say otherwise. `exits` are (exit code, chance); the rest of 1 succeeds."""

    start_delay: Distribution = Distribution("uniform", 10.0, 50.0)
    runtime: Distribution = Distribution("constant", 1_000.0)
    stop_delay: Distribution = Distribution("constant", 10.0)
    exits: tuple[tuple[int, float], ...] = ()
    oom: float = 0.0


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that goes wrong at a time after the start, once or again and again.

    `kind` is NotReady (the node takes nothing, its pods stand still), Gone (the node and its pods vanish, and the node
    is back afterwards) or apiErrors (calls fail with chance `rate`).
    """

    kind: str
    at_ms: int
    every_ms: int = 0
    for_ms: int = 0
    node: str = ""
    rate: float = 1.0


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One simulated cluster. `time_scale` divides all lengths of time."""

    executor_id: str
    pool: str
    nodes: tuple[Node, ...]
    behaviour: Behaviour = Behaviour()
    faults: tuple[Fault, ...] = ()
    annotation: str = POD_ANNOTATION
    time_scale: float = 1.0


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """All simulated clusters of one process."""

    clusters: tuple[ClusterSpec, ...]
    seed: int = 0


def uniform_fleet(clusters: int, nodes: int, *, pool: str = "default", seed: int = 0, name: str = "sim") -> Fleet:
    """Equal clusters of equal nodes, named `sim-1`, `sim-2`...; raises InvalidRequest for sizes out of bounds."""
    if not 1 <= clusters <= MAX_CLUSTERS or not nodes >= 1 or clusters * nodes > MAX_NODES:
        raise InvalidRequest(
            f"{clusters} clusters of {nodes} nodes can't be simulated: at most {MAX_CLUSTERS} clusters and"
            f" {MAX_NODES} nodes, at least one of each"
        )
    specs = []
    for number in range(1, clusters + 1):
        group = {"name": "worker", "count": nodes}
        executor_id = f"{name}-{number}"
        specs.append(ClusterSpec(executor_id=executor_id, pool=pool, nodes=_nodes(executor_id, pool, [group], "nodes")))
    return Fleet(clusters=tuple(specs), seed=seed)


def read_fleet(text: str) -> Fleet:
    """Read a simulation file. Raises InvalidRequest, naming the place, for whatever is wrong in it."""
    try:
        document = yaml.safe_load(text)
    # Beside its own errors the parser lets through what its constructors of dates, numbers and tagged values raise.
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRequest(f"the simulation file is not YAML: {error}") from error
    root = _mapping(document, "file")
    if "application" in root:
        root = _from_executor_configuration(root)
    _only(root, ("seed", "timeScale", "clusters"), "file")
    seed = root.get("seed", 0)
    if not isinstance(seed, int):
        raise InvalidRequest(f"seed: {seed!r} is not a whole number")
    time_scale = _number(root.get("timeScale", 1), "timeScale", 1e-3, 1e6)
    entries = _list(root.get("clusters"), "clusters")
    if not 1 <= len(entries) <= MAX_CLUSTERS:
        raise InvalidRequest(f"clusters: there must be 1 to {MAX_CLUSTERS}, not {len(entries)}")
    clusters = tuple(_cluster(entry, f"clusters[{number}]", time_scale) for number, entry in enumerate(entries))
    names = [cluster.executor_id for cluster in clusters]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"clusters: two have the id {name!r}")
    if sum(len(cluster.nodes) for cluster in clusters) > MAX_NODES:
        raise InvalidRequest(f"clusters: more than {MAX_NODES} nodes in all")
    return Fleet(clusters=clusters, seed=seed)


def _from_executor_configuration(root: Mapping[str, Any]) -> Mapping[str, Any]:
    application = _mapping(root["application"], "application")
    cluster = {"id": application.get("clusterId"), "pool": application.get("pool", "default")}
    if root.get("nodes"):
        cluster["nodes"] = root["nodes"]
    return {"clusters": [cluster]}


def _cluster(entry: Any, path: str, time_scale: float) -> ClusterSpec:
    fields = _mapping(entry, path)
    _only(fields, ("id", "pool", "nodes", "pods", "faults"), path)
    executor_id = _text(fields.get("id"), f"{path}.id")
    pool = _text(fields.get("pool", "default"), f"{path}.pool")
    groups = _list(fields.get("nodes", [{"name": "worker", "count": 500}]), f"{path}.nodes")
    nodes = _nodes(executor_id, pool, groups, f"{path}.nodes")
    pods = _mapping(fields.get("pods", {}), f"{path}.pods")
    _only(pods, ("default", "byAnnotation"), f"{path}.pods")
    behaviour = _behaviour(_mapping(pods.get("default", {}), f"{path}.pods.default"), f"{path}.pods.default")
    names = {node.name: None for node in nodes}
    faults = []
    for number, fault in enumerate(_list(fields.get("faults", []), f"{path}.faults")):
        faults.append(
            _fault(_mapping(fault, f"{path}.faults[{number}]"), f"{path}.faults[{number}]", executor_id, names)
        )
    return ClusterSpec(
        executor_id=executor_id,
        pool=pool,
        nodes=nodes,
        behaviour=behaviour,
        faults=tuple(faults),
        annotation=_text(pods.get("byAnnotation", POD_ANNOTATION), f"{path}.pods.byAnnotation"),
        time_scale=time_scale,
    )


def _nodes(executor_id: str, pool: str, groups: Sequence[Any], path: str) -> tuple[Node, ...]:
    nodes: dict[str, Node] = {}
    for number, entry in enumerate(groups):
        here = f"{path}[{number}]"
        group = _mapping(entry, here)
        _only(group, ("name", "count", "allocatable", "labels", "taints"), here)
        name = _text(group.get("name"), f"{here}.name")
        count = group.get("count", 1)
        if not isinstance(count, int) or not 1 <= count <= MAX_NODES:
            raise InvalidRequest(f"{here}.count: {count!r} is not a number from 1 to {MAX_NODES}")
        # Every real node has these, few people write them down, and without them no job fits: all ask for some.
        unsaid = {name: DEFAULT_ALLOCATABLE[name] for name in ("ephemeral-storage", "pods")}
        total = {**unsaid, **_quantities(group.get("allocatable"), f"{here}.allocatable")}
        labels = {key: str(value) for key, value in _mapping(group.get("labels", {}), f"{here}.labels").items()}
        taints = tuple(
            _taint(_mapping(taint, f"{here}.taints"), f"{here}.taints")
            for taint in _list(group.get("taints", []), f"{here}.taints")
        )
        for index in range(count):
            node_name = f"{executor_id}-{name}-{index}"
            if node_name in nodes:
                raise InvalidRequest(f"{here}: two nodes would have the name {node_name!r}")
            nodes[node_name] = Node(
                node_id=f"{executor_id}-{node_name}",
                name=node_name,
                executor_id=executor_id,
                pool=pool,
                labels={SIMULATED_LABEL: "true", **labels, HOSTNAME_LABEL: node_name},
                taints=taints,
                total=total,
                node_type=name,
            )
    return tuple(nodes.values())


def _quantities(value: Any, path: str) -> dict[str, str]:
    quantities: dict[str, str] = {}
    for key, text in _mapping(DEFAULT_ALLOCATABLE if value is None else value, path).items():
        try:
            is_negative = parse_quantity(str(text)) < 0
        except InvalidRequest as error:
            raise InvalidRequest(f"{path}.{key}: {error}") from error
        if is_negative:
            raise InvalidRequest(f"{path}.{key}: {text!r} is negative")
        quantities[key] = canonical_quantity(str(text))
    return quantities


def _taint(fields: Mapping[str, Any], path: str) -> Taint:
    _only(fields, ("key", "value", "effect"), path)
    effect = _text(fields.get("effect", "NoSchedule"), f"{path}.effect")
    if effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        raise InvalidRequest(f"{path}.effect: {effect!r} is not NoSchedule, PreferNoSchedule or NoExecute")
    return Taint(_text(fields.get("key"), f"{path}.key"), str(fields.get("value", "")), effect)


def _behaviour(fields: Mapping[str, Any], path: str) -> Behaviour:
    _only(fields, ("startDelay", "runtime", "stopDelay", "outcome"), path)
    usual = Behaviour()
    outcome = _mapping(fields.get("outcome", {}), f"{path}.outcome")
    _only(outcome, ("succeed", "exit", "oom"), f"{path}.outcome")
    exits = tuple(
        (exit_code(code, f"{path}.outcome.exit"), _number(chance, f"{path}.outcome.exit", 0.0, 1.0))
        for code, chance in _mapping(outcome.get("exit", {}), f"{path}.outcome.exit").items()
    )
    oom = _number(outcome.get("oom", 0), f"{path}.outcome.oom", 0.0, 1.0)
    failing = oom + sum(chance for _, chance in exits)
    succeed = _number(outcome.get("succeed", 1 - failing), f"{path}.outcome.succeed", 0.0, 1.0)
    if abs(failing + succeed - 1.0) > 1e-6:
        raise InvalidRequest(f"{path}.outcome: the chances add up to {failing + succeed:g}, not to 1")
    return Behaviour(
        start_delay=_distribution(fields, "startDelay", path, usual.start_delay),
        runtime=_distribution(fields, "runtime", path, usual.runtime),
        stop_delay=_distribution(fields, "stopDelay", path, usual.stop_delay),
        exits=exits,
        oom=oom,
    )


def _distribution(fields: Mapping[str, Any], key: str, path: str, usual: Distribution) -> Distribution:
    value = fields.get(key)
    if value is None:
        return usual
    here = f"{path}.{key}"
    if isinstance(value, str):
        return Distribution("constant", float(duration_ms(value, here)))
    parts = _mapping(value, here)
    kind = _text(parts.get("dist"), f"{here}.dist")
    names = {
        "constant": ("value",),
        "uniform": ("min", "max"),
        "exponential": ("mean",),
        "lognormal": ("p50", "p99"),
    }.get(kind)
    if names is None:
        raise InvalidRequest(f"{here}.dist: {kind!r} is not constant, uniform, exponential or lognormal")
    _only(parts, ("dist", *names), here)
    lengths = [float(duration_ms(parts.get(name), f"{here}.{name}")) for name in names]
    if len(lengths) == 2 and not (0 if kind == "uniform" else 1) <= lengths[0] <= lengths[1]:
        raise InvalidRequest(f"{here}: {names[0]} must not be above {names[1]} (and above 0 for lognormal)")
    return Distribution(kind, *lengths)


def _fault(fields: Mapping[str, Any], path: str, executor_id: str, nodes: Mapping[str, None]) -> Fault:
    _only(fields, ("kind", "at", "every", "for", "node", "rate"), path)
    kind = _text(fields.get("kind"), f"{path}.kind")
    if kind not in ("NotReady", "Gone", "apiErrors"):
        raise InvalidRequest(f"{path}.kind: {kind!r} is not NotReady, Gone or apiErrors")
    every_ms = duration_ms(fields["every"], f"{path}.every") if "every" in fields else 0
    at_ms = duration_ms(fields["at"], f"{path}.at") if "at" in fields else every_ms
    for_ms = duration_ms(fields.get("for"), f"{path}.for")
    if every_ms and every_ms <= for_ms:
        raise InvalidRequest(f"{path}.every: must be longer than `for`")
    node = ""
    if kind != "apiErrors":
        node = _text(fields.get("node"), f"{path}.node")
        node = node if node in nodes else f"{executor_id}-{node}"
        if node not in nodes:
            raise InvalidRequest(f"{path}.node: there is no node {fields['node']!r}")
    rate = _number(fields.get("rate", 1), f"{path}.rate", 0.0, 1.0)
    return Fault(kind=kind, at_ms=at_ms, every_ms=every_ms, for_ms=for_ms, node=node, rate=rate)


def duration_ms(value: Any, path: str) -> int:
    """A length of time such as `30s`, `1h30m` or `250ms`. Raises InvalidRequest."""
    text = str(value)
    parts = _DURATION_PART.findall(text)
    if not isinstance(value, str) or not parts or "".join(number + unit for number, unit in parts) != text:
        raise InvalidRequest(f"{path}: {value!r} is not a length of time such as 30s, 1h30m or 250ms")
    total = sum(float(number) * _UNIT_MS[unit] for number, unit in parts)
    if total > MAX_DURATION_MS:
        raise InvalidRequest(f"{path}: {value!r} is longer than a year")
    return int(total)


def exit_code(value: Any, path: str) -> int:
    """An exit code from 1 to 255. Raises InvalidRequest."""
    text = str(value)
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 255:
        raise InvalidRequest(f"{path}: {value!r} is not an exit code from 1 to 255")
    return int(text)


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{path}: must be a mapping")
    return {str(key): inner for key, inner in value.items()}


def _list(value: Any, path: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise InvalidRequest(f"{path}: must be a list")
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"{path}: must be a text that is not empty")
    return value


def _number(value: Any, path: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidRequest(f"{path}: {value!r} is not a number from {low:g} to {high:g}")
    return float(value)


def _only(fields: Mapping[str, Any], known: Sequence[str], path: str) -> None:
    for key in fields:
        if key not in known:
            raise InvalidRequest(f"{path}: unknown key {key!r}; known are {', '.join(known)}")
