"""This machine as a node: its name, labels and totals. Resources are counted by these totals and not enforced."""

import os
import platform
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from armada.executor.pods import HOSTNAME_LABEL
from armada.model.errors import StartupRefused
from armada.model.fleet import Node, Taint
from armada.model.resources import canonical_quantity

PROCESSES_LABEL: Final = "armadaproject.io/processes"
"""Label of a node whose containers are processes of the machine; a job may select it."""
DEFAULT_PODS: Final = 110
POD_STORAGE_BYTES: Final = 8 << 30
"""Storage that a pod asks for unless it says otherwise. Nothing enforces it, so the node offers enough for all."""
DEFAULT_LOG_LIMIT_BYTES: Final = 64 << 20


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """This machine as a cluster of one node. Empty values are taken from the machine; `totals` replaces single ones."""

    node_name: str = ""
    node_type: str = "machine"
    totals: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    log_limit_bytes: int = DEFAULT_LOG_LIMIT_BYTES


def machine_node(settings: ProcessSettings, executor_id: str, pool: str, folder: Path) -> Node:
    """The node. Raises StartupRefused for a total that is no quantity."""
    name = settings.node_name or socket.gethostname() or "machine"
    storage = max(shutil.disk_usage(folder).total, DEFAULT_PODS * POD_STORAGE_BYTES)
    totals = {
        "cpu": str(len(os.sched_getaffinity(0))),
        "memory": str(_memory_bytes()),
        "ephemeral-storage": str(storage),
        "pods": str(DEFAULT_PODS),
    }
    for resource, quantity in settings.totals.items():
        try:
            totals[resource] = canonical_quantity(str(quantity))
        except ValueError as error:
            raise StartupRefused(f"the total of {resource} on this machine: {error}") from error
    labels = {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": platform.system().lower(),
        "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
        PROCESSES_LABEL: "true",
        **settings.labels,
    }
    return Node(
        node_id=f"{executor_id}-{name}",
        name=name,
        executor_id=executor_id,
        pool=pool,
        labels=labels,
        taints=settings.taints,
        total=totals,
        node_type=settings.node_type,
    )


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
