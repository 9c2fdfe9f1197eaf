"""`submit`: what files may say, what is refused with which place, what reaches the server."""

import json
from pathlib import Path

import grpc
import pytest
from armada_client.armada import submit_pb2

from armada.cli.failures import ExitStatus
from armada.cli.verbs import submit
from tests.unit.cli.conftest import Armadactl, FakeServer

CONTAINER = """{name: main, image: "busybox:1.36", command: [sleep, "5"],
      resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 100m, memory: 32Mi}}}"""
JOB = f"""\
- namespace: default
  podSpec:
    containers:
    - {CONTAINER}
"""
FILE = f"queue: qa\njobSetId: s1\njobs:\n{JOB}"


@pytest.fixture(autouse=True)
def queue(server: FakeServer) -> None:
    """The queue that the files name."""
    server.queues["qa"] = submit_pb2.Queue(name="qa", priority_factor=1)


@pytest.fixture
def write(tmp_path: Path) -> "Write":
    """Writes files of a test."""
    return Write(tmp_path)


class Write:
    """Writes a file and returns its path as text."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, content: str | bytes, name: str = "jobs.yaml") -> str:
        """Write the content under this name."""
        path = self._folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)


def test_jobs_are_submitted_and_told_one_a_line(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    ran = armadactl("submit", write(FILE + JOB))
    assert ran.status is ExitStatus.OK
    assert ran.out.splitlines() == [
        "Submitted job with id job-1 to job set s1",
        "Submitted job with id job-2 to job set s1",
    ]
    assert ran.err == ""
    (request,) = server.requests
    assert (request.queue, request.job_set_id) == ("qa", "s1")
    container = request.job_request_items[0].pod_spec.containers[0]
    assert container.resources.requests["cpu"].string == "100m"
    ids = [item.client_id for item in request.job_request_items]
    assert len(set(ids)) == 2
    assert all(len(client_id) == 26 for client_id in ids)


def test_a_json_file_is_as_good(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    content = {"queue": "qa", "jobSetId": "s1", "jobs": [{"namespace": "n", "podSpec": {"containers": []}}]}
    ran = armadactl("submit", write(json.dumps(content), "jobs.json"), "-o", "json")
    assert ran.status is ExitStatus.OK
    told = json.loads(ran.out)
    assert told["jobs"] == [{"jobId": "job-1", "clientId": server.requests[0].job_request_items[0].client_id}]


def test_a_given_client_id_is_kept(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    armadactl("submit", write(FILE.replace("namespace: default", "namespace: default\n  clientId: mine")))
    assert server.requests[0].job_request_items[0].client_id == "mine"


def test_numbers_and_booleans_become_text_as_they_were_written(
    armadactl: Armadactl, server: FakeServer, write: Write
) -> None:
    annotations = "annotations: {gang: 2, flag: true, version: 1.10, exponent: 1e3, time: 12:30, day: 2031-04-07}"
    content = FILE.replace("jobSetId: s1", "jobSetId: 77").replace(
        "namespace: default", f"namespace: n\n  {annotations}"
    )
    assert armadactl("submit", write(content)).status is ExitStatus.OK
    (request,) = server.requests
    assert request.job_set_id == "77"
    assert dict(request.job_request_items[0].annotations) == {
        "gang": "2",
        "flag": "true",
        "version": "1.10",
        "exponent": "1e3",
        "time": "12:30",
        "day": "2031-04-07",
    }


def test_anchors_and_merge_keys_work(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    content = f"queue: qa\njobSetId: s\njobs:\n- &m {{namespace: a, podSpec: {{containers: [{CONTAINER}]}}}}\n- *m\n"
    content += "- {<<: *m, namespace: b, priority: 5}\n"
    assert armadactl("submit", write(content)).status is ExitStatus.OK
    items = server.requests[0].job_request_items
    assert [(item.namespace, item.priority) for item in items] == [("a", 0), ("a", 0), ("b", 5)]
    assert items[2].pod_spec == items[0].pod_spec


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("# nothing\n", "is empty"),
        ("{}", "there are no jobs"),
        ("queue: qa\njobSetId: s\n", "there are no jobs"),
        ("queue: qa\njobSetId: s\njobs: []\n", "there are no jobs"),
        ("queue: qa\njobSetId: s\njobs: {}\n", "jobs: a list is wanted"),
        ("queue: qa\njobSetId: s\njobs: 5\n", "jobs: a list is wanted"),
        ("queue: [\n", "line "),
        ("- a\n- b\n", "a list"),
        ("just text", "a single value"),
        (b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe", "not a text file"),
        (b"queue: qa\x00", "NUL"),
        ("queue: qa\njobSetId: s\njobs:\n\t- namespace: n\n", "tab"),
        (FILE.replace("queue: qa", "queue: qa\nqueue: qb"), "'queue' is given twice (first in line 1)"),
        (FILE.replace("namespace: default", "namespace: a\n  namespace: b"), "'namespace' is given twice"),
        (FILE.replace("queue: qa\n", ""), "queue is missing"),
        (FILE.replace("jobSetId: s1", "job_set_id: s1"), "job_set_id: unknown field, did you mean jobSetId?"),
        (FILE.replace("namespace:", "jobSetId: x\n  namespace:"), "jobs[0].jobSetId: unknown field"),
        (
            FILE.replace("namespace:", "prioritty: 5\n  namespace:"),
            "jobs[0].prioritty: unknown field, did you mean pri",
        ),
        (
            FILE.replace("    containers:", "    nodeSelectors: {a: b}\n    containers:"),
            "jobs[0].podSpec.nodeSelectors",
        ),
        (FILE.replace("image:", "imagee:"), "jobs[0].podSpec.containers[0].imagee: unknown field, did you mean image?"),
        (FILE.replace("cpu: 100m", "cpu: lots", 1), "jobs[0].podSpec.containers[0].resources.requests.cpu"),
        (FILE.replace("namespace: default", "namespace: default\n  priority: high"), "jobs[0].priority"),
        (FILE + "- null\n", "jobs[1]"),
        (FILE + "- text\n", "jobs[1]"),
        (
            FILE.replace("namespace:", "ingress: [{type: NodePort, ports: [80]}]\n  namespace:"),
            "jobs[0].ingress[0].type",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(
    armadactl: Armadactl, server: FakeServer, write: Write, content: str | bytes, cause: str
) -> None:
    path = write(content)
    for arguments in (("submit", path), ("submit", path, "--dry-run")):
        ran = armadactl(*arguments)
        assert ran.status is ExitStatus.USAGE
        assert ran.out == ""
        assert ran.err.startswith(f"Error: {path}")
        assert cause in ran.err
        assert ran.err.count("\n") == 1, ran.err
    assert server.requests == []


def test_json_is_held_to_json(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    for text, cause in (
        ('{"queue": "qa", "jobs": [],}', "line 1, column"),
        ('{"queue": "qa", "queue": "qb"}', "'queue' is given twice"),
    ):
        ran = armadactl("submit", write(text, "jobs.json"))
        assert ran.status is ExitStatus.USAGE
        assert cause in ran.err
    assert server.requests == []


def test_missing_files_and_folders_are_told_apart(armadactl: Armadactl, tmp_path: Path) -> None:
    missing = armadactl("submit", str(tmp_path / "nope.yaml"))
    assert missing.status is ExitStatus.USAGE
    assert "no such file" in missing.err
    folder = armadactl("submit", str(tmp_path))
    assert folder.status is ExitStatus.USAGE
    assert "is a directory" in folder.err


def test_of_several_documents_the_first_counts_and_a_warning_says_so(
    armadactl: Armadactl, server: FakeServer, write: Write
) -> None:
    ran = armadactl("submit", write(FILE + "---\n" + FILE.replace("s1", "s2")))
    assert ran.status is ExitStatus.OK
    assert [request.job_set_id for request in server.requests] == ["s1"]
    assert "2 documents" in ran.err


def test_dry_runs_submit_nothing(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    ran = armadactl("submit", write(FILE), "--dry-run")
    assert ran.status is ExitStatus.OK
    assert ran.err == ""
    assert server.requests == []
    assert json.loads(armadactl("submit", write(FILE), "--dry-run", "-o", "json").out)["count"] == 1


def test_many_jobs_go_in_requests_of_200(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    ran = armadactl("submit", write(FILE + JOB * 449))
    assert ran.status is ExitStatus.OK
    assert [len(request.job_request_items) for request in server.requests] == [200, 200, 50]
    assert len(ran.out.splitlines()) == 450


def test_large_jobs_go_in_smaller_requests() -> None:
    jobs = [submit_pb2.JobSubmitRequestItem(annotations={"a": "x" * 60_000}) for _ in range(120)]
    pieces = list(submit.chunks(jobs))
    assert [job for piece in pieces for job in piece] == jobs
    for piece in pieces:
        request = submit_pb2.JobSubmitRequest(queue="q", job_set_id="s", job_request_items=piece)
        assert request.ByteSize() < 4 * 1024 * 1024


def test_a_lost_answer_is_asked_for_again_with_the_same_client_ids(
    armadactl: Armadactl, server: FakeServer, write: Write
) -> None:
    server.failures = [(grpc.StatusCode.UNAVAILABLE, "restarting")]
    assert armadactl("submit", write(FILE)).status is ExitStatus.OK
    first, second = server.requests
    assert first == second


def test_a_refusal_says_how_many_were_submitted_before(armadactl: Armadactl, server: FakeServer, write: Write) -> None:
    path = write(FILE + JOB * 249)

    ran = armadactl("submit", path, "-o", "json")
    assert ran.status is ExitStatus.OK
    server.requests.clear()
    server.failures = [(grpc.StatusCode.INVALID_ARGUMENT, "jobs[3]: no namespace")]
    ran = armadactl("submit", path)
    assert ran.status is ExitStatus.FAILED
    assert ran.out == "Submitted 0 of 250 jobs\n"
    assert ran.err == "Error: jobs[3]: no namespace\n"


def test_an_unknown_queue_is_the_servers_to_refuse(armadactl: Armadactl, write: Write) -> None:
    ran = armadactl("submit", write(FILE.replace("qa", "ghost")))
    assert ran.status is ExitStatus.DENIED
    assert "could not find queue" in ran.err


def test_client_ids_sort_by_time_and_differ() -> None:
    ids = [submit.fresh_client_id() for _ in range(100)]
    assert len(set(ids)) == 100
    assert {len(client_id) for client_id in ids} == {26}
    assert all(client_id <= "7" + "z" * 25 for client_id in ids)
