"""Retries by policy: decisions, budgets, changes of the job, gangs, preempted jobs (spec rows N1 to N11)."""

from typing import Any

import msgspec
import pytest

from armada.control.cycle import Leader
from armada.control.leasing import lease_of
from armada.control.reports import Reports
from armada.control.retry_rules import Answer, matching_rule, ruling
from armada.control.rounds.cadence import Cadence
from armada.model.events import (
    Event,
    Failure,
    JobFailed,
    JobRequeued,
    JobSetEvents,
    PodIdentity,
    RetryPolicySet,
    RunFailed,
    RunPreempted,
    RunReturned,
    RunStarted,
)
from armada.model.growth import MemoryGrowth
from armada.model.jobs import JobTemplate
from armada.model.policy import RetryEngine, RetryMutation, RetryPolicy, RetryRule, SchedulingPolicy
from armada.model.submission import SubmittedItem
from tests.unit.control.driving import Driver
from tests.unit.control.world import START_MS, World, fact, gang_item, item, kinds, node, pod

OOM = RetryRule(retries=True, on_category="mem", on_subcategory="oom", mutation=RetryMutation(memory_factor=1.5))
LABEL = "kubernetes.io/hostname"


def settings(**engine: Any) -> SchedulingPolicy:
    return SchedulingPolicy(retries=RetryEngine(enabled=True, **engine), indexed_node_labels=(LABEL,))


def rules(*rows: RetryRule, limit: int = 3, by_default: bool = False, name: str = "grow") -> RetryPolicy:
    return RetryPolicy(name=name, retry_limit=limit, retries_by_default=by_default, rules=rows)


class Runs:
    """A world in which runs end badly; queue `qr` names the policy `grow`, if there is one."""

    def __init__(self, policy: RetryPolicy | None = None, scheduling: SchedulingPolicy | None = None) -> None:
        self.world = World(scheduling or settings())
        self.world.queue("qr", retry_policies=("grow",))
        if policy is not None:
            self.world.store(fact(RetryPolicySet(at_ms=START_MS, policy=policy)))
        self.world.report_nodes(*(node(f"n{number}") for number in range(1, 6)))
        leader = Leader(self.world.policy, Cadence(), "me", START_MS)
        self.reports = Reports(self.world.policy, leader.can_run(self.world.ledger))

    def submit(self, *items: SubmittedItem) -> tuple[str, ...]:
        return self.world.submit(*(items or (item(pod(memory="1000Mi")),)), queue="qr")

    def end(self, event: Event) -> list[Event]:
        """Report the end of a run; return all facts that enter the log."""
        sequence = JobSetEvents("qr", "s", (event,))
        accepted = self.reports.accept(self.world.ledger, "east", (sequence,), self.world.now_ms)
        self.world.store(*accepted.sequences)
        self.world.ledger.validate()
        return [event for part in accepted.sequences for event in part.events]

    def fail(self, job_id: str, category: str = "mem", subcategory: str = "oom", where: str = "n1") -> list[Event]:
        """Run a job and let its run fail; return all facts that enter the log."""
        run_id = self.world.start(job_id, where)
        pod_seen = PodIdentity(cluster="east", name="pod", node_name=where)
        failure = Failure(reason="it broke", category=category, subcategory=subcategory, pod=pod_seen)
        return self.end(RunFailed(at_ms=START_MS, job_id=job_id, run_id=run_id, failure=failure))

    def give_back(self, job_id: str, where: str = "n1", *, attempted: bool = True) -> list[Event]:
        run_id = self.world.lease(job_id, where)
        failure = Failure(reason="no room", kind="lease_returned")
        return self.end(RunReturned(at_ms=START_MS, job_id=job_id, run_id=run_id, failure=failure, attempted=attempted))

    def memory(self, job_id: str) -> str:
        """What is reserved for the job in rounds now."""
        jobs = self.world.ledger._jobs
        return dict(jobs.shapes[jobs.shape[jobs.ids.find(job_id)]].requests)["memory"]


def told(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def refusal(events: list[Event]) -> str:
    """Why a job is not tried again, checked to be a policy's refusal with the last failure inside."""
    failed = events[-1]
    assert isinstance(failed, JobFailed)
    assert failed.failure.kind == "max_runs_exceeded"
    assert (failed.failure.pod, failed.failure.containers) == (None, ())
    assert failed.failure.reason.endswith("The last run ended with:\nit broke")
    return failed.failure.reason.partition("\n")[0]


# -- the order of decisions --------------------------------------------------------------------------------------------

FAILURE = Failure(reason="r", category="mem", subcategory="oom")
REFUSES = RetryRule(retries=False, on_category="mem")


@pytest.mark.parametrize(
    ("policy", "failure", "used", "most", "answer"),
    [
        (rules(OOM), None, 9, 0, Answer.NO_ERROR),
        (rules(OOM), FAILURE, 0, 0, Answer.GLOBAL_LIMIT),
        (rules(REFUSES), FAILURE, 5, 5, Answer.GLOBAL_LIMIT),
        (rules(REFUSES, OOM), FAILURE, 4, 5, Answer.RULE),
        (rules(OOM, REFUSES), FAILURE, 0, 5, Answer.RETRY),
        (rules(), FAILURE, 3, 5, Answer.DEFAULT),
        (rules(by_default=True), FAILURE, 3, 5, Answer.POLICY_LIMIT),
        (rules(by_default=True), FAILURE, 2, 5, Answer.RETRY),
        (rules(OOM), FAILURE, 3, 5, Answer.POLICY_LIMIT),
        (rules(OOM, limit=0), FAILURE, 0, 5, Answer.POLICY_LIMIT),
    ],
)
def test_the_order_of_decisions(
    policy: RetryPolicy, failure: Failure | None, used: int, most: int, answer: Answer
) -> None:
    decided = ruling(RetryEngine(enabled=True, global_max_retries=most), policy, failure, used)
    assert decided.answer == answer
    assert decided.reason
    assert (decided.mutation is not None) == (answer is Answer.RETRY and bool(policy.rules))


@pytest.mark.parametrize(
    ("category", "subcategory", "matches"),
    [("mem", "oom", True), ("mem", "", False), ("Mem", "oom", False), ("", "oom", False), ("mem", "OOM", False)],
)
def test_rules_match_exactly(category: str, subcategory: str, *, matches: bool) -> None:
    failure = Failure(reason="r", category=category, subcategory=subcategory)
    assert (matching_rule(rules(OOM), failure) is OOM) == matches
    assert matching_rule(rules(RetryRule(retries=True)), failure) is not None


# -- rows of the specification -----------------------------------------------------------------------------------------


def test_n1_returned_leases_are_tried_again_three_times() -> None:
    runs = Runs()
    (job_id,) = runs.submit()
    ends = [told(runs.give_back(job_id, f"n{number}"))[-1] for number in range(1, 5)]
    assert ends == ["JobRequeued"] * 3 + ["JobFailed"]


def test_n2_fail_fast_fails_on_the_first() -> None:
    runs = Runs(rules(OOM))
    (job_id,) = runs.submit(item(annotations={"armadaproject.io/failFast": "true"}))
    assert told(runs.give_back(job_id)) == ["RunReturned", "JobFailed"]


def test_n3_a_lease_that_reached_no_node_changes_nothing() -> None:
    runs = Runs(rules(OOM))
    (job_id,) = runs.submit()
    assert told(runs.give_back(job_id, attempted=False)) == ["RunReturned", "JobRequeued"]
    job = runs.world.ledger.job(job_id)
    assert job is not None
    assert (job.runs_attempted, job.avoid_nodes) == (0, ())


def test_n4_a_job_that_was_tried_on_its_only_node_fails() -> None:
    runs = Runs()
    (job_id,) = runs.submit(item(pod(nodeSelector={LABEL: "n2"})))
    failed = runs.give_back(job_id, "n2")[-1]
    assert isinstance(failed, JobFailed)
    assert "once on every node" in failed.failure.reason


def test_n5_memory_grows_until_the_policys_retries_are_used_up() -> None:
    runs = Runs(rules(OOM))
    (job_id,) = runs.submit()
    reserved = []
    for _ in range(3):
        requeued = runs.fail(job_id)[-1]
        assert isinstance(requeued, JobRequeued)
        assert (requeued.policy, requeued.avoid_nodes) == ("grow", ())
        assert requeued.failure is not None
        assert requeued.failure.reason == "it broke"
        assert requeued.failure.pod is not None
        reserved.append(runs.memory(job_id))
    assert reserved == ["1500Mi", "2250Mi", "3375Mi"]
    last = runs.fail(job_id)
    assert "3 of its 3 retries" in refusal(last)
    assert isinstance(last[-1], JobFailed)
    assert (last[-1].failure.category, last[-1].failure.subcategory) == ("mem", "oom")
    assert runs.world.state(job_id) == "failed"


def test_n6_the_bound_over_all_policies_comes_first() -> None:
    runs = Runs(rules(OOM, limit=9), settings(global_max_retries=2))
    (job_id,) = runs.submit()
    assert [told(runs.fail(job_id))[-1] for _ in range(2)] == ["JobRequeued"] * 2
    assert "2 of 2 retries that any job" in refusal(runs.fail(job_id))


def test_n7_no_retries_at_all() -> None:
    runs = Runs(rules(OOM, limit=9), settings(global_max_retries=0))
    (job_id,) = runs.submit()
    assert "0 of 0 retries" in refusal(runs.fail(job_id))


def test_n8_preempted_and_returned_runs_are_free() -> None:
    runs = Runs(rules(OOM, limit=1))
    (job_id,) = runs.submit()
    for _ in range(3):
        run_id = runs.world.start(job_id)
        ended = RunPreempted(at_ms=START_MS, job_id=job_id, run_id=run_id, kind="fairshare", reason="r")
        runs.world.store(JobSetEvents("qr", "s", (ended, JobRequeued(at_ms=START_MS, job_id=job_id))))
    runs.give_back(job_id, "n5")
    assert told(runs.fail(job_id)) == ["RunFailed", "JobRequeued"]
    assert "1 of its 1 retries" in refusal(runs.fail(job_id))


def test_n9_policies_leave_gangs_alone() -> None:
    runs = Runs(rules(OOM))
    members = runs.submit(*[gang_item("g", 2) for _ in range(2)])
    for job_id in members[1:]:
        runs.world.start(job_id, "n2")
    failed = runs.fail(members[0])[-1]
    assert isinstance(failed, JobFailed)
    assert failed.failure.kind == "pod"
    (single,) = runs.submit(gang_item("h", 1))
    assert told(runs.fail(single)) == ["RunFailed", "JobRequeued"]


def test_n10_a_job_that_grew_too_large_for_every_node_fails() -> None:
    runs = Runs(rules(OOM))
    (job_id,) = runs.submit(item(pod(memory="30Gi")))
    assert "fits no node any more" in refusal(runs.fail(job_id))


def test_n11_a_lost_lease_is_tried_again_unchanged() -> None:
    driver = Driver(settings())
    lost = RetryRule(
        retries=True, on_category="internal", on_subcategory="lease-expired", mutation=RetryMutation(1.5, "", True)
    )
    driver.world.store(fact(RetryPolicySet(at_ms=START_MS, policy=rules(lost, limit=1))))
    driver.world.queue("qr", retry_policies=("grow",))
    driver.nodes("n1")
    (job_id,) = driver.world.submit(item(), queue="qr")
    driver.run()
    driver.world.now_ms += 3_600_000
    assert driver.run() == ["RunLeaseExpired", "JobRequeued"]
    (requeued,) = driver.events(JobRequeued)
    assert isinstance(requeued, JobRequeued)
    assert (requeued.growth, requeued.avoid_nodes, requeued.policy) == (None, (), "grow")
    driver.heard("east")
    assert driver.run() == ["RunLeased"]
    driver.world.now_ms += 3_600_000
    assert driver.run() == ["RunLeaseExpired", "JobFailed"]
    (failed,) = driver.events(JobFailed)
    assert isinstance(failed, JobFailed)
    assert failed.failure.subcategory == "lease-expired"
    assert driver.world.state(job_id) == "failed"


# -- who is asked ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "scheduling"),
    [
        (None, settings()),
        (rules(OOM, name="other"), settings(default_policy="other")),
        (rules(OOM), SchedulingPolicy()),
    ],
    ids=["unknown policy", "the queue's unknown one before the default", "engine off"],
)
def test_without_a_policy_a_failed_job_has_failed(policy: RetryPolicy | None, scheduling: SchedulingPolicy) -> None:
    runs = Runs(policy, scheduling)
    (job_id,) = runs.submit()
    failed = runs.fail(job_id)[-1]
    assert isinstance(failed, JobFailed)
    assert (failed.failure.kind, failed.failure.reason) == ("pod", "it broke")


def test_a_queue_without_a_policy_follows_the_default() -> None:
    runs = Runs(rules(OOM, name="all"), settings(default_policy="all"))
    runs.world.queue("qr")
    (job_id,) = runs.submit()
    assert told(runs.fail(job_id)) == ["RunFailed", "JobRequeued"]


def test_a_retry_stays_off_every_node_on_which_the_job_failed() -> None:
    plain = RetryRule(retries=True, on_category="other")
    away = RetryRule(retries=True, on_category="node", mutation=RetryMutation(avoid_same_node=True))
    runs = Runs(rules(plain, away, limit=5))
    (job_id,) = runs.submit()
    runs.fail(job_id, "other", where="n1")
    requeued = runs.fail(job_id, "node", where="n2")[-1]
    assert isinstance(requeued, JobRequeued)
    assert requeued.avoid_nodes == ("n1", "n2")
    job = runs.world.ledger.job(job_id)
    assert job is not None
    assert job.avoid_nodes == ("n1", "n2")


def test_a_lease_carries_the_memory_that_grew() -> None:
    runs = Runs(rules(OOM))
    (job_id,) = runs.submit()
    runs.fail(job_id)
    run = runs.world.ledger.run(runs.world.lease(job_id))
    job = runs.world.ledger.job(job_id)
    assert run is not None
    assert job is not None
    template = JobTemplate(shape=job.shape, namespace="ns", pod_spec=msgspec.json.encode(pod(memory="1000Mi")))
    lease = lease_of(run, job, template, runs.world.policy)
    (container,) = msgspec.json.decode(lease.template.pod_spec)["containers"]
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1500Mi"}
    assert dict(lease.template.shape.requests)["memory"] == "1500Mi"
    assert msgspec.json.decode(template.pod_spec) == pod(memory="1000Mi")


def test_returned_leases_keep_what_grew() -> None:
    runs = Runs(rules(OOM))
    (job_id,) = runs.submit()
    runs.fail(job_id)
    runs.give_back(job_id, "n3")
    job = runs.world.ledger.job(job_id)
    assert job is not None
    assert (job.growth, job.avoid_nodes) == (MemoryGrowth(factor=1.5), ("n3",))
    assert runs.memory(job_id) == "1500Mi"


# -- gangs as a whole --------------------------------------------------------------------------------------------------


def gang(runs: Runs) -> tuple[str, ...]:
    members = runs.submit(*[gang_item("g", 3) for _ in range(3)])
    for job_id in members[1:]:
        runs.world.start(job_id, "n2")
    return members


def test_a_gang_is_tried_again_as_a_whole_where_that_is_set() -> None:
    runs = Runs(rules(OOM, limit=1), settings(retries_gangs=True))
    members = gang(runs)
    events = runs.fail(members[0])
    assert told(events) == ["RunFailed", "JobRequeued", *["RunPreempted", "JobRequeued"] * 2]
    assert [runs.world.state(job_id) for job_id in members] == ["queued"] * 3
    stopped = events[2]
    assert isinstance(stopped, RunPreempted)
    assert (stopped.kind, members[0] in stopped.reason) == ("gang", True)
    for job_id in members[::2]:
        runs.world.start(job_id, "n2")
    assert "1 of its 1 retries" in refusal(runs.fail(members[1]))


def test_of_two_members_that_fail_at_once_the_second_changes_nothing() -> None:
    runs = Runs(rules(OOM), settings(retries_gangs=True))
    members = gang(runs)
    run_ids = [runs.world.start(members[0], "n1"), *(f"run-{job_id}-0" for job_id in members[1:])]
    ends = tuple(
        RunFailed(at_ms=START_MS, job_id=job_id, run_id=run_id, failure=FAILURE)
        for job_id, run_id in zip(members, run_ids, strict=True)
    )
    accepted = runs.reports.accept(runs.world.ledger, "east", (JobSetEvents("qr", "s", ends),), START_MS)
    assert kinds(accepted.sequences).count("RunFailed") == 1
    assert len(accepted.dropped) == 2


def test_a_gang_of_which_one_has_ended_is_not_tried_again() -> None:
    runs = Runs(rules(OOM), settings(retries_gangs=True))
    members = gang(runs)
    runs.world.cancel(members[2])
    failed = runs.fail(members[0])[-1]
    assert isinstance(failed, JobFailed)
    assert failed.failure.kind == "pod"


def test_a_lost_gang_waits_again_once() -> None:
    driver = Driver(settings(retries_gangs=True))
    driver.world.store(fact(RetryPolicySet(at_ms=START_MS, policy=rules(by_default=True))))
    driver.world.queue("qr", retry_policies=("grow",))
    driver.nodes("n1")
    driver.world.submit(*[gang_item("g", 2) for _ in range(2)], queue="qr")
    driver.run()
    driver.world.now_ms += 3_600_000
    assert driver.run() == ["RunLeaseExpired", "JobRequeued", "RunPreempted", "JobRequeued"]


# -- preempted jobs that wait again ------------------------------------------------------------------------------------

PREEMPTIBLE = pod(priorityClassName="armada-preemptible")
LABELLED = {"armadaproject.io/requeuePreempted": "true"}


def preempting(labels: dict[str, str], *victims: SubmittedItem) -> tuple[Driver, tuple[str, ...]]:
    """Let an urgent job take the node that the victims run on."""
    driver = Driver()
    driver.world.queue("qv", labels=labels)
    driver.nodes("n1", cpu="4")
    ids = driver.world.submit(*victims, queue="qv")
    driver.run()
    for job_id in ids:
        job = driver.world.ledger.job(job_id)
        assert job is not None
        started = RunStarted(at_ms=START_MS, job_id=job_id, run_id=job.run_id)
        driver.store((JobSetEvents("qv", "s", (started,)),))
    driver.world.submit(item(pod(cpu="4", priorityClassName="armada-urgent")))
    driver.run()
    driver.world.ledger.validate()
    return driver, ids


@pytest.mark.parametrize(
    ("labels", "annotations", "state"),
    [
        ({}, {}, "preempted"),
        (LABELLED, {}, "queued"),
        ({}, LABELLED, "queued"),
        (LABELLED, {"armadaproject.io/requeuePreempted": "false"}, "preempted"),
        ({"armadaproject.io/requeuePreempted": "yes"}, {"armadaproject.io/requeuePreempted": "1"}, "preempted"),
    ],
)
def test_a_preempted_job_waits_again_where_job_or_queue_say_so(
    labels: dict[str, str], annotations: dict[str, str], state: str
) -> None:
    driver, (job_id,) = preempting(labels, item(PREEMPTIBLE, annotations=annotations))
    assert driver.world.state(job_id) == state
    if state == "queued":
        assert driver.world.kinds_of(job_id)[-2:] == ["RunPreempted", "JobRequeued"]
        (requeued,) = driver.events(JobRequeued)
        assert isinstance(requeued, JobRequeued)
        assert requeued.failure is not None
        assert requeued.failure.kind == "preempted"


def test_a_preempted_gang_waits_again_only_as_a_whole() -> None:
    more = {"requeuePreempted": "true"}
    driver, ids = preempting({}, *[gang_item("g", 2, PREEMPTIBLE, **more) for _ in range(2)])
    assert [driver.world.state(job_id) for job_id in ids] == ["queued", "queued"]
    driver, ids = preempting(
        {}, gang_item("g", 2, PREEMPTIBLE, **more), gang_item("g", 2, PREEMPTIBLE, requeuePreempted="false")
    )
    assert [driver.world.state(job_id) for job_id in ids] == ["preempted", "preempted"]


def test_a_returned_lease_takes_its_gang_along_where_gangs_are_tried_again() -> None:
    runs = Runs(None, settings(retries_gangs=True))
    members = gang(runs)
    events = runs.give_back(members[0])
    assert told(events) == ["RunReturned", "JobRequeued", *["RunPreempted", "JobRequeued"] * 2]
    assert [runs.world.state(job_id) for job_id in members] == ["queued"] * 3
    runs = Runs()
    assert told(runs.give_back(gang(runs)[0])) == ["RunReturned", "JobFailed"]
