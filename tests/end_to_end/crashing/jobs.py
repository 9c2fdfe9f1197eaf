"""Jobs for the crash proof: what each kind does, how it must end, and the marks that real ones leave.

A real job is a shell script of this machine. It appends a line to the file of its job and container when it starts and
when it ends, and a line `twice` when another process of the same job and container is alive at its start. The line
comes first and the look afterwards, so of two that start together at least one sees the other.
"""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from armada_client.armada import submit_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.apimachinery.pkg.api.resource.generated_pb2 import Quantity

MACHINE: Final = "armadaproject.io/processes"
SIMULATED: Final = "armadaproject.io/simulated"
ENDLESS_S: Final = 3_600

_SCRIPT: Final = """
marks=$1/$ARMADA_JOB_ID.$2
read -r now _ < /proc/uptime
echo "start $ARMADA_JOB_RUN_ID $$ $now" >> "$marks"
while read -r what run pid _; do
  if [ "$what" = start ] && [ "$pid" != $$ ] && kill -0 "$pid" 2> /dev/null; then
    echo "twice $run $pid $now" >> "$marks"
  fi
done < "$marks"
BODY
read -r now _ < /proc/uptime
echo "end $ARMADA_JOB_RUN_ID $$ $now" >> "$marks"
"""


class Act(enum.Enum):
    """What a client does to a job, besides submitting it."""

    NONE = "none"
    CANCEL_AT_ONCE = "cancel at once"
    CANCEL_RUNNING = "cancel running"
    PREEMPT_RUNNING = "preempt running"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job. `end` is its terminal event; `share` how often it is submitted; `gang` the size of its gang."""

    name: str
    end: str
    share: int
    body: str = ""
    first_body: str = ""
    annotation: str = ""
    act: Act = Act.NONE
    gang: int = 1

    @property
    def is_real(self) -> bool:
        """True when it runs as processes of this machine."""
        return bool(self.body)

    @property
    def containers(self) -> tuple[str, ...]:
        """Names of its containers, in the order of their starts."""
        return ("first", "main") if self.first_body else ("main",)


_WAIT: Final = f"sleep {ENDLESS_S}"
_STUBBORN: Final = "trap '' TERM; while :; do sleep 1; done"
_WITH_CHILDREN: Final = f"sleep {ENDLESS_S} & setsid sleep {ENDLESS_S} & sleep 0.4"

KINDS: Final = (
    Kind("quick", "succeeded", 6, "sleep 0.3"),
    Kind("failing", "failed", 2, "sleep 0.2; exit 3"),
    Kind("long", "succeeded", 2, "sleep 9"),
    Kind("two steps", "succeeded", 2, "sleep 0.5", first_body="sleep 0.7"),
    Kind("with children", "succeeded", 1, _WITH_CHILDREN),
    Kind("pair", "succeeded", 1, "sleep 0.6", gang=2),
    Kind("cancelled at once", "cancelled", 2, _WAIT, act=Act.CANCEL_AT_ONCE),
    Kind("cancelled between steps", "cancelled", 2, _WAIT, first_body="sleep 0.7", act=Act.CANCEL_AT_ONCE),
    Kind("cancelled running", "cancelled", 2, _WAIT, act=Act.CANCEL_RUNNING),
    Kind("stubborn", "cancelled", 1, _STUBBORN, act=Act.CANCEL_RUNNING),
    Kind("preempted", "failed", 1, _WAIT, act=Act.PREEMPT_RUNNING),
    Kind("simulated quick", "succeeded", 12, annotation="runtime=400ms"),
    Kind("simulated failing", "failed", 3, annotation="runtime=300ms,exit=2"),
    Kind("simulated longer", "succeeded", 3, annotation="runtime=2500ms"),
    Kind("simulated gang", "succeeded", 1, annotation="runtime=500ms", gang=3),
    Kind("simulated cancelled", "cancelled", 2, annotation=f"runtime={ENDLESS_S}s", act=Act.CANCEL_AT_ONCE),
    Kind("simulated cancelled running", "cancelled", 1, annotation=f"runtime={ENDLESS_S}s", act=Act.CANCEL_RUNNING),
)
"""All kinds; those that end by themselves do so within 10 s of running time."""


def request_item(kind: Kind, client_id: str, gang_id: str, marks: Path) -> submit_pb2.JobSubmitRequestItem:
    """A job of a kind."""
    annotations = {}
    if kind.gang > 1:
        annotations = {"armadaproject.io/gangId": gang_id, "armadaproject.io/gangCardinality": str(kind.gang)}
    if kind.annotation:
        annotations["armadaproject.io/sim"] = kind.annotation
    pod = core.PodSpec(
        restartPolicy="Never",
        terminationGracePeriodSeconds=1,
        nodeSelector={MACHINE if kind.is_real else SIMULATED: "true"},
        containers=[_container("main", kind.body, marks)],
        priorityClassName="armada-preemptible" if kind.act is Act.PREEMPT_RUNNING else "armada-default",
    )
    if kind.is_real:
        pod.tolerations.append(core.Toleration(key=MACHINE, operator="Exists"))
    if kind.first_body:
        pod.initContainers.append(_container("first", kind.first_body, marks))
    return submit_pb2.JobSubmitRequestItem(
        namespace="crash", client_id=client_id, annotations=annotations, pod_spec=pod
    )


def _container(name: str, body: str, marks: Path) -> core.Container:
    amounts = {
        "cpu": Quantity(string="10m"),
        "memory": Quantity(string="8Mi"),
        "ephemeral-storage": Quantity(string="1Mi"),
    }
    script = _SCRIPT.replace("BODY", body).replace("$$", "$$$$")  # in a pod's command `$$` stands for `$`
    return core.Container(
        name=name,
        image="busybox",
        command=["sh", "-c", script, name, str(marks), name],
        resources=core.ResourceRequirements(requests=amounts, limits=amounts),
    )
