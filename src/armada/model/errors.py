"""Every error the system raises on purpose, as one tree.

ArmadaError
|-- Refusal                      a no with a reason, for whoever asked
|   |-- InvalidRequest           INVALID_ARGUMENT
|   |-- NotFound                 NOT_FOUND
|   |-- AlreadyExists            ALREADY_EXISTS
|   |-- PermissionDenied         PERMISSION_DENIED
|   |-- Unauthenticated          UNAUTHENTICATED
|   |-- FailedPrecondition       FAILED_PRECONDITION
|   |-- LimitExceeded            RESOURCE_EXHAUSTED
|   `-- Unavailable              UNAVAILABLE, retryable
|-- LogFailed                    an append or read failed; an append may have happened; retryable
|   |-- LogFull                  no space or no permission to write
|   `-- EpochLost                another leader holds a newer epoch
|-- StartupRefused               the process can't start: bad settings, folder in use, wrong version, port taken
|-- CorruptEntry                 stored bytes that can't be what was written
`-- IllegalTransition            a fact that doesn't follow from the state it meets
"""

from typing import ClassVar


class ArmadaError(Exception):
    """Root of the tree. `code` is the gRPC status name a caller sees; `retryable` says if trying again may help."""

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False


class Refusal(ArmadaError):
    """A request that is not carried out and changes nothing; the message says what was wrong, where, what to do."""


class InvalidRequest(Refusal):
    """The request itself is wrong."""

    code = "INVALID_ARGUMENT"


class NotFound(Refusal):
    """What the request names does not exist."""

    code = "NOT_FOUND"


class AlreadyExists(Refusal):
    """What the request would create exists."""

    code = "ALREADY_EXISTS"


class PermissionDenied(Refusal):
    """The caller may not do this."""

    code = "PERMISSION_DENIED"


class Unauthenticated(Refusal):
    """The caller's credentials are missing or wrong."""

    code = "UNAUTHENTICATED"


class FailedPrecondition(Refusal):
    """The request is right, but not in the present state."""

    code = "FAILED_PRECONDITION"


class LimitExceeded(Refusal):
    """A limit on size, number or rate is exceeded."""

    code = "RESOURCE_EXHAUSTED"


class Unavailable(Refusal):
    """The service can't answer now; the same request may succeed later."""

    code = "UNAVAILABLE"
    retryable = True


class LogFailed(ArmadaError):
    """The log could not be read or written. A failed append may have happened (batches carry an id)."""

    code = "UNAVAILABLE"
    retryable = True


class LogFull(LogFailed):
    """The log's storage is full or read-only."""

    code = "RESOURCE_EXHAUSTED"
    retryable = False


class EpochLost(LogFailed):
    """The append carried an epoch older than the current one: its author no longer leads."""

    code = "ABORTED"
    retryable = False


class StartupRefused(ArmadaError):
    """The process can't start; the message names the cause and the remedy."""

    code = "FAILED_PRECONDITION"


class CorruptEntry(ArmadaError):
    """Stored bytes can't be what was written."""

    code = "DATA_LOSS"


class IllegalTransition(ArmadaError):
    """A fact doesn't follow from the state it meets."""
