"""More memory for a job that is tried again: what the scheduler reserves for it, and what its pod gets.

Both are worked out from what was submitted and one `MemoryGrowth`, so that nothing adds up rounding. What is reserved
is rounded up and what a container gets is rounded down: a pod never holds more than was reserved for it.
"""

from fractions import Fraction
from typing import Final

import msgspec

from armada.model.jobs import JobShape, KubernetesObject
from armada.model.policy import RetryMutation
from armada.model.resources import INT64_MAX, NANO_PER_UNIT, canonical_quantity, format_quantity, parse_quantity

MEMORY: Final = "memory"
MAX_FACTOR: Final = Fraction(1_000_000)
"""Memory grows to at most so many times of what was asked for, however often a job is tried."""


class MemoryGrowth(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much more than was submitted: `factor` times as much, or `added` (a quantity) on top; never both."""

    factor: float = 1.0
    added: str = ""


def grown_further(growth: MemoryGrowth | None, mutation: RetryMutation) -> MemoryGrowth | None:
    """Return the growth after one more retry with this mutation. A job keeps the kind of growth that it began with."""
    if mutation.memory_factor and not (growth is not None and growth.added):
        factor = _exact(mutation.memory_factor) * (_exact(growth.factor) if growth is not None else 1)
        return MemoryGrowth(factor=float(min(factor, MAX_FACTOR)))
    if mutation.memory_added and (growth is None or growth.added):
        before = parse_quantity(growth.added) if growth is not None else 0
        return MemoryGrowth(added=_quantity(min(before + parse_quantity(mutation.memory_added), _MOST)))
    return growth


def grown(shape: JobShape, growth: MemoryGrowth | None) -> JobShape:
    """Return the shape of a job whose memory has grown, rounded up to whole bytes."""
    if growth is None:
        return shape
    requests = dict(shape.requests)
    asked = parse_quantity(requests.get(MEMORY, "0"))
    if growth.added:
        wanted = asked + parse_quantity(growth.added)
    else:
        wanted = -(-asked * _exact(growth.factor).numerator // _exact(growth.factor).denominator)
    if wanted == asked:
        return shape
    requests[MEMORY] = _quantity(min(-(-wanted // NANO_PER_UNIT) * NANO_PER_UNIT, _MOST))
    return msgspec.structs.replace(shape, requests=tuple(sorted(requests.items())))


def grown_pod(spec: KubernetesObject, growth: MemoryGrowth) -> KubernetesObject:
    """Return a pod spec with the memory of its containers grown, requests and limits alike.

    A factor multiplies each container's. An added amount is spread over the containers that run together (sidecars
    among them) in proportion to what they ask for, or goes to the first where none asks; an init container gets all of
    it but what the sidecars started before it took. The spec that is given is left as it is.
    """
    containers, inits = list(spec.get("containers", ())), list(spec.get("initContainers", ()))
    changed = dict(spec)
    if not growth.added:
        factor = _exact(growth.factor)
        changed["containers"] = [_multiplied(container, factor) for container in containers]
        if inits:
            changed["initContainers"] = [_multiplied(container, factor) for container in inits]
        return changed
    added = parse_quantity(growth.added) // NANO_PER_UNIT
    sidecars = [container for container in inits if _is_sidecar(container)]
    shares = _shares(added, [_memory(container) for container in [*containers, *sidecars]])
    changed["containers"] = [_with_more(container, share) for container, share in zip(containers, shares, strict=False)]
    left, sidecar_shares = added, iter(shares[len(containers) :])
    changed_inits = []
    for container in inits:
        share = next(sidecar_shares) if _is_sidecar(container) else left
        changed_inits.append(_with_more(container, share))
        left -= share if _is_sidecar(container) else 0
    if inits:
        changed["initContainers"] = changed_inits
    return changed


_MOST: Final = INT64_MAX * NANO_PER_UNIT


def _exact(factor: float) -> Fraction:
    """The number that was written: 1.1 is eleven tenths, not the binary fraction next to it."""
    return Fraction(repr(factor))


def _quantity(nano: int) -> str:
    units = nano // NANO_PER_UNIT
    if units and units % 1024 == 0:
        return canonical_quantity(f"{units // 1024}Ki")
    return format_quantity(units * NANO_PER_UNIT)


def _is_sidecar(container: KubernetesObject) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _memory(container: KubernetesObject) -> int:
    """What a container asks for: requests, or the limit that Kubernetes takes for them; nano units."""
    resources = container.get("resources") or {}
    for part in ("requests", "limits"):
        quantity = (resources.get(part) or {}).get(MEMORY)
        if quantity is not None:
            return parse_quantity(quantity)
    return 0


def _shares(added: int, asked: list[int]) -> list[int]:
    total = sum(asked)
    if not total:
        return [added, *(0 for _ in asked[1:])]
    return [added * amount // total for amount in asked]


def _multiplied(container: KubernetesObject, factor: Fraction) -> KubernetesObject:
    def more(nano: int) -> int:
        return nano * factor.numerator // factor.denominator // NANO_PER_UNIT * NANO_PER_UNIT

    resources = dict(container.get("resources") or {})
    for part in ("requests", "limits"):
        amounts = dict(resources.get(part) or {})
        if MEMORY in amounts:
            amounts[MEMORY] = _quantity(min(more(parse_quantity(amounts[MEMORY])), _MOST))
            resources[part] = amounts
    return {**container, "resources": resources} if resources else container


def _with_more(container: KubernetesObject, units: int) -> KubernetesObject:
    if not units:
        return container
    resources = dict(container.get("resources") or {})
    has_none = not _memory(container)
    for part in ("requests", "limits"):
        amounts = dict(resources.get(part) or {})
        if MEMORY in amounts or has_none:
            nano = parse_quantity(amounts.get(MEMORY, "0")) + units * NANO_PER_UNIT
            amounts[MEMORY] = _quantity(min(nano, _MOST))
            resources[part] = amounts
    return {**container, "resources": resources}
