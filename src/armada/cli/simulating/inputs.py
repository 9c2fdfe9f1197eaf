"""Files that a simulation begins with: clusters, workloads or traces, the scheduling configuration."""

import gzip
import zlib
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any, Final

from armada.model.configuration import scheduling_policy
from armada.model.errors import InvalidRequest
from armada.model.policy import SchedulingPolicy
from armada.runtime.yaml_values import yaml_values
from armada.simulation.whatif.reading import read_fleet_spec, read_workload_spec
from armada.simulation.whatif.specs import FleetSpec, WorkloadSpec
from armada.simulation.whatif.submitting import check_priority_classes
from armada.simulation.whatif.traces import TraceRules, read_trace

MAX_FILE_BYTES: Final = 256 * 1024 * 1024
TRACE_ENDINGS: Final = (".swf", ".swf.gz")


def matching(pattern: str, option: str) -> list[Path]:
    """Return the files that a glob matches, sorted.

    Raises:
        InvalidRequest: there is none.
    """
    found = [Path(name) for name in sorted(glob(pattern, recursive=True))]  # noqa: PTH207 - absolute patterns too
    files = [path for path in found if path.is_file()]
    if not files:
        what = "only folders match; write FOLDER/*.yaml" if found else "no file matches; check the path, and quote it"
        raise InvalidRequest(f"{option} {pattern}: {what}")
    return files


def is_trace(file: Path) -> bool:
    """Say if a file is a trace in the Standard Workload Format, by its name."""
    return file.name.lower().endswith(TRACE_ENDINGS)


def stem(file: Path) -> str:
    """Return a file's name without its endings."""
    name = file.name
    for ending in (".gz", ".swf", ".yaml", ".yml", ".json"):
        name = name.removesuffix(ending)
    return name or file.name


def read_fleet_file(file: Path, remarks: list[str]) -> FleetSpec:
    """Read a file of clusters.

    Raises:
        InvalidRequest: it can't be read, or something in it is wrong; the text names file and field.
    """
    own: list[str] = []
    try:
        return read_fleet_spec(_text(file), stem(file), own)
    except InvalidRequest as error:
        raise InvalidRequest(f"{file}: {error}") from error
    finally:
        remarks += [f"{file}: {remark}" for remark in own]


def read_workload_file(file: Path, rules: TraceRules, policy: SchedulingPolicy, remarks: list[str]) -> WorkloadSpec:
    """Read a file of queues and jobs, or a trace by the given rules; the policy must have its priority classes.

    Raises:
        InvalidRequest: it can't be read, or something in it is wrong; the text names file and field.
    """
    own: list[str] = []
    try:
        if is_trace(file):
            spec = read_trace(_lines(file), stem(file), rules, own)
        else:
            spec = read_workload_spec(_text(file), stem(file), own)
        check_priority_classes(spec, policy)
    except InvalidRequest as error:
        raise InvalidRequest(f"{file}: {error}") from error
    finally:
        remarks += [f"{file}: {remark}" for remark in own]
    return spec


def read_policy_file(file: Path) -> SchedulingPolicy:
    """Read a scheduling configuration: its keys at the top level, or below `scheduling`.

    Raises:
        InvalidRequest: it can't be read, or something in it is wrong; the text names file and key.
    """
    try:
        values: Any = yaml_values(_text(file))
        if isinstance(values, dict) and "scheduling" in values:
            return scheduling_policy(values["scheduling"] or {}, "scheduling")
        return scheduling_policy({} if values is None else values)
    except InvalidRequest as error:
        raise InvalidRequest(f"{file}: {error}") from error


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise InvalidRequest(f"the file is larger than {MAX_FILE_BYTES:,} bytes")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"it can't be read: {error}") from error


def _lines(file: Path) -> Iterator[str]:
    """Give the lines of a trace, packed or not. A trace may hold bytes that are no UTF-8 in its comments."""
    read = 0
    try:
        with gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb") as lines:
            while line := lines.readline(MAX_FILE_BYTES):
                read += len(line)
                if read > MAX_FILE_BYTES:
                    raise InvalidRequest(f"the trace is larger than {MAX_FILE_BYTES:,} bytes")
                yield line.decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidRequest(f"it can't be read: {error}") from error
