"""Where the compiled kernels are kept between processes.

numba looks at the file of the outermost function only: after an edit of a kernel that another calls, it would go on
running the old machine code. And where the package's folder can't be written it would not start at all. So the cache
lies in a folder of the user's (or a temporary one) that is named by the sources of all kernels and the compiler's
version; it is chosen before anybody imports numba, which this module never does.
"""

import contextlib
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

VARIABLE: Final = "NUMBA_CACHE_DIR"
PREFIX: Final = "armada-kernels-"
KERNELS: Final = Path(__file__).parent / "scheduling" / "kernels"
COMPILER: Final = ("numba", "numpy", "llvmlite")


def choose_cache(kernels: Path = KERNELS) -> Path | None:
    """Name the folder to numba, unless the user named one; return it, or None where there is nothing to do."""
    named = os.environ.get(VARIABLE)
    if named is not None and not Path(named).name.startswith(PREFIX):
        return None
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        return None
    name = PREFIX + _fingerprint(kernels, Path(found.origin).parents[1])
    for base in _bases():
        folder = base / name
        with contextlib.suppress(OSError, RuntimeError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(folder):
                os.environ[VARIABLE] = str(folder)
                return folder
    import tempfile  # noqa: PLC0415 - slow to import, and hardly ever needed

    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    os.environ[VARIABLE] = str(folder)
    return folder


def _fingerprint(kernels: Path, site_packages: Path) -> str:
    """Return a digest of all that compiled code depends on."""
    digest = hashlib.blake2b(f"{sys.version} {os.uname().machine}".encode(), digest_size=12)
    for source in sorted(kernels.rglob("*.py")):
        digest.update(f"\0{source.relative_to(kernels)}\0".encode())
        digest.update(source.read_bytes())
    versions = sorted(
        entry.name
        for entry in os.scandir(site_packages)
        if entry.name.endswith(".dist-info") and entry.name.split("-")[0] in COMPILER
    )
    digest.update("\0".join(versions).encode())
    return digest.hexdigest()


def _bases() -> Iterator[Path]:
    """Give the folders in which the cache may lie, best first."""
    cache_home = os.environ.get("XDG_CACHE_HOME")
    if cache_home:
        yield Path(cache_home) / "armada"
    if os.environ.get("HOME"):
        yield Path(os.environ["HOME"]) / ".cache" / "armada"
    yield Path(os.environ.get("TMPDIR", "/tmp")) / f"armada-{os.getuid()}"  # noqa: S108 - `_is_ours` guards it


def _is_ours(folder: Path) -> bool:
    """Say whether only we can write there: machine code that others could leave must not run."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(folder, os.W_OK | os.X_OK)
