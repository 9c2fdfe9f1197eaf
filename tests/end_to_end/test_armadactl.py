"""The whole tutorial's worth of `armadactl`, as processes against a running system."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Armadactl

pytestmark = pytest.mark.timeout(300)

JOB = """\
queue: {queue}
jobSetId: {job_set}
jobs:
- namespace: default
  priority: 3
  podSpec:
    nodeSelector: {{armadaproject.io/processes: "true"}}
    tolerations: [{{key: armadaproject.io/processes, operator: Exists}}]
    containers:
    - name: main
      image: busybox:1.36
      command: [sh, -c, '{script}']
      resources:
        requests: {{cpu: 50m, memory: 16Mi, ephemeral-storage: 1Mi}}
        limits: {{cpu: 50m, memory: 16Mi, ephemeral-storage: 1Mi}}
"""


def submitted(armadactl: Armadactl, queue: str, job_set: str, script: str) -> str:
    """Submit one real job and return its id."""
    armadactl("create", "queue", queue)
    (armadactl.folder / "job.yaml").write_text(JOB.format(queue=queue, job_set=job_set, script=script))
    ran = armadactl("submit", "job.yaml")
    assert ran.returncode == 0, ran.stderr
    match = re.fullmatch(rf"Submitted job with id ([0-9a-z]{{26}}) to job set {job_set}\n", ran.stdout)
    assert match is not None
    return match[1]


def test_a_real_job_runs_and_its_output_can_be_read(armadactl: Armadactl) -> None:
    job_id = submitted(armadactl, "tutor", "hello", "echo hello from $ARMADA_QUEUE; echo second line")
    watched = armadactl("watch", "tutor", "hello", "--exit-if-inactive")
    assert watched.returncode == 0, watched.stderr
    events = re.findall(r"\| Job(\w+)Event, job id: ", watched.stdout)
    assert events == ["Submitted", "Queued", "Leased", "Pending", "Running", "Succeeded"]
    assert armadactl("logs", job_id).stdout.endswith("hello from tutor\nsecond line\n")
    assert armadactl("logs", job_id, "--tail", "1").stdout == "second line\n"
    told = json.loads(armadactl("get", "job", job_id, "-o", "json").stdout)
    assert (told["state"], told["queue"], told["jobSetId"]) == ("SUCCEEDED", "tutor", "hello")
    (run,) = told["runs"]
    assert run["state"] == "SUCCEEDED"
    assert run["finished"] >= run["started"] >= run["leased"]
    spec = json.loads(armadactl("get", "job", job_id, "--spec", "-o", "json").stdout)["job"]
    assert spec["priority"] == 3
    assert spec["podSpec"]["containers"][0]["resources"]["requests"]["cpu"] == "50m"


def test_a_failing_job_is_explained(armadactl: Armadactl) -> None:
    job_id = submitted(armadactl, "tutor", "fails", "echo oh no >&2; exit 3")
    watched = armadactl("watch", "tutor", "fails", "--exit-on-failure", ARMADACTL_EXIT_CODES="detailed")
    assert watched.returncode == 6
    assert f"job {job_id} failed" in watched.stderr
    assert "3" in armadactl("get", "job", job_id).stdout
    assert armadactl("logs", job_id).stdout.endswith("oh no\n")
    assert "failed" in armadactl("get", "job-set", "tutor", "fails").stdout


def test_jobs_are_cancelled_and_reprioritised(armadactl: Armadactl) -> None:
    job_id = submitted(armadactl, "tutor", "long", "sleep 300")
    assert armadactl("reprioritize", "job", "tutor", "long", job_id, "1").returncode == 0
    assert armadactl("cancel", "job", "tutor", "long", job_id, "--reason", "enough").returncode == 0
    watched = armadactl("watch", "tutor", "long", "--exit-if-inactive")
    assert "JobReprioritizedEvent" in watched.stdout
    assert "Cancelled:   1" in watched.stdout
    assert json.loads(armadactl("get", "job", job_id, "-o", "json").stdout)["state"] == "CANCELLED"


def test_why_a_job_waits_can_be_asked(armadactl: Armadactl) -> None:
    armadactl("create", "queue", "waits", "--cordon")
    job_id = submitted_without_queue(armadactl, "waits", "s")
    shown = armadactl("get", "job", job_id)
    assert shown.returncode == 0
    assert "queued" in shown.stdout
    assert "Waits because" in shown.stdout
    armadactl("cancel", "job-set", "waits", "s")


def submitted_without_queue(armadactl: Armadactl, queue: str, job_set: str) -> str:
    (armadactl.folder / "job.yaml").write_text(JOB.format(queue=queue, job_set=job_set, script="true"))
    told = json.loads(armadactl("submit", "job.yaml", "-o", "json").stdout)
    return str(told["jobs"][0]["jobId"])


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("get", "job", "01k3vq8n4w2h7c5d9e1f3g6j8k"), 4),
        (("get", "queue", "nonesuch"), 4),
        (("get", "queue"), 2),
        (("submit", "nowhere.yaml"), 2),
        (("logs", "01k3vq8n4w2h7c5d9e1f3g6j8k"), 4),
        (("create", "queue", "x", "--priority-factor", "0"), 1),
        (("version",), 0),
    ],
)
def test_exit_codes_can_be_told_apart(armadactl: Armadactl, arguments: tuple[str, ...], status: int) -> None:
    assert armadactl(*arguments, ARMADACTL_EXIT_CODES="detailed").returncode == status
    assert armadactl(*arguments).returncode == min(status, 1)


def test_a_server_that_is_down_is_told_from_a_bad_file(armadactl: Armadactl, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.format(queue="tutor", job_set="s", script="true"))
    ran = armadactl("submit", "job.yaml", url="127.0.0.1:1", ARMADACTL_EXIT_CODES="detailed")
    assert ran.returncode == 3
    assert "can't reach the server at 127.0.0.1:1" in ran.stderr


HEAVY = ("numpy", "numba", "grpc", "google.protobuf", "yaml", "armada.scheduling")


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("user", ["--help"]), ("user", ["submit", "--help"]), ("user", ["fly"]), ("operator", ["--help"])],
)
def test_help_and_usage_errors_load_nothing_heavy(program: str, arguments: list[str]) -> None:
    script = (
        f"import sys; from armada.cli.{program} import run; run({arguments!r}); "
        f"print('loaded:', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert ran.stdout.splitlines()[-1] == "loaded: []", ran.stderr


def test_no_command_of_users_loads_numpy(armadactl: Armadactl, tmp_path: Path) -> None:
    armadactl("create", "queue", "light")
    (tmp_path / "job.yaml").write_text(JOB.format(queue="light", job_set="s", script="true"))
    script = (
        f"import sys; from armada.cli.user import run; run(['submit', 'job.yaml', '--armadaUrl', '{armadactl.url}']); "
        "print('loaded:', [name for name in ('numpy', 'numba') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False, cwd=tmp_path
    )
    assert ran.stdout.splitlines()[-1] == "loaded: []", ran.stdout
