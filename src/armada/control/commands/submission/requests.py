"""What a pod asks for: the requests of its containers, combined by Kubernetes' rule."""

from collections.abc import Iterator, Mapping

from armada.model.jobs import KubernetesObject
from armada.model.resources import NANO_PER_UNIT, canonical_quantity, format_quantity, parse_quantity


def containers(pod: KubernetesObject) -> Iterator[tuple[str, KubernetesObject]]:
    """Yield the main containers, then the init containers, each with a name for messages."""
    for kind, key in (("container", "containers"), ("init container", "initContainers")):
        for index, container in enumerate(pod.get(key) or ()):
            yield f"{kind} {container.get('name') or index}", container


def is_sidecar(init_container: KubernetesObject) -> bool:
    """Say if an init container goes on running beside the main ones."""
    return bool(init_container.get("restartPolicy") == "Always")


def quantities_of(container: KubernetesObject, kind: str) -> Mapping[str, str]:
    """Return a container's `requests` or `limits`."""
    return (container.get("resources") or {}).get(kind) or {}


class _Sum:
    """Amounts by resource in nano units; each keeps the form (binary, decimal, exponent) of its first text."""

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        self.texts: dict[str, str] = {}

    def add(self, quantities: Mapping[str, str]) -> None:
        for name, text in quantities.items():
            self.amounts[name] = self.amounts.get(name, 0) + parse_quantity(text)
            self.texts.setdefault(name, text)

    def at_least(self, other: "_Sum") -> None:
        for name, nano in other.amounts.items():
            if name not in self.amounts or nano > self.amounts[name]:
                self.amounts[name] = nano
                self.texts.setdefault(name, other.texts[name])

    def copy(self) -> "_Sum":
        copied = _Sum()
        copied.amounts, copied.texts = dict(self.amounts), dict(self.texts)
        return copied

    def quantities(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, _written(self.amounts[name], self.texts[name])) for name in sorted(self.amounts))


def _written(nano: int, like: str) -> str:
    """Write an amount in the form of another quantity, as Kubernetes does with sums."""
    if nano == parse_quantity(like):
        return canonical_quantity(like)
    whole, rest = divmod(nano, NANO_PER_UNIT)
    if like.endswith("i") and rest == 0:
        return canonical_quantity(f"{whole // 1024}Ki") if whole % 1024 == 0 else str(whole)
    if "e" in like or ("E" in like and not like.endswith("E")):
        return canonical_quantity(f"{nano}e-9")
    return format_quantity(nano)


def combined_requests(pod: KubernetesObject, kind: str = "requests") -> tuple[tuple[str, str], ...]:
    """Return what the whole pod needs, by resource name, sorted.

    Main containers and sidecars run together; every other init container runs alone with the sidecars that were
    started before it. The pod needs the larger of the two, for each resource.

    Raises:
        InvalidQuantity: a quantity can't be read.
    """
    together = _Sum()
    for container in pod.get("containers") or ():
        together.add(quantities_of(container, kind))
    sidecars = _Sum()
    alone: list[_Sum] = []
    for container in pod.get("initContainers") or ():
        if is_sidecar(container):
            sidecars.add(quantities_of(container, kind))
            together.add(quantities_of(container, kind))
        else:
            step = sidecars.copy()
            step.add(quantities_of(container, kind))
            alone.append(step)
    for step in alone:
        together.at_least(step)
    if overhead := pod.get("overhead"):
        together.add(overhead)
    return together.quantities()
