"""The data folder of one process: who may use it, and of which version it is."""

import fcntl
import os
from pathlib import Path
from typing import Final

from armada.model.errors import StartupRefused

FOLDER_VERSION: Final = 1
"""The layout of everything in the folder, other rooms' files included."""

_VERSION_FILE: Final = "VERSION"
_LOCK_FILE: Final = "lock"
_NEW_DISKS_HAVE: Final = "lost+found"


class DataFolder:
    """A data folder that this process alone uses until `close`."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> "DataFolder":
        """Make the folder if need be, lock it and check its version.

        Raises:
            StartupRefused: it can't be written, another process uses it, or it has another version.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = os.open(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StartupRefused(
                f"data folder {path} can't be used: {error.strerror}; choose a folder that this user may write",
            ) from error
        try:
            _take_lock(path, lock)
            _check_version(path)
        except BaseException:
            os.close(lock)
            raise
        return cls(path, lock)

    def close(self) -> None:
        """Let the next process have the folder."""
        os.close(self._lock)


def _take_lock(path: Path, lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        by = f"process {holder}" if holder.isdigit() else "another process"
        raise StartupRefused(
            f"data folder {path} is in use by {by}; stop that one or choose another folder",
        ) from error
    except OSError as error:
        raise StartupRefused(f"data folder {path} can't be locked: {error.strerror}") from error
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        raise StartupRefused(f"data folder {path} can't be written: {error.strerror}") from error


def _check_version(path: Path) -> None:
    file = path / _VERSION_FILE
    try:
        text = file.read_text(encoding="utf-8", errors="replace").strip() if file.exists() else None
        if text is None:
            _refuse_strangers(path)
            write_durably(file, f"{FOLDER_VERSION}\n".encode())
            text = str(FOLDER_VERSION)
    except OSError as error:
        raise StartupRefused(f"data folder {path} can't be used: {error.strerror}") from error
    if text != str(FOLDER_VERSION):
        raise StartupRefused(
            f"data folder {path} has version {text[:20]!r}; this program uses version {FOLDER_VERSION}:"
            " start the program that wrote it, or choose another folder",
        )


def _refuse_strangers(path: Path) -> None:
    """A folder without a version must be new: nothing of somebody else's is taken over."""
    strangers = sorted(entry.name for entry in path.iterdir() if entry.name not in (_LOCK_FILE, _NEW_DISKS_HAVE))
    if strangers:
        raise StartupRefused(
            f"data folder {path} holds {strangers[0]!r} but no {_VERSION_FILE}: it is not ours; choose an empty one",
        )


def write_durably(file: Path, content: bytes) -> None:
    """Write a file so that after a crash it is either whole or as it was before.

    Raises:
        OSError: it could not be written; what was there is unchanged.
    """
    fresh = file.with_name(f"{file.name}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(file)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    directory = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
