"""Names say what a thing is. Some words say nothing, and one word means one thing."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

from tests.tidy.repository import Finding, Function, Source, expect_none, functions, sample, sources

EMPTY_WORDS: Final = frozenset(
    {"util", "utils", "helper", "helpers", "common", "manager", "managers", "info", "infos", "context", "contexts"}
    | {"data", "obj", "objs"},
)
"""Not in names that we choose. Names that others fixed are recognised by `is_fixed`."""

TASK_WORDS: Final = frozenset({"task", "tasks"})
"""An asyncio task and nothing else."""

FIXED_NAMES: Final = {
    "contexts": "what Armada's client configuration calls its entries",
    "get_contexts": "armadactl config get-contexts",
    "current_context": "armadactl config current-context",
    "use_context": "armadactl config use-context",
    "data_dir": "the option --data of armada up",
    "DataFolder": "the folder that --data names",
    "_ingress_info": "the event ingress_info of the API",
}
"""Names that a file format or a command line of others fixed."""

FIXED_PARAMETERS: Final = {"context": r"Context\b", "data": r"DataObject\b"}
"""Parameters that a library names, by the type that they then have."""

FIXED_CLASS_ENDINGS: Final = ("Servicer", "Interceptor")
"""Bases whose methods and their parameters gRPC names."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words(name: str) -> list[str]:
    """The words of a snake_case or CamelCase name, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def bad_names(files: Iterable[Source]) -> list[Finding]:
    """Files, classes, functions and parameters with an empty word, or `task` away from asyncio."""
    found = []
    for file in files:
        stem = file.path.rpartition("/")[2].removesuffix(".py")
        banned = EMPTY_WORDS if "asyncio" in file.text else EMPTY_WORDS | TASK_WORDS
        for line, name in [(1, stem), *_names(file.tree)]:
            bad = [word for word in words(name) if word in banned]
            if bad and name not in FIXED_NAMES:
                found.append(file.at(line, f"{name}: the word {bad[0]!r} says nothing here (docs/glossary.md)"))
    return found


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    fixed = {method for each in ast.walk(tree) if isinstance(each, ast.ClassDef) for method in _fixed_methods(each)}
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef):
            yield each.lineno, each.name
    for function in functions(tree):
        if function in fixed:
            continue
        if not function.name.startswith("test_"):  # a test's name is a sentence
            yield function.lineno, function.name
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if not is_fixed(argument):
                yield argument.lineno, argument.arg


def is_fixed(argument: ast.arg) -> bool:
    """True for a parameter that a library names: its type says so (`ServicerContext`, `DataObject` of Hypothesis)."""
    kind = ast.unparse(argument.annotation) if argument.annotation else ""
    return argument.arg in FIXED_PARAMETERS and re.search(FIXED_PARAMETERS[argument.arg], kind) is not None


def _fixed_methods(kind: ast.ClassDef) -> list[Function]:
    """Methods that override those of a generated servicer: their names begin with a capital letter."""
    bases = [ast.unparse(base) for base in kind.bases]
    if not any(base.partition("[")[0].endswith(FIXED_CLASS_ENDINGS) for base in bases):
        return []
    return [node for node in kind.body if isinstance(node, Function) and node.name[0].isupper()]


def without_docstring(files: Iterable[Source]) -> list[Finding]:
    """Modules that don't say what they are for."""
    return [file.at(1, "a module begins with its purpose") for file in files if not ast.get_docstring(file.tree)]


def test_names() -> None:
    expect_none(bad_names(sources()))


def test_module_docstrings() -> None:
    expect_none(without_docstring(sources()))


def test_the_rule_sees_bad_names() -> None:
    text = '''"""Sample."""
class JobManager: ...
def parse_data(): ...
async def fold(obj, *, run_info): ...
def count_tasks(): ...
'''
    assert [finding.split(": ")[1] for finding in bad_names(sample(text))] == [
        "JobManager",
        "parse_data",
        "obj",
        "run_info",
        "count_tasks",
    ]
    assert len(bad_names(sample("", "src/armada/state/common.py"))) == 1


def test_the_rule_leaves_other_names_alone() -> None:
    text = '''"""Sample."""
import asyncio
class Queues(services.QueueServicer):
    async def CreateQueue(self, request, context): ...
def metadata_of(database, task): ...
def answer(request, context: "ServicerContext[Any, Any]"): ...
'''
    assert bad_names(sample(text)) == []
    assert words("HTTPServerInfo_v2") == ["http", "server", "info", "v", "2"]


def test_the_rule_sees_a_module_without_docstring() -> None:
    assert len(without_docstring(sample("x = 1\n"))) == 1
    assert without_docstring(sample('"""Why."""\n')) == []
