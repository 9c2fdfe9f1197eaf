"""Rounds decide alike with and without the compiler, and in whatever process they run."""

import json
import os
import subprocess
import sys
from hashlib import blake2b

from armada.cli.problems.answers import answers
from armada.cli.problems.reading import read_problem
from tests.scenarios.test_rows import ROWS, problem_of
from tests.shared_folder import REPOSITORY

CODE = "from tests.scenarios.test_any_process import digest; print(digest())"


def digest() -> str:
    """Everything that is decided in all rows, figures to the last bit, as a hash."""
    whole = blake2b()
    for name, row in ROWS.items():
        decided = answers(read_problem(json.dumps(problem_of(name, row)).encode(), name))
        whole.update(json.dumps(decided).encode())
    return whole.hexdigest()


def elsewhere(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def test_rows_are_decided_alike_by_plain_python() -> None:
    assert elsewhere(NUMBA_DISABLE_JIT="1", PYTHONHASHSEED="1") == digest()


def test_rows_are_decided_alike_in_another_process() -> None:
    assert elsewhere(PYTHONHASHSEED="2") == digest()
