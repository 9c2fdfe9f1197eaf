"""A pool's jobs on another pool's cluster, over the wire: its executor starts them, and ends them for its own jobs."""

from pathlib import Path
from typing import Any

import msgspec
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core

from armada.model.fleet import Taint
from tests.integration.plane import Executor, item, plane

SCHEDULING: dict[str, Any] = {
    "pools": [
        {"name": "gpu"},
        {
            "name": "cpu",
            "awayPools": ["gpu"],
            "jobDefaults": {"tolerations": [{"key": "gpu", "operator": "Equal", "value": "true"}]},
        },
    ]
}


def in_pool(executor: Executor, pool: str, *taints: Taint) -> Executor:
    executor.node = msgspec.structs.replace(executor.node, pool=pool, taints=taints)
    return executor


async def test_guests_are_started_where_they_are_lent_room_and_ended_for_the_owners_jobs(tmp_path: Path) -> None:
    async with plane(tmp_path, scheduling=SCHEDULING) as here:
        east = in_pool(Executor(here.running, "east", cpu="1"), "cpu")
        west = in_pool(Executor(here.running, "west", cpu="1"), "gpu", Taint("gpu", "true", "NoSchedule"))
        await east.exchange()
        await west.exchange()
        await here.client.send(*[item(priority_class="armada-preemptible") for _ in range(2)])
        (at_home,) = await east.take()
        (guest,) = await west.take()
        assert (at_home.pool, guest.pool) == ("cpu", "cpu")
        assert [(each.key, each.value) for each in guest.tolerations] == [("gpu", "true")]
        await west.report(guest, "pending", "running")
        west.held[guest.run_id] = "running"

        own = item(priority_class="armada-preemptible")
        own.pod_spec.tolerations.append(core.Toleration(key="gpu", operator="Exists"))
        (own_id,) = await here.client.send(own, job_set="own")
        (lease,) = await west.take()
        assert (lease.job_id, lease.pool) == (own_id, "gpu")
        assert guest.run_id not in west.held
        assert await here.client.state(guest.job_id) == "PREEMPTED"
        assert await here.client.until(at_home.job_id, "LEASED", "PENDING", "RUNNING")
        (told,) = (message for kind, message in await here.client.told() if kind == "preempted")
        assert "on a node of pool gpu, whose own jobs go first" in told.reason
        assert own_id in told.reason
