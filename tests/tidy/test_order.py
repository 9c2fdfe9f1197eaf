"""Pure rooms never walk over a set: its order differs from process to process, and decisions must not."""

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from tests.tidy.repository import Finding, Function, Source, expect_none, functions, product, sample

ORDER_FREE: Final = frozenset({"sorted", "len", "sum", "any", "all", "min", "max", "set", "frozenset", "bool"})
"""Callers to which the order of what they are given makes no difference."""

WALKING_FUNCTIONS: Final = frozenset({"list", "tuple", "iter", "enumerate", "dict", "map", "filter", "zip"})
WALKING_METHODS: Final = frozenset({"join", "extend", "fromkeys"})
SET_METHODS: Final = frozenset({"union", "intersection", "difference", "symmetric_difference"})
SET_TYPES: Final = ("set", "frozenset", "AbstractSet", "MutableSet")
EXCUSE: Final = "# unordered:"
"""On the same line, with the reason why the order can't matter."""


def walks_over_sets(files: Iterable[Source]) -> list[Finding]:
    """Loops, comprehensions, unpackings and conversions that take a set's elements in its own order."""
    found: list[Finding] = []
    for file in files:
        lines = file.text.splitlines()
        attributes = _attributes(file.tree)
        names = _names(file.tree)
        for scope in (file.tree, *functions(file.tree)):
            known = attributes | names
            if isinstance(scope, Function):
                known = (known - _parameters(scope)) | _names(scope)
            found.extend(
                file.at(node.lineno, f"the order of {ast.unparse(node)} is not fixed: sort it")
                for node in _walked(scope)
                if _is_set(node, known) and EXCUSE not in lines[node.lineno - 1]
            )
    return found


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module or function, without those of functions and classes inside it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, Function | ast.ClassDef):
            yield child
            yield from _own(child)


def _walked(scope: ast.AST) -> Iterator[ast.expr]:
    """Expressions whose elements are taken one after the other where the order may matter."""
    free: set[int] = set()
    for node in _own(scope):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDER_FREE:
            free.update(id(argument) for argument in node.args)
        elif isinstance(node, ast.Set):
            free.update(id(element) for element in node.elts)
    for node in _own(scope):
        if isinstance(node, ast.For | ast.AsyncFor):
            yield node.iter
        elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and id(node) not in free:
            yield from (each.iter for each in node.generators)
        elif isinstance(node, ast.Starred) and id(node) not in free:
            yield node.value
        elif isinstance(node, ast.Call):
            yield from _taken(node)


def _taken(call: ast.Call) -> Iterator[ast.expr]:
    """What a call walks over: `list(s)`, `"".join(s)`, `s.pop()`, `dict.fromkeys(s)`, `map(f, s)`."""
    match call.func:
        case ast.Name(id=name) if name in WALKING_FUNCTIONS:
            yield from call.args
        case ast.Attribute(attr=name) if name in WALKING_METHODS:
            yield from call.args
        case ast.Attribute(value=value, attr="pop") if not call.args:
            yield value


def _attributes(tree: ast.Module) -> set[str]:
    """Names of attributes that are annotated as sets or assigned one, in any class of the module."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names.update(
                _name(each.target) for each in node.body if isinstance(each, ast.AnnAssign) and _says_set(each)
            )
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and _says_set(node):
            names.add(node.target.attr)
        elif isinstance(node, ast.Assign) and _is_set(node.value, frozenset()):
            names.update(each.attr for each in node.targets if isinstance(each, ast.Attribute))
    return {f".{name}" for name in names}


def _parameters(function: Function) -> set[str]:
    """Names of parameters: they hide the module's names."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _names(scope: ast.AST) -> set[str]:
    """Names of variables and parameters of one scope that are annotated as sets or assigned one."""
    names: set[str] = set()
    arguments = (
        [node for node in ast.walk(scope.args) if isinstance(node, ast.arg)] if isinstance(scope, Function) else []
    )
    names.update(each.arg for each in arguments if _says_set(each))
    for node in _own(scope):
        if isinstance(node, ast.AnnAssign) and _says_set(node):
            names.add(_name(node.target))
        elif isinstance(node, ast.Assign) and _is_set(node.value, frozenset()):
            names.update(_name(target) for target in node.targets)
    return {name for name in names if name and not name.startswith(".")}


def _says_set(declared: ast.AnnAssign | ast.arg) -> bool:
    """True when the annotation is a set's."""
    if declared.annotation is None:
        return False
    text = ast.unparse(declared.annotation).strip("'\"").removeprefix("Final[")
    return text.partition("[")[0].rpartition(".")[2] in SET_TYPES


def _name(target: ast.expr) -> str:
    """The name of a variable, or of an attribute with a dot before it."""
    if isinstance(target, ast.Name):
        return target.id
    return f".{target.attr}" if isinstance(target, ast.Attribute) else ""


def _is_set(node: ast.expr, names: Iterable[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in {"set", "frozenset"}
        case ast.Call(func=ast.Attribute(value=value, attr=attr)):
            return attr in SET_METHODS or (attr == "copy" and _is_set(value, names))
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return _is_set(left, names) or _is_set(right, names)
        case ast.IfExp(body=left, orelse=right):
            return _is_set(left, names) or _is_set(right, names)
        case ast.Name() | ast.Attribute():
            return _name(node) in names
        case _:
            return isinstance(node, ast.Set | ast.SetComp)


def test_pure_rooms_walk_over_no_set() -> None:
    expect_none(walks_over_sets([file for file in product() if file.is_pure]))


def test_the_rule_sees_walks() -> None:
    text = """
seen: set[str] = set()
other = {1, 2}
for each in seen: ...
pairs = [x for x in other]
text = ",".join(seen)
first = list(seen | other)
last = other.pop()
class A:
    held: frozenset[str]
    def names(self, given: set[int]):
        yield from (x for x in self.held)
        return tuple(given), {x: 1 for x in given}
    def lines(self, given: list[int], held: list[int], seen: list[str]):
        return tuple(given), list(held), list(seen)
"""
    lines = sorted(int(finding.split(":")[1]) for finding in walks_over_sets(sample(text)))
    assert lines == [4, 5, 6, 7, 8, 12, 13, 13]


def test_the_rule_leaves_order_free_uses_alone() -> None:
    text = """
seen: set[str] = set()
for each in sorted(seen): ...
count = len(seen) + sum(x for x in seen)
more = {x for x in seen}
whole = any(x for x in seen) and "a" in seen
for each in seen: ...  # unordered: each is only removed
kept = [x for x in rows if x in seen]
both = sorted({*seen, *rows})
"""
    assert walks_over_sets(sample(text)) == []
