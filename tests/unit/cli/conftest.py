"""A small server of the API in this process, and `armadactl` run against it."""
# ruff: noqa: N802 - the names of the API's methods, whose meaning the API explains

from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from armada_client.armada import binoculars_pb2, event_pb2, job_pb2, submit_pb2
from google.protobuf.empty_pb2 import Empty

from armada.cli import user
from armada.cli.failures import ExitStatus
from armada.wire import queries, services


class FakeServer(
    services.SubmitServicer,
    services.QueueServicer,
    services.RetryPolicyServicer,
    services.ExecutorServicer,
    services.NodeServicer,
    services.EventServicer,
    services.JobsServicer,
    services.LogServicer,
    services.ReportingServicer,
):
    """Keeps queues and job sets, replays events that tests put in, fails as tests tell it to."""

    def __init__(self) -> None:
        self.queues: dict[str, Any] = {}
        self.policies: dict[str, Any] = {}
        self.requests: list[Any] = []
        self.metadata: list[dict[str, str]] = []
        self.failures: list[tuple[grpc.StatusCode, str]] = []
        self.events: dict[tuple[str, str], list[Any]] = {}
        self.details: dict[str, Any] = {}
        self.errors: dict[str, str] = {}
        self.logs: list[tuple[str, str]] = []
        self.submitted = 0

    def _take(self, request: Any, call: Any) -> None:
        self.requests.append(request)
        self.metadata.append(dict(call.invocation_metadata()))
        if self.failures:
            code, details = self.failures.pop(0)
            call.abort(code, details)

    def SubmitJobs(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        if request.queue not in self.queues:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, f"could not find queue {request.queue}")
        ids = []
        for _item in request.job_request_items:
            self.submitted += 1
            ids.append(submit_pb2.JobSubmitResponseItem(job_id=f"job-{self.submitted}"))
        return submit_pb2.JobSubmitResponse(job_response_items=ids)

    def CancelJobs(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return submit_pb2.CancellationResult(cancelled_ids=request.job_ids)

    def CancelJobSet(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return Empty()

    def PreemptJobs(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return submit_pb2.PreemptionResult(preemption_results=dict.fromkeys(request.job_ids, ""))

    def ReprioritizeJobs(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        keys = list(request.job_ids) or [f"all jobs in job set {request.job_set_id}"]
        return submit_pb2.JobReprioritizeResponse(reprioritization_results=dict.fromkeys(keys, ""))

    def CreateQueue(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        if not request.priority_factor >= 1:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "priority factor must be at least 1")
        self.queues[request.name] = request
        return Empty()

    UpdateQueue = CreateQueue

    def DeleteQueue(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        self.queues.pop(request.name, None)
        return Empty()

    def GetQueue(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        if request.name not in self.queues:
            context.abort(grpc.StatusCode.NOT_FOUND, f'could not find queue "{request.name}"')
        return self.queues[request.name]

    def GetQueues(self, request: Any, context: Any) -> Iterator[Any]:
        self._take(request, context)
        for name in sorted(self.queues):
            yield submit_pb2.StreamingQueueMessage(queue=self.queues[name])
        yield submit_pb2.StreamingQueueMessage(end=submit_pb2.EndMarker())

    def CordonQueue(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        self.queues[request.name].cordoned = True
        return Empty()

    def UncordonQueue(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        self.queues[request.name].cordoned = False
        return Empty()

    def CreateRetryPolicy(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        self.policies[request.name] = request
        return Empty()

    def UpdateRetryPolicy(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        if request.name not in self.policies:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no retry policy {request.name}")
        self.policies[request.name] = request
        return Empty()

    def DeleteRetryPolicy(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        self.policies.pop(request.name, None)
        return Empty()

    def GetRetryPolicy(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        if request.name not in self.policies:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no retry policy {request.name}")
        return self.policies[request.name]

    def GetRetryPolicies(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return submit_pb2.RetryPolicyList(retry_policies=[self.policies[name] for name in sorted(self.policies)])

    def CancelOnQueue(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return Empty()

    PreemptOnQueue = CancelOnQueue
    UpsertExecutorSettings = DeleteExecutorSettings = DeleteExecutor = CancelOnQueue
    CancelOnExecutor = PreemptOnExecutor = CancelOnNode = PreemptOnNode = CancelOnQueue

    def GetJobReport(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return queries.job_report(f"about job {request.job_id}\n")

    def GetQueueReport(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return queries.queue_report(f"about queue {request.queue_name}\n")

    def GetSchedulingReport(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return queries.scheduling_report("about all\n")

    def GetJobSetEvents(self, request: Any, context: Any) -> Iterator[Any]:
        self._take(request, context)
        events = self.events.get((request.queue, request.id))
        if events is None:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no job set {request.id} in queue {request.queue}")
        start = int(request.from_message_id.split(":")[0]) + 1 if request.from_message_id else 0
        for position, event in enumerate(events or []):
            if position < start:
                continue
            if isinstance(event, grpc.StatusCode):
                events[position] = event_pb2.EventMessage()  # type: ignore[index] # never None: checked above
                context.abort(event, "the connection went away")
            yield event_pb2.EventStreamMessage(id=f"{position}:0:0:1", message=event)

    def GetJobDetails(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        found = {job_id: self.details[job_id] for job_id in request.job_ids if job_id in self.details}
        return job_pb2.JobDetailsResponse(job_details=found)

    def GetJobErrors(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        return job_pb2.JobErrorsResponse(job_errors=self.errors)

    def GetJobStatus(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        states = {job_id: self.details[job_id].state for job_id in request.job_ids}
        return job_pb2.JobStatusResponse(job_states=states)

    def Logs(self, request: Any, context: Any) -> Any:
        self._take(request, context)
        lines = [line for line in self.logs if line[0] >= request.since_time]
        return binoculars_pb2.LogResponse(
            log=[binoculars_pb2.LogLine(timestamp=moment, line=text) for moment, text in lines]
        )


class Ran:
    """What one run of `armadactl` printed and how it ended."""

    def __init__(self, status: ExitStatus, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err


class Armadactl:
    """`armadactl` in this process, pointed at the fake server."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys

    def __call__(self, *arguments: str, at: str | None = None) -> Ran:
        """Run with these arguments; `at` is another address, empty for none on the command line."""
        url = self.url if at is None else at
        self._capsys.readouterr()
        status = user.run([*arguments, *(("--armadaUrl", url) if url else ())])
        captured = self._capsys.readouterr()
        return Ran(status, captured.out, captured.err)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, no variables that change what commands do, and a wide terminal for help pages."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for variable in ("ARMADAURL", "CURRENTCONTEXT", "ARMADACTL_OUTPUT", "ARMADACTL_EXIT_CODES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return folder


@pytest.fixture
def server() -> FakeServer:
    """The server's state, to prepare and to look at."""
    return FakeServer()


@pytest.fixture
def url(server: FakeServer) -> Iterator[str]:
    """The address of the running fake server."""
    running = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    services.register(running, server)  # type: ignore[arg-type] # the generated adders take either kind of server
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    yield f"127.0.0.1:{port}"
    running.stop(grace=None).wait()


@pytest.fixture
def armadactl(url: str, capsys: pytest.CaptureFixture[str]) -> Armadactl:
    """`armadactl` against the fake server."""
    return Armadactl(url, capsys)
