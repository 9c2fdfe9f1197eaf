"""What the demo submits: three queues of unequal weight, a handful of real commands, many simulated jobs."""

from dataclasses import dataclass, field
from typing import Any, Final

from armada.cli import manifests

COMMANDS: Final = "commands"
"""Job set of the real commands."""

SIMULATED: Final = "simulated"
"""Job set of the simulated jobs."""

MACHINE: Final = "armadaproject.io/processes"
"""Label and taint of this machine's node."""

SIMULATED_NODE: Final = "armadaproject.io/simulated"
"""Label of simulated nodes."""

SUM_OF_1000: Final = 500_500
_RUNTIME_STEPS: Final = 9
_LONG_S: Final = 600


@dataclass(frozen=True, slots=True)
class DemoQueue:
    """A queue of the demo; its weight is 1 / `priority_factor`. `simulated_jobs` go in pieces of `piece`."""

    name: str
    priority_factor: float
    simulated_jobs: int
    piece: int


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One real job: a name for the audience, its queue, its message for the API, the cpu it asks for."""

    key: str
    queue: str
    item: Any
    cpu: float


@dataclass(frozen=True, slots=True)
class Mix:
    """Everything that one demo submits. `fleet` is the value of `armada up --simulate`."""

    queues: tuple[DemoQueue, ...]
    fleet: str
    runtime_s: float
    first: tuple[DemoJob, ...]
    urgent: DemoJob
    tolerance: float = 0.05
    gang_size: int = 4
    total_simulated: int = field(default=0)

    @property
    def jobs(self) -> tuple[DemoJob, ...]:
        """Every real job."""
        return (*self.first, self.urgent)


def full(cpus: int) -> Mix:
    """The demo of the README, on a machine with this many cpus."""
    queues = (
        DemoQueue("research", 1.0, 1_000, 100),
        DemoQueue("analytics", 2.0, 600, 60),
        DemoQueue("batch", 4.0, 400, 40),
    )
    return _mix(queues, "3x20", 3.0, cpus, tolerance=0.05)


def small(cpus: int) -> Mix:
    """The same with few simulated jobs, for tests."""
    queues = (
        DemoQueue("research", 1.0, 90, 30),
        DemoQueue("analytics", 2.0, 60, 20),
        DemoQueue("batch", 4.0, 50, 16),
    )
    return _mix(queues, "3x1", 1.0, cpus, tolerance=0.2)


def _mix(queues: tuple[DemoQueue, ...], fleet: str, runtime_s: float, cpus: int, *, tolerance: float) -> Mix:
    research, analytics, batch = (queue.name for queue in queues)
    most = 0.6 * cpus
    member = 'echo "$ARMADA_JOB_ID is one of $ARMADA_GANG_CARDINALITY in gang $ARMADA_GANG_ID"; sleep 1'
    add_up = "i=0; s=0; while [ $i -lt 1000 ]; do i=$((i+1)); s=$((s+i)); done; echo 1 to 1000 add up to $s"
    first = [
        _command("hello", research, 'echo "hello from job $ARMADA_JOB_ID of queue $ARMADA_QUEUE"'),
        _command("sum", analytics, add_up),
        _command("exit 3", research, "echo this one fails on purpose; exit 3"),
        _command("too big", batch, "echo never", cpu="100000"),
        _command("to cancel", batch, f"echo waiting to be cancelled; sleep {_LONG_S}"),
        _command("modest", batch, f"sleep {_LONG_S}", cpu=f"{most:g}", priority_class="armada-preemptible"),
    ]
    gang = {"armadaproject.io/gangId": "quartet", "armadaproject.io/gangCardinality": "4"}
    first.extend(_command(f"gang {number}", analytics, member, annotations=gang) for number in range(1, 5))
    urgent = _command("urgent", research, "echo made room", cpu=f"{most:g}", priority_class="armada-urgent")
    return Mix(
        queues=queues,
        fleet=fleet,
        runtime_s=runtime_s,
        first=tuple(first),
        urgent=urgent,
        tolerance=tolerance,
        total_simulated=sum(queue.simulated_jobs for queue in queues),
    )


def _command(
    key: str,
    queue: str,
    script: str,
    *,
    cpu: str = "50m",
    priority_class: str = "armada-default",
    annotations: dict[str, str] | None = None,
) -> DemoJob:
    """A job that runs a shell script as a process of this machine."""
    resources = {"cpu": cpu, "memory": "32Mi", "ephemeral-storage": "1Mi"}
    job = {
        "namespace": "demo",
        "annotations": annotations or {},
        "podSpec": {
            "priorityClassName": priority_class,
            "nodeSelector": {MACHINE: "true"},
            "tolerations": [{"key": MACHINE, "operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": "busybox:1.36",
                    "command": ["sh", "-c", script],
                    "resources": {"requests": resources, "limits": resources},
                }
            ],
        },
    }
    cores = float(cpu.removesuffix("m")) / 1_000 if cpu.endswith("m") else float(cpu)
    return DemoJob(key, queue, _message(job), cores)


def simulated(number: int, runtime_s: float) -> Any:
    """A job of one cpu that a simulated node pretends to run for about `runtime_s`, one of nine lengths."""
    # Different lengths keep the simulated nodes from emptying all at once.
    step = number * 5 % _RUNTIME_STEPS
    length_ms = int(1_000 * runtime_s * (0.67 + 0.66 * step / (_RUNTIME_STEPS - 1)))
    resources = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    job = {
        "namespace": "demo",
        "annotations": {"armadaproject.io/sim": f"runtime={length_ms}ms"},
        "podSpec": {
            "nodeSelector": {SIMULATED_NODE: "true"},
            "containers": [
                {
                    "name": "main",
                    "image": "busybox:1.36",
                    "command": ["sleep", str(round(length_ms / 1_000, 3))],
                    "resources": {"requests": resources, "limits": resources},
                }
            ],
        },
    }
    return _message(job)


def _message(job: dict[str, Any]) -> Any:
    from armada_client.armada import submit_pb2

    return manifests.message(job, submit_pb2.JobSubmitRequestItem, source="the demo")
