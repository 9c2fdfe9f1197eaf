"""Names of runs. A run's id follows from its job and attempt, so that no chance is needed to lease."""

from hashlib import blake2b


def run_id_of(job_id: str, attempt: int) -> str:
    """Return the id of a job's attempt (counted from 0), shaped like a UUID."""
    digest = blake2b(f"{job_id}/{attempt}".encode(), digest_size=16, person=b"armada run").hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"
