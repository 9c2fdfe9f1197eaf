"""From a pod's manifest to what is started on this machine: commands, environment, order, limits.

Raises `InvalidRequest` for what can't be done here, before anything is started.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from armada.executor.pods import DEFAULT_GRACE_SECONDS
from armada.model.errors import InvalidRequest
from armada.model.jobs import KubernetesObject
from armada.model.resources import NANO_PER_UNIT, parse_quantity

INIT: Final = "init"
SIDECAR: Final = "sidecar"
MAIN: Final = "main"

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MAX_CONTAINERS: Final = 100
LOOPBACK: Final = "127.0.0.1"

_REFERENCE: Final = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_KEYED_FIELD: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class ContainerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One container to start. `kind` is init, sidecar or main.

    `home` is a folder of its own, `folder` the one it starts in; mostly they are the same.
    """

    name: str
    kind: str
    command: tuple[str, ...]
    environment: dict[str, str]
    home: str
    folder: str


class PodPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All of a pod that this machine needs; init containers and sidecars come first, in their order."""

    run_id: str
    job_id: str
    queue: str
    job_set: str
    name: str
    namespace: str
    node_name: str
    pool: str
    created_ms: int
    deadline_ms: int
    grace_ms: int
    containers: tuple[ContainerPlan, ...]
    notes: tuple[str, ...]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod is to run: its folder, its node, its run; and as whom: containers are this process's user."""

    folder: Path
    node_name: str
    pool: str
    run_id: str
    user_id: int
    group_id: int


def work_folder(pod_folder: Path, number: int) -> Path:
    """The working directory of a pod's container."""
    return pod_folder / f"work-{number}"


def plan_pod(manifest: KubernetesObject, identity: Mapping[str, str], place: Place, created_ms: int) -> PodPlan:
    """What to start for a manifest; `identity` has job_id, queue and job_set. Raises InvalidRequest."""
    spec, metadata = manifest["spec"], manifest["metadata"]
    listed = [*((c, _init_kind(c)) for c in spec.get("initContainers") or ()), *((c, MAIN) for c in spec["containers"])]
    if not spec["containers"] or len(listed) > MAX_CONTAINERS:
        raise InvalidRequest(f"a pod must have at least 1 and at most {MAX_CONTAINERS} containers")
    notes = list(_pod_notes(spec))
    containers = []
    for number, (container, kind) in enumerate(listed):
        planned, more = _plan_container(container, kind, manifest, place, work_folder(place.folder, number))
        containers.append(planned)
        notes.extend(more)
    grace_seconds = spec.get("terminationGracePeriodSeconds")
    return PodPlan(
        run_id=place.run_id,
        job_id=identity["job_id"],
        queue=identity["queue"],
        job_set=identity["job_set"],
        name=metadata["name"],
        namespace=metadata["namespace"],
        node_name=place.node_name,
        pool=place.pool,
        created_ms=created_ms,
        deadline_ms=int(spec.get("activeDeadlineSeconds") or 0) * 1_000,
        grace_ms=int(DEFAULT_GRACE_SECONDS if grace_seconds is None else grace_seconds) * 1_000,
        containers=tuple(containers),
        notes=tuple(notes),
    )


def _init_kind(container: KubernetesObject) -> str:
    return SIDECAR if container.get("restartPolicy") == "Always" else INIT


def _pod_notes(spec: KubernetesObject) -> Iterator[str]:
    volumes = ", ".join(str(volume.get("name")) for volume in spec.get("volumes") or ())
    if volumes:
        yield f"volumes are not mounted on this machine: {volumes}"


def _plan_container(
    container: KubernetesObject, kind: str, manifest: KubernetesObject, place: Place, folder: Path
) -> tuple[ContainerPlan, list[str]]:
    name = str(container.get("name") or "")
    notes = []
    if container.get("image"):
        notes.append(f"image {container['image']} of container {name} is not used: its command runs on this machine")
    environment = _environment(container, name, manifest, place, folder)
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        raise InvalidRequest(
            f"container {name} has no command: images are not run on this machine, so the command of image"
            f" {container.get('image') or '(none)'} is unknown; set `command`"
        )
    command = tuple(_expanded(str(word), environment) for word in words)
    directory = folder
    wanted = container.get("workingDir")
    if wanted:
        if Path(wanted).is_dir():
            directory = Path(wanted)
        else:
            notes.append(f"workingDir {wanted} of container {name} is not there: it runs in a folder of its own")
    _check_user(container, name, manifest["spec"], place)
    planned = ContainerPlan(
        name=name,
        kind=kind,
        command=(_executable(command[0], environment["PATH"], directory, name), *command[1:]),
        environment=environment,
        home=str(folder),
        folder=str(directory),
    )
    return planned, notes


def _executable(word: str, path: str, directory: Path, name: str) -> str:
    """The program's absolute path: a shell would take some bare words for commands of its own."""
    if "/" in word:
        return word if word.startswith("/") else str(directory / word)
    found = shutil.which(word, path=path)
    if found is None:
        raise InvalidRequest(f"container {name}: there is no program {word!r} on this machine (PATH is {path})")
    return found


def _check_user(container: KubernetesObject, name: str, spec: KubernetesObject, place: Place) -> None:
    """A container that asks for another user must not run as this one instead."""
    security = {**(spec.get("securityContext") or {}), **(container.get("securityContext") or {})}
    asked = (security.get("runAsUser"), security.get("runAsGroup"))
    own = (place.user_id, place.group_id)
    if any(wanted is not None and int(wanted) != have for wanted, have in zip(asked, own, strict=True)):
        raise InvalidRequest(
            f"container {name} asks for user {asked[0]} and group {asked[1]}; on this machine containers are processes"
            f" of the executor's user {own[0]} and group {own[1]}"
        )
    if security.get("runAsNonRoot") and place.user_id == 0:
        raise InvalidRequest(f"container {name} must not run as root, and this executor does")


def _environment(
    container: KubernetesObject, name: str, manifest: KubernetesObject, place: Place, folder: Path
) -> dict[str, str]:
    """A small environment of our own, then the container's; nothing of this process's environment."""
    metadata = manifest["metadata"]
    environment = {
        "PATH": DEFAULT_PATH,
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "HOSTNAME": str(metadata["name"]),
    }
    for source in container.get("envFrom") or ():
        reference = source.get("configMapRef") or source.get("secretRef") or {}
        if not reference.get("optional"):
            raise InvalidRequest(f"container {name}: there are no config maps and secrets on this machine (envFrom)")
    for entry in container.get("env") or ():
        key = str(entry.get("name") or "")
        if not key or "=" in key or "\0" in key:
            raise InvalidRequest(f"container {name}: {key!r} can't be the name of an environment variable")
        source = entry.get("valueFrom")
        value = (
            _expanded(str(entry.get("value") or ""), environment)
            if source is None
            else _from_source(source, key, container, manifest, place)
        )
        if value is not None:
            environment[key] = value
    return environment


def _from_source(
    source: Mapping[str, Any], key: str, container: KubernetesObject, manifest: KubernetesObject, place: Place
) -> str | None:
    if "fieldRef" in source:
        return _field(str(source["fieldRef"].get("fieldPath")), key, manifest, place)
    if "resourceFieldRef" in source:
        return _resource(source["resourceFieldRef"], key, container)
    reference = source.get("configMapKeyRef") or source.get("secretKeyRef") or {}
    if reference.get("optional"):
        return None
    raise InvalidRequest(f"variable {key}: there are no config maps and secrets on this machine")


def _field(path: str, key: str, manifest: KubernetesObject, place: Place) -> str:
    metadata = manifest["metadata"]
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": place.run_id,
        "spec.nodeName": place.node_name,
        "spec.serviceAccountName": manifest["spec"].get("serviceAccountName", "default"),
        "status.hostIP": LOOPBACK,
        "status.podIP": LOOPBACK,
    }
    if path in known:
        return str(known[path])
    keyed = _KEYED_FIELD.fullmatch(path)
    if keyed is None:
        raise InvalidRequest(f"variable {key}: there is no field {path!r}")
    return str((metadata.get(keyed[1]) or {}).get(keyed[2], ""))


def _resource(reference: Mapping[str, Any], key: str, container: KubernetesObject) -> str:
    side, _, name = str(reference.get("resource") or "").partition(".")
    amounts = (container.get("resources") or {}).get(side) or {}
    if side not in ("limits", "requests") or name not in amounts:
        raise InvalidRequest(f"variable {key}: the container has no {reference.get('resource')}")
    divisor = parse_quantity(str(reference.get("divisor") or "1")) or NANO_PER_UNIT
    return str(-(-parse_quantity(str(amounts[name])) // divisor))


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    """Put variables in as Kubernetes does: `$(NAME)` where it is known, `$$` for a dollar, everything else as it is."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return environment.get(match[1], match[0])

    return _REFERENCE.sub(value, text)
