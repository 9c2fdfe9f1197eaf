"""What the journeys of both published clients have in common: jobs to submit, and what is told to the test.

Run in a process of its own, with nothing imported but `armada_client` and what it brings.
"""

import json
import sys
from collections import Counter
from typing import Any

from armada_client.k8s.io.api.core.v1 import generated_pb2 as core_v1
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as resource

JOBS = 1_000
QUEUE_FACTOR = 2.0


def pod(runtime: str) -> core_v1.PodSpec:
    """A pod as the client's own documentation builds one."""
    amounts = {"cpu": resource.Quantity(string="100m"), "memory": resource.Quantity(string="64Mi")}
    container = core_v1.Container(
        name="main",
        image="busybox:1.36",
        args=["sleep", runtime],
        resources=core_v1.ResourceRequirements(requests=amounts, limits=amounts),
    )
    return core_v1.PodSpec(containers=[container])


def items(client: Any, count: int, runtime_s: float) -> list[Any]:
    """Jobs for simulated nodes that run for this long."""
    return [
        client.create_job_request_item(
            priority=1.0,
            pod_spec=pod(str(runtime_s)),
            namespace="compatibility",
            annotations={"armadaproject.io/sim": f"runtime={int(runtime_s * 1_000)}ms"},
        )
        for _ in range(count)
    ]


class Told:
    """Collects what happened and prints it as one JSON object at the end."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.kinds: Counter[str] = Counter()
        self.terminal: Counter[str] = Counter()
        self.message_ids: list[str] = []

    def take(self, event: Any) -> None:
        """Count one unmarshalled event."""
        self.kinds[event.type.value] += 1
        self.message_ids.append(event.id)
        if event.type.value in {"succeeded", "failed", "cancelled"}:
            self.terminal[event.message.job_id] += 1

    def say(self) -> None:
        """Print everything."""
        json.dump({**self.facts, "kinds": self.kinds}, sys.stdout)
