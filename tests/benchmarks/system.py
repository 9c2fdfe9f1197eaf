"""`armada up` as a process of its own, and a client that asks it over gRPC: what measurements of the whole need."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
from armada_client.armada import event_pb2, event_pb2_grpc, job_pb2, job_pb2_grpc, submit_pb2, submit_pb2_grpc
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as resource

ARMADA: Final = Path(sys.executable).with_name("armada")
START_LIMIT_S: Final = 60
STOP_LIMIT_S: Final = 20
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
SIMULATED: Final = "armadaproject.io/simulated"


class Server:
    """A running server. `spawned_s` is when its process was started, by `time.perf_counter`; `ready_s` what it took."""

    def __init__(self, process: subprocess.Popen[str], spawned_s: float, ready_s: float, address: str) -> None:
        self.process = process
        self.spawned_s = spawned_s
        self.ready_s = ready_s
        self.address = address

    def cpu_s(self) -> float:
        """Seconds of CPU that the process used, in all its threads, without its children."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def resident_mb(self) -> float:
        """Memory of the process that is in use, in units of 1,048,576 bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0


@contextmanager
def running(folder: Path, *options: str, verb: str = "up") -> Iterator[Server]:
    """Start `armada up` (or another verb) on free ports, wait for its `ready` line, stop it at the end."""
    command = [str(ARMADA), verb, "--data", str(folder / "data")]
    command += ["--grpc-port", "0", "--http-port", "0", "--metrics-port", "0", *options]
    spawned_s = time.perf_counter()
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        address = _address(process, folder / "log.txt")
        yield Server(process, spawned_s, time.perf_counter() - spawned_s, address)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _address(process: subprocess.Popen[str], log: Path) -> str:
    """The gRPC address of the `ready` line. Raises RuntimeError with the log's end when none comes."""
    overdue = threading.Timer(START_LIMIT_S, process.kill)
    overdue.start()
    try:
        for line in process.stdout or ():
            if line.startswith("ready "):
                parts = dict(word.partition("=")[::2] for word in line.split()[1:])
                # Whatever is printed later must not fill the pipe.
                threading.Thread(target=process.communicate, daemon=True).start()
                return parts["grpc"]
    finally:
        overdue.cancel()
    raise RuntimeError(f"the server did not become ready:\n{log.read_text()[-4000:]}")


class Client:
    """One connection and the calls that the measurements make on it."""

    def __init__(self, address: str) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 << 20)]
        self._channel = grpc.insecure_channel(address, options=options)
        self._queues = submit_pb2_grpc.QueueServiceStub(self._channel)
        self._submit = submit_pb2_grpc.SubmitStub(self._channel)
        self._events = event_pb2_grpc.EventStub(self._channel)
        self._jobs = job_pb2_grpc.JobsStub(self._channel)

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def create_queue(self, name: str) -> None:
        """A queue of weight 1."""
        self._queues.CreateQueue(submit_pb2.Queue(name=name, priority_factor=1.0), wait_for_ready=True, timeout=30)

    def cordon(self, name: str) -> None:
        """Let the queue's jobs wait."""
        self._queues.CordonQueue(submit_pb2.QueueCordonRequest(name=name), timeout=30)

    def submit(self, request: submit_pb2.JobSubmitRequest) -> list[str]:
        """Submit and return the ids."""
        answer = self._submit.SubmitJobs(request, timeout=60)
        return [each.job_id for each in answer.job_response_items]

    def follow(self, queue: str, job_set: str, from_message_id: str = "") -> Any:
        """The event stream of a job set: messages until cancelled."""
        request = event_pb2.JobSetRequest(
            id=job_set, queue=queue, watch=True, from_message_id=from_message_id, errorIfMissing=False
        )
        return self._events.GetJobSetEvents(request)

    def states(self, job_ids: Sequence[str]) -> dict[str, int]:
        """States of jobs by id."""
        request = job_pb2.JobStatusRequest(job_ids=job_ids)
        return dict(self._jobs.GetJobStatus(request, timeout=60).job_states)


def submission(
    queue: str, job_set: str, count: int, *, command: Sequence[str], is_simulated: bool = False
) -> submit_pb2.JobSubmitRequest:
    """A request for `count` equal jobs that run a command; simulated ones go to simulated nodes."""
    requests = {"cpu": quantity("100m"), "memory": quantity("16Mi")}
    container = core.Container(
        name="main",
        image="busybox",
        command=command,
        resources=core.ResourceRequirements(requests=requests, limits=requests),
    )
    pod = core.PodSpec(containers=[container], restartPolicy="Never", terminationGracePeriodSeconds=1)
    if is_simulated:
        pod.tolerations.append(core.Toleration(key=SIMULATED, operator="Exists"))
        pod.nodeSelector[SIMULATED] = "true"
    item = submit_pb2.JobSubmitRequestItem(priority=1, namespace="default", pod_specs=[pod])
    return submit_pb2.JobSubmitRequest(queue=queue, job_set_id=job_set, job_request_items=[item] * count)


def quantity(text: str) -> resource.Quantity:
    """A Kubernetes quantity."""
    return resource.Quantity(string=text)


def wait_for_running(stream: Any) -> float:
    """The moment (`time.perf_counter`) at which the stream tells that a job runs. Raises RuntimeError if none does."""
    for message in stream:
        kind = message.message.WhichOneof("events")
        if kind == "running":
            return time.perf_counter()
        if kind in {"failed", "cancelled"}:
            raise RuntimeError(f"the job did not run: {message}")
    raise RuntimeError("the stream ended before the job ran")
