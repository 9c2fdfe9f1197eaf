"""How a command fails: what it prints, and the exit status that scripts see.

By default every failure ends with status 1, as Armada's own command line does. With `--exit-codes detailed` (or
ARMADACTL_EXIT_CODES=detailed) the kinds can be told apart.
"""

import enum


class ExitStatus(enum.IntEnum):
    """What a command's exit status means when exit codes are detailed."""

    OK = 0
    FAILED = 1
    """The server refused or failed."""
    USAGE = 2
    """The command line or a file given to it is wrong; nothing was sent."""
    UNREACHABLE = 3
    """No answer from the server; what was asked may or may not have happened."""
    NOT_FOUND = 4
    DENIED = 5
    """Credentials are missing, wrong or not enough."""
    JOB_FAILED = 6
    """A watched job failed (`watch --exit-on-failure`)."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C."""


class CommandFailed(Exception):
    """A command can't do what was asked. The message is one clear text for a person; `hint` says what to do."""

    def __init__(self, message: str, status: ExitStatus = ExitStatus.FAILED, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.hint = hint


def exit_code(status: ExitStatus, *, detailed: bool) -> int:
    """The process's exit status: every failure is 1 unless details were asked for."""
    if status is ExitStatus.INTERRUPTED or detailed:
        return int(status)
    return 0 if status is ExitStatus.OK else 1
