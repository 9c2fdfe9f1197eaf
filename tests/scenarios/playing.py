"""Plays a story: steps in a world with a leader, each with what it brings about (stories.toml describes the words)."""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from armada.control.commands import changing
from armada.control.cycle import Leader
from armada.control.reports import Reports
from armada.control.rounds.cadence import Cadence
from armada.model.configuration import retry_policy, scheduling_policy
from armada.model.errors import ArmadaError
from armada.model.events import (
    Entry,
    ExecutorReported,
    ExecutorSettingsChanged,
    Failure,
    JobFailed,
    JobPreempted,
    JobRejected,
    JobRequeued,
    JobSetEvents,
    QueueCordoned,
    RetryPolicySet,
    RunFailed,
    RunReturned,
    RunsReleased,
    RunStarted,
    RunSucceeded,
)
from armada.model.fleet import ClassLimit, ExecutorSettings
from armada.model.submission import PreemptRequest
from armada.scheduling.decisions import Decisions
from armada.scheduling.round import schedule
from tests.unit.control.driving import Driver
from tests.unit.control.world import START_MS, fact, item, node, pod

SETTINGS: Final = {"indexedNodeLabels": ["kubernetes.io/hostname"]}
FIRST_CLASS: Final = "armada-preemptible"


def _limits(values: dict[str, dict[str, float]]) -> dict[str, ClassLimit]:
    return {name: ClassLimit(fractions) for name, fractions in values.items()}


class Play:
    """One story being played; jobs are known by the names that the story gives them."""

    def __init__(self, story: dict[str, Any]) -> None:
        config = {**SETTINGS, **story.get("config", {})}
        cadence = Cadence(round_delay_ms=0, fleet_settle_ms=0, **story.get("cadence", {}))
        self.driver = Driver(scheduling_policy(config), cadence)
        self.world = self.driver.world
        self.ids: dict[str, str] = {}
        self.held: tuple[Any, Decisions] | None = None
        queue = dict(story.get("queue", {}))
        if limits := queue.pop("limits", None):
            queue["limits_by_class"] = _limits(limits)
        if "retry" in story:
            policy = retry_policy({"name": "rules", **story["retry"]})
            self.world.store(fact(RetryPolicySet(at_ms=START_MS, policy=policy)))
            queue["retry_policies"] = ("rules",)
        self.world.queue("q", **queue)
        self.nodes(story.get("nodes", {"n1": "8", "n2": "8"}))

    def play(self, step: dict[str, Any]) -> None:
        """Do one step and check what it says."""
        values = dict(step)
        expected = {key: values.pop(key) for key in CHECKS if key in values}
        before = len(self.world.entries)
        verb: Callable[..., None] = getattr(self, values.pop("do"))
        verb(**values)
        for key, value in expected.items():
            CHECKS[key](self, self.world.entries[before:], value)

    # -- what users do

    def submit(
        self,
        jobs: list[str],
        *,
        cpu: str = "1",
        memory: str = "1Gi",
        kind: str = "armada-default",
        gang: int = 0,
        kinds: list[str] | None = None,
        cpus: list[str] | None = None,
        on: str = "",
        refused: str = "",
        **annotations: str,
    ) -> None:
        """Submit jobs, or one gang of them."""
        spec = {"priorityClassName": kind} | ({"nodeSelector": {"kubernetes.io/hostname": on}} if on else {})
        if gang:
            annotations |= {"gangId": jobs[0], "gangCardinality": str(gang)}
        full = {f"armadaproject.io/{name}": value for name, value in annotations.items()}
        made = [
            item(pod(size, memory, **{**spec, "priorityClassName": one}), annotations=full)
            for one, size in zip(kinds or [kind] * len(jobs), cpus or [cpu] * len(jobs), strict=True)
        ]
        if refused:
            with pytest.raises(ArmadaError, match=refused):
                self.world.submit(*made, queue="q")
        else:
            self.ids.update(zip(jobs, self.world.submit(*made, queue="q"), strict=True))

    def cancel(self, job: str) -> None:
        """Cancel a job."""
        self.world.cancel(self.ids[job])

    def preempt(self, job: str) -> None:
        """Ask for a job's preemption."""
        request = PreemptRequest("q", "s", (self.ids[job],), "why")
        self.world.store(*changing.preempt(self.world.at(), request)[1])

    def cordon_queue(self) -> None:
        """Cordon the queue."""
        self.world.store(fact(QueueCordoned(at_ms=self.world.now_ms, name="q", cordoned=True)))

    # -- what clusters do

    def nodes(self, nodes: dict[str, str], pool: str = "default", gone: tuple[str, ...] = ()) -> None:
        """Report nodes with their cpu, and nodes that are gone; the executor is heard."""
        reported = tuple(node(name, "east", cpu, pool=pool) for name, cpu in nodes.items())
        self.world.store(
            fact(
                ExecutorReported(
                    at_ms=self.world.now_ms, executor_id="east", pool="default", nodes=reported, gone=tuple(gone)
                )
            )
        )
        self.heard()

    def heard(self) -> None:
        """Hear the executor."""
        self.driver.heard("east")

    def cordon_executor(self) -> None:
        """Cordon the executor."""
        settings = ExecutorSettings(executor_id="east", cordoned=True)
        self.world.store(fact(ExecutorSettingsChanged(at_ms=self.world.now_ms, settings=settings)))

    def lease(self, job: str, on: str = "n1") -> None:
        """Lease a job."""
        self.world.lease(self.ids[job], on)

    def start(self, job: str, on: str = "n1") -> None:
        """Let a job run, leasing it first where it waits."""
        self.world.start(self.ids[job], on)

    def give_back(self, job: str, *, attempted: bool = True) -> None:
        """Let the executor return a lease."""
        failure = Failure(reason="no room", kind="lease_returned")
        self.report(job, RunReturned, failure=failure, attempted=attempted)

    def fail(self, job: str, category: str = "mem", subcategory: str = "oom") -> None:
        """Let a job's run fail."""
        self.report(job, RunFailed, failure=Failure(reason="it broke", category=category, subcategory=subcategory))

    def succeed(self, job: str) -> None:
        """Let a job's run succeed."""
        self.report(job, RunSucceeded)

    def end(self, job: str) -> None:
        """Let a job start, succeed and be gone from its node."""
        run_id = self.latest_run(job)
        self.report(job, RunStarted)
        self.succeed(job)
        self.world.store(fact(RunsReleased(at_ms=self.world.now_ms, run_ids=(run_id,))))

    def release(self, job: str) -> None:
        """Let the executor release what ended runs of a job held."""
        ended = tuple(run.run_id for run in self.world.ledger.runs_of_executor("east") if run.job_id == self.ids[job])
        self.world.store(fact(RunsReleased(at_ms=self.world.now_ms, run_ids=ended)))

    def report(self, job: str, kind: type, **values: Any) -> None:
        """Let the executor report the end of a job's latest run."""
        run_id = self.latest_run(job)
        event = kind(at_ms=self.world.now_ms, job_id=self.ids[job], run_id=run_id, **values)
        leader = self.driver.leader
        reports = Reports(self.world.policy, leader.can_run(self.world.ledger))
        accepted = reports.accept(self.world.ledger, "east", (JobSetEvents("q", "s", (event,)),), self.world.now_ms)
        self.world.store(*accepted.sequences)

    def late_return(self, job: str) -> None:
        """Let facts about a job's first run arrive once more, as from a replay."""
        run_id = f"run-{self.ids[job]}-0"
        failure = Failure(reason="no room", kind="lease_returned")
        late = (
            RunReturned(at_ms=START_MS, job_id=self.ids[job], run_id=run_id, failure=failure),
            JobRequeued(at_ms=START_MS, job_id=self.ids[job]),
        )
        self.world.store(JobSetEvents("q", "s", late))

    def latest_run(self, job: str) -> str:
        """The id of the latest run, also when its job has ended."""
        record = self.world.ledger.job(self.ids[job])
        if record is not None and record.run_id:
            return record.run_id
        leased = [e for e in self.driver.events(object) if type(e).__name__ == "RunLeased"]
        return str([e.run_id for e in leased if e.job_id == self.ids[job]][-1])  # type: ignore[attr-defined] # a RunLeased

    # -- what the leader does

    def lead(self) -> None:
        """Let the leader do all that is due."""
        self.driver.run()

    def decide(self) -> None:
        """Decide a round, and keep what it decided for later."""
        order = self.driver.step().round
        assert order is not None
        self.held = (order, schedule(order.snapshot, order.seed))

    def publish(self) -> None:
        """Publish what was decided, by what has become of the jobs meanwhile."""
        assert self.held is not None
        outcome = self.driver.leader.finish(self.world.ledger, *self.held, self.world.now_ms)
        self.driver.store(outcome.sequences, 1)

    def depose(self) -> None:
        """Let another replica lead."""
        self.driver.leader = Leader(self.world.policy, Cadence(round_delay_ms=0), "other", START_MS)
        claim = self.driver.step()
        self.world.store(*claim.sequences, epoch=claim.epoch)

    def publish_as_deposed(self) -> None:
        """Publish with the epoch of the leader that was."""
        assert self.held is not None
        old = Leader(self.world.policy, Cadence(), "me", START_MS)
        outcome = old.finish(self.world.ledger, *self.held, self.world.now_ms)
        self.driver.store(outcome.sequences, 1)

    def wait(self, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass."""
        self.world.now_ms += round((minutes * 60 + seconds) * 1000)


def _facts(_play: Play, entries: list[Entry], expected: list[str]) -> None:
    """The kinds of all facts, runs of equal ones written `Kind x3`."""
    kinds = [type(event).__name__ for entry in entries for event in entry.events]
    wanted: list[str] = []
    for text in expected:
        kind, _, times = text.partition(" x")
        wanted += [kind] * int(times or 1)
    assert kinds == wanted, kinds


def _states(play: Play, _entries: list[Entry], expected: dict[str, str]) -> None:
    states = {job: play.world.state(play.ids[job]) for job in expected}
    assert states == expected, states


def _versions(play: Play, _entries: list[Entry], expected: dict[str, int]) -> None:
    """Twice the leases of a job, less one while it does not wait: the reference's queuedVersion."""
    for job, version in expected.items():
        record = play.world.ledger.job(play.ids[job])
        runs = record.runs_leased if record is not None else 0
        waits = record is not None and record.state.name == "QUEUED"
        assert 2 * runs - (0 if waits else 1) == version, job


def _says(play: Play, entries: list[Entry], pattern: str) -> None:
    """What is said of the last job that ended or was refused, matched by a pattern."""
    del play
    told = [event for entry in entries for event in entry.events]
    ends = [event for event in told if isinstance(event, JobFailed | JobRejected | JobPreempted)]
    last = ends[-1]
    text = last.reason if isinstance(last, JobRejected) else last.failure.reason
    assert re.search(pattern, text), text


def _classified(_play: Play, entries: list[Entry], expected: str) -> None:
    """Category and subcategory of the last job that failed."""
    ends = [event for entry in entries for event in entry.events if isinstance(event, JobFailed)]
    assert f"{ends[-1].failure.category}/{ends[-1].failure.subcategory}" == expected


def _memory(play: Play, _entries: list[Entry], expected: dict[str, str]) -> None:
    """What rounds reserve for a job now."""
    jobs = play.world.ledger._jobs
    for job, amount in expected.items():
        assert dict(jobs.shapes[jobs.shape[jobs.ids.find(play.ids[job])]].requests)["memory"] == amount


def _attempts(play: Play, _entries: list[Entry], expected: dict[str, int]) -> None:
    for job, count in expected.items():
        record = play.world.ledger.job(play.ids[job])
        assert record is not None
        assert record.runs_attempted == count


def _avoids(play: Play, _entries: list[Entry], expected: dict[str, list[str]]) -> None:
    for job, nodes in expected.items():
        record = play.world.ledger.job(play.ids[job])
        assert record is not None
        assert list(record.avoid_nodes) == nodes


def _waits_for(play: Play, _entries: list[Entry], expected: dict[str, str]) -> None:
    """Why a job is not admitted to rounds, matched by a pattern."""
    for job, pattern in expected.items():
        record = play.world.ledger.job(play.ids[job])
        assert record is not None
        assert re.search(pattern, play.driver.leader.waits_for(record)), play.driver.leader.waits_for(record)


def _pools(play: Play, _entries: list[Entry], expected: dict[str, list[str]]) -> None:
    """The pools that a job may run in, by the submit check."""
    eligibility = play.driver.leader.eligibility
    eligibility.refresh(play.world.ledger)
    for job, pools in expected.items():
        record = play.world.ledger.job(play.ids[job])
        assert record is not None
        verdict = eligibility.judge(play.world.ledger.queues["q"], record.shape, record.pools)
        assert list(verdict.pools) == pools


def _penalty(play: Play, _entries: list[Entry], expected: str) -> None:
    """What ended too soon still counts for the queue, in cpu."""
    kinds = play.world.policy.kinds()
    amounts = play.world.ledger.penalties("default", play.world.now_ms).get("q", (0,) * len(kinds))
    assert kinds.quantities(amounts).get("cpu", "0") == expected


CHECKS: Final[dict[str, Callable[[Play, list[Entry], Any], None]]] = {
    "facts": _facts,
    "states": _states,
    "versions": _versions,
    "says": _says,
    "classified": _classified,
    "memory_of": _memory,
    "attempts": _attempts,
    "avoids": _avoids,
    "waits_for": _waits_for,
    "pools": _pools,
    "penalty": _penalty,
}
