"""Required node affinity of pods: the rules for what may be submitted, and its form in a job's shape."""

import re
from collections.abc import Iterator
from typing import Any, Final

from armada.model.jobs import AffinityTerm, KubernetesObject, SelectorRequirement

_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_MAX_LABEL_CHARS: Final = 63
_MAX_PREFIX_CHARS: Final = 253
_NEED_VALUES: Final = ("In", "NotIn")
_NEED_NONE: Final = ("Exists", "DoesNotExist")
_NEED_INTEGER: Final = ("Gt", "Lt")


def _node_affinity(pod: KubernetesObject) -> dict[str, Any]:
    return (pod.get("affinity") or {}).get("nodeAffinity") or {}


def affinity_fault(pod: KubernetesObject) -> str:
    """Say what is wrong with a pod's node affinity; empty when nothing is. Pod affinity is not looked at."""
    node_affinity = _node_affinity(pod)
    if node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution"):
        return "preferred node affinity (preferredDuringSchedulingIgnoredDuringExecution) is not supported"
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        for kind in ("matchExpressions", "matchFields"):
            for position, requirement in enumerate(term.get(kind) or ()):
                if fault := _requirement_fault(requirement, on_field=kind == "matchFields"):
                    return f"required node affinity: nodeSelectorTerms[{index}].{kind}[{position}]: {fault}"
    return ""


def _requirement_fault(requirement: KubernetesObject, *, on_field: bool) -> str:
    key, operator = requirement.get("key") or "", requirement.get("operator") or ""
    values = [str(value) for value in requirement.get("values") or ()]
    if not on_field:
        return label_key_fault(key) or next(_value_faults(operator, values), "")
    if key != "metadata.name" or operator not in _NEED_VALUES or len(values) != 1:
        return "only metadata.name with In or NotIn and exactly one value can be matched as a field"
    return ""


def _value_faults(operator: str, values: list[str]) -> Iterator[str]:
    if operator in _NEED_VALUES:
        if not values:
            yield f"operator {operator} needs at least one value"
        yield from filter(None, map(label_value_fault, values))
    elif operator in _NEED_NONE:
        if values:
            yield f"operator {operator} takes no values"
    elif operator in _NEED_INTEGER:
        if len(values) != 1:
            yield f"operator {operator} takes exactly one value, not {len(values)}"
        elif not _INTEGER.fullmatch(values[0]):
            yield f"operator {operator} needs a whole number, not {values[0]!r}"
    else:
        yield f"operator {operator!r} is none of In, NotIn, Exists, DoesNotExist, Gt, Lt"


def label_key_fault(key: str) -> str:
    """Say what is wrong with a label's key (an optional DNS prefix, a slash, a name); empty when nothing is."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not _DNS_PREFIX.fullmatch(prefix) or len(prefix) > _MAX_PREFIX_CHARS):
        return f"the prefix of label key {key!r} is no DNS name"
    if not _LABEL_NAME.fullmatch(name) or len(name) > _MAX_LABEL_CHARS:
        return (
            f"label key {key!r} is not valid: at most {_MAX_LABEL_CHARS} letters, digits, '-', '_' or '.',"
            " with a letter or digit at both ends"
        )
    return ""


def label_value_fault(value: str) -> str:
    """Say what is wrong with a label's value; empty when nothing is."""
    if value and (not _LABEL_NAME.fullmatch(value) or len(value) > _MAX_LABEL_CHARS):
        return (
            f"label value {value!r} is not valid: at most {_MAX_LABEL_CHARS} letters, digits, '-', '_' or '.',"
            " with a letter or digit at both ends"
        )
    return ""


def affinity_terms(pod: KubernetesObject) -> tuple[AffinityTerm, ...] | None:
    """Return the required terms in the form of a `JobShape`; None when the pod has no required node affinity."""
    required = _node_affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    return tuple(
        tuple(
            SelectorRequirement(
                key=requirement.get("key") or "",
                operator=requirement.get("operator") or "",
                values=tuple(str(value) for value in requirement.get("values") or ()),
                on_field=kind == "matchFields",
            )
            for kind in ("matchExpressions", "matchFields")
            for requirement in term.get(kind) or ()
        )
        for term in required.get("nodeSelectorTerms") or ()
    )
