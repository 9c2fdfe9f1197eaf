"""Which shapes may ever run on which nodes: taints, selectors and required node affinity, told once per kind of node.

Nodes that no rule of the round can tell apart form one *node type*; they are found automatically from the label keys
and taints that the rules mention. `match` evaluates every rule on every type and says, where the answer is no, which
test failed first. Free room is not looked at here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from armada.model.fleet import Taint
from armada.model.jobs import AffinityTerm, SelectorRequirement, Toleration
from armada.scheduling.snapshot import Rows

FITS = -1
"""In a verdict table: the rule accepts the node type."""

UNSCHEDULABLE = Taint("armadaproject.io/unschedulable", "true", "NoSchedule")
"""What a node that takes no new work carries for us besides its own taints."""

NAME_FIELD = "metadata.name"

_JUDGED_TOGETHER = 256
"""Requirements whose truth stands in memory at once, by value of the label."""


class PlacementRule(msgspec.Struct, frozen=True):
    """What a job demands of a node besides room; tolerations are sorted and distinct."""

    tolerations: tuple[Toleration, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[AffinityTerm, ...] | None = None
    impossible: str = ""


class LabelColumn(msgspec.Struct, frozen=True, eq=False):
    """One label over all nodes: `code` is a row of `values`, or -1 where the node lacks it; `places` finds a value."""

    code: Rows
    values: tuple[str, ...]
    places: dict[str, int]


class Verdicts(msgspec.Struct, frozen=True, eq=False):
    """`verdict[rule, type]` is FITS or a row of `texts`. `type` is by node; `first` is each type's first node."""

    type: Rows
    first: Rows
    verdict: Rows
    texts: tuple[str, ...]


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Say whether one toleration covers one taint, by Kubernetes' rule."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first taint that no toleration covers. Preferences count as demands, as in the reference."""
    return next((taint for taint in taints if not any(tolerates(one, taint) for one in tolerations)), None)


def requirement_holds(requirement: SelectorRequirement, value: str | None) -> bool:
    """Evaluate one requirement on a label's value, None where the node lacks the label.

    A requirement that Kubernetes would call invalid holds nowhere.
    """
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return bool(requirement.values) and value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def _compares(requirement: SelectorRequirement, value: str | None) -> bool:
    bound = _whole(requirement.values[0]) if len(requirement.values) == 1 else None
    number = None if value is None else _whole(value)
    if bound is None or number is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-").removeprefix("+") if text[:1] in "+-" else text
    if not digits.isascii() or not digits.isdigit():
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def label_keys(rule: PlacementRule) -> tuple[str, ...]:
    """Return the labels that a rule looks at (NAME_FIELD stands for the node's name), in order of mention."""
    keys = dict.fromkeys(key for key, _ in rule.node_selector)
    for term in rule.affinity or ():
        keys.update(dict.fromkeys(_column_key(requirement) for requirement in term))
    return tuple(keys)


def _column_key(requirement: SelectorRequirement) -> str:
    """Fields and labels live in one table of columns; a leading NUL keeps a field from meeting a label's key."""
    return f"\0{requirement.key}" if requirement.on_field else requirement.key


def match(
    rules: Sequence[PlacementRule],
    taint_sets: Sequence[tuple[Taint, ...]],
    taint_set: Rows,
    columns: Mapping[str, LabelColumn],
    split_by: Sequence[str] = (),
) -> Verdicts:
    """Find the node types and judge every rule on every type, once: see `Judgements`.

    `columns` has one for each label that a rule or `split_by` mentions.
    """
    return Judgements(taint_sets, taint_set, columns.__getitem__, split_by).verdicts(rules, range(len(rules)))


class Judgements:
    """Verdicts on one fleet, kept while its nodes stay as they are: each rule is judged once, in the round it comes.

    A rule that tells nodes of one type apart splits the type; verdicts that were known hold for both parts.
    """

    def __init__(
        self,
        taint_sets: Sequence[tuple[Taint, ...]],
        taint_set: Rows,
        column: Callable[[str], LabelColumn],
        split_by: Sequence[str] = (),
        widened: Callable[[PlacementRule], PlacementRule] = lambda rule: rule,
    ) -> None:
        """Begin without rules.

        Args:
            taint_sets: the distinct taint lists.
            taint_set: which of them each node carries [N].
            column: gives a label's column.
            split_by: labels by whose values nodes must differ in type although no rule mentions them.
            widened: what a rule becomes before it is judged.
        """
        self._taint_sets, self._taint_set = taint_sets, taint_set
        self._column = column
        self._widened = widened
        self._known: dict[int, tuple[PlacementRule, int]] = {}
        self._atoms: dict[str, dict[SelectorRequirement, None]] = {}
        self._texts: dict[str, int] = {}
        code = taint_set.astype(np.int64)
        for key in split_by:
            code = _refined(code, column(key).code.astype(np.int64) + 1)
        self._set_types(code)
        self._verdict = np.empty((0, len(self._first)), np.int32)

    def __len__(self) -> int:
        """Return how many rules were judged."""
        return len(self._verdict)

    def verdicts(self, rules: Sequence[PlacementRule], places: Sequence[int]) -> Verdicts:
        """Return the verdicts on `rules[place]` for some places, in that order.

        A rule is known again by its place, as long as the same object stands there.
        """
        known = self._known
        fresh = [place for place in places if place not in known or known[place][0] is not rules[place]]
        if fresh:
            judged = [self._widened(rules[place]) for place in fresh]
            self._split_types(judged)
            row = len(self._verdict)
            known.update((place, (rules[place], row + index)) for index, place in enumerate(fresh))
            self._verdict = np.concatenate((self._verdict, self._judged(judged)))
        rows = [known[place][1] for place in places]
        in_order = rows == list(range(len(self._verdict)))
        verdict = self._verdict if in_order else self._verdict[rows]
        return Verdicts(self._type, self._first, verdict, tuple(self._texts))

    def _set_types(self, code: NDArray[np.int64]) -> None:
        _, first, types = np.unique(code, return_index=True, return_inverse=True)
        self._first: Rows = first.astype(np.int32)
        self._type: Rows = types.astype(np.int32).reshape(len(code))

    def _split_types(self, rules: Sequence[PlacementRule]) -> None:
        """Split types until none of these rules tells two nodes of one type apart."""
        code = self._type.astype(np.int64)
        for key, requirements in _atoms_by_key(rules).items():
            met = self._atoms.setdefault(key, {})
            fresh = [requirement for requirement in requirements if requirement not in met]
            if fresh:
                met.update(dict.fromkeys(fresh))
                code = _refined(code, _classes(self._column(key), fresh))
        parent = self._type
        self._set_types(code)
        # `take` keeps rows together, as kernels are compiled for; an index in brackets would not.
        self._verdict = self._verdict.take(parent[self._first], axis=1)

    def _judged(self, rules: Sequence[PlacementRule]) -> NDArray[np.int32]:
        columns = {key: _column_at(self._column(key), self._first) for key in self._atoms}
        judge = _Judge(self._taint_sets, self._taint_set[self._first], columns, self._texts)
        verdict = np.empty((len(rules), len(self._first)), np.int32)
        for index, rule in enumerate(rules):
            verdict[index] = judge.verdict(rule)
        return verdict


def _column_at(column: LabelColumn, nodes: Rows) -> LabelColumn:
    return LabelColumn(column.code[nodes], column.values, column.places)


def _atoms_by_key(rules: Sequence[PlacementRule]) -> dict[str, list[SelectorRequirement]]:
    """Return every distinct requirement, by the label that it looks at; a selector is an `In` with one value."""
    atoms: dict[str, dict[SelectorRequirement, None]] = {}
    for rule in rules:
        for key, value in rule.node_selector:
            atoms.setdefault(key, {})[SelectorRequirement(key, "In", (value,))] = None
        for term in rule.affinity or ():
            for requirement in term:
                atoms.setdefault(_column_key(requirement), {})[requirement] = None
    return {key: list(requirements) for key, requirements in atoms.items()}


def _truth(column: LabelColumn, requirement: SelectorRequirement) -> NDArray[np.bool_]:
    """Return whether the requirement holds, by value; the last place is for nodes without the label."""
    truth = np.zeros(len(column.values) + 1, np.bool_)
    if requirement.operator in ("In", "NotIn"):
        named = [column.places[value] for value in requirement.values if value in column.places]
        if requirement.operator == "NotIn" and requirement.values:
            truth[:] = True
            truth[named] = False
        elif requirement.operator == "In":
            truth[named] = True
        return truth
    for index, value in enumerate(column.values):
        truth[index] = requirement_holds(requirement, value)
    truth[-1] = requirement_holds(requirement, None)
    return truth


def _classes(column: LabelColumn, requirements: Sequence[SelectorRequirement]) -> NDArray[np.int64]:
    """Return each node's class under this label: nodes of one class satisfy the same requirements.

    Nodes with and without the label are kept apart, because refusals name that difference.
    """
    by_value = np.zeros(len(column.values) + 1, np.int64)
    by_value[-1] = 1
    others = []
    for number, requirement in enumerate(requirements, 2):
        if requirement.operator != "In" or len(requirement.values) != 1:
            others.append(requirement)
        elif requirement.values[0] in column.places:
            by_value[column.places[requirement.values[0]]] = number
    for start in range(0, len(others), _JUDGED_TOGETHER):
        some = others[start : start + _JUDGED_TOGETHER]
        packed = np.packbits(np.array([_truth(column, requirement) for requirement in some]).T, axis=1)
        _, value_class = np.unique(packed, axis=0, return_inverse=True)
        by_value = _refined(by_value, value_class.reshape(-1).astype(np.int64))
    return by_value[column.code]


def _refined(code: NDArray[np.int64], finer: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return codes that are equal exactly where both are; kept small, so that products never overflow."""
    if not len(code):
        return code
    _, combined = np.unique(code * (int(finer.max()) + 1) + finer, return_inverse=True)
    codes: NDArray[np.int64] = combined.reshape(-1).astype(np.int64)
    return codes


class _Judge:
    """Judges rules on node types; keeps what rules share, and the texts."""

    def __init__(
        self,
        taint_sets: Sequence[tuple[Taint, ...]],
        taint_set: Rows,
        columns: Mapping[str, LabelColumn],
        texts: dict[str, int],
    ) -> None:
        self.texts = texts
        self._taint_sets = taint_sets
        self._taint_set = taint_set
        self._columns = columns
        self._by_tolerations: dict[tuple[Toleration, ...], Rows] = {}
        self._by_requirement: dict[SelectorRequirement, NDArray[np.bool_]] = {}

    def verdict(self, rule: PlacementRule) -> Rows:
        if rule.impossible:
            return np.full(len(self._taint_set), self._text(rule.impossible), np.int32)
        verdict = self._taints_verdict(rule.tolerations).copy()
        for key, value in rule.node_selector:
            column = self._columns[key]
            absent = (verdict == FITS) & (column.code < 0)
            verdict[absent] = self._text(f"the node lacks the label {key}")
            differs = (verdict == FITS) & (column.code != column.places.get(value, len(column.values)))
            verdict[differs] = self._text(f"the node's label {key} is not {value}")
        if rule.affinity is not None:
            fits = np.zeros(len(verdict), np.bool_)
            for term in rule.affinity:
                if term:
                    fits |= np.logical_and.reduce([self._holds(requirement) for requirement in term])
            verdict[(verdict == FITS) & ~fits] = self._text("the node does not meet the required node affinity")
        return verdict

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def _taints_verdict(self, tolerations: tuple[Toleration, ...]) -> Rows:
        known = self._by_tolerations.get(tolerations)
        if known is None:
            by_set = np.full(max(1, len(self._taint_sets)), FITS, np.int32)
            for index, taints in enumerate(self._taint_sets):
                taint = untolerated(tolerations, taints)
                if taint is not None:
                    shown = f"{taint.key}={taint.value}" if taint.value else taint.key
                    by_set[index] = self._text(f"the taint {shown}:{taint.effect} is not tolerated")
            known = by_set[self._taint_set]
            self._by_tolerations[tolerations] = known
        return known

    def _holds(self, requirement: SelectorRequirement) -> NDArray[np.bool_]:
        known = self._by_requirement.get(requirement)
        if known is None:
            column = self._columns[_column_key(requirement)]
            known = _truth(column, requirement)[column.code]
            self._by_requirement[requirement] = known
        return known
