"""Where the recorded answers of a real Armada lie: a folder `shared` beside the repository, if there is one.

Tests that compare with recordings call `recordings(...)`; where the folder is absent they are skipped.
"""

from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).resolve().parents[1]
_BESIDE: Final = REPOSITORY.parent / "shared"

SHARED: Final = _BESIDE if (_BESIDE / "vectors").is_dir() else None
"""The folder, or None where the repository stands alone."""


def recordings(*parts: str) -> Path:
    """The path `shared/vectors/PARTS...`; skips the calling test (or, at import, its module) where it is absent."""
    if SHARED is None:
        pytest.skip("the recorded vectors are not beside this repository", allow_module_level=True)
    return SHARED.joinpath("vectors", *parts)
