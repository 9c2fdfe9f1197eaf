"""The ledger as a machine that is told anything at all: it must agree with `plain_ledger`, and with itself."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from armada.model import events as facts
from armada.model.events import Entry, Event
from armada.model.fleet import ExecutorSettings, Node, Queue
from armada.model.growth import MemoryGrowth
from armada.model.jobs import GangSpec, JobShape, JobTemplate, NewJob
from armada.model.lifecycle import RUN_TRANSITIONS, JobState, RunState
from armada.model.policy import PoolPolicy, RetryPolicy, SchedulingPolicy
from armada.state.ledger import Ledger
from armada.state.pools import Circumstances
from tests.property.plain_ledger import PlainLedger

POLICY = SchedulingPolicy(pools=(PoolPolicy(name="default", short_job_penalty_ms=15), PoolPolicy(name="other")))
PLACES = [("qa", "s"), ("qa", "t"), ("qb", "s")]
NODES = ["n1", "n2", "n3"]
EXECUTORS = ["x1", "x2"]
SHAPES = [JobShape(requests=(("cpu", cpu),), priority_class=name) for cpu in "12" for name in ("armada-default", "odd")]
FAILURE = facts.Failure(reason="r")

times = st.integers(0, 100)
places = st.sampled_from(PLACES)
job_ids = st.sampled_from([f"01h0000000000000000000000{index}" for index in range(6)] + ["short", "ü" * 13])
run_ids = st.sampled_from([f"r{index}" for index in range(12)])
templates = st.builds(
    JobTemplate,
    shape=st.sampled_from(SHAPES),
    pod_spec=st.just(b"{}"),
    namespace=st.sampled_from(["", "ns"]),
    gang=st.sampled_from([None, None, GangSpec("g", 2), GangSpec("g", 3), GangSpec("g", 2, "zone"), GangSpec("h", 2)]),
    pools=st.sampled_from([None, ("default",), ("other",)]),
    external_job_uri=st.sampled_from(["", "uri"]),
)
new_jobs = st.builds(NewJob, job_ids, st.integers(-3, 3), st.sampled_from(["", "", "c1", "c2"]))
submissions = st.builds(
    facts.JobsSubmitted,
    at_ms=times,
    template=templates,
    jobs=st.lists(new_jobs, min_size=1, max_size=4).map(tuple),
    owner=st.sampled_from(["ann", "bob"]),
)
fleet_facts = st.one_of(
    st.builds(facts.QueueCreated, at_ms=times, queue=st.builds(Queue, name=st.sampled_from(["qa", "qb"]))),
    st.builds(facts.QueueUpdated, at_ms=times, queue=st.builds(Queue, name=st.sampled_from(["qa", "qb"]))),
    st.builds(facts.QueueCordoned, at_ms=times, name=st.sampled_from(["qa", "qb"]), cordoned=st.booleans()),
    st.builds(facts.QueueDeleted, at_ms=times, name=st.sampled_from(["qa", "qb"])),
    st.builds(
        facts.RetryPolicySet,
        at_ms=times,
        policy=st.builds(RetryPolicy, name=st.sampled_from(["p", "q"]), retry_limit=st.integers(0, 3)),
    ),
    st.builds(facts.RetryPolicyDeleted, at_ms=times, name=st.sampled_from(["p", "q"])),
    st.builds(
        facts.ExecutorReported,
        at_ms=times,
        executor_id=st.sampled_from(EXECUTORS),
        pool=st.just("default"),
        nodes=st.lists(
            st.sampled_from(NODES).map(lambda name: Node(node_id=name, name=name, executor_id="", pool="default")),
            max_size=2,
        ).map(tuple),
        gone=st.lists(st.sampled_from(NODES), max_size=1).map(tuple),
    ),
    st.builds(
        facts.ExecutorSettingsChanged,
        at_ms=times,
        settings=st.builds(ExecutorSettings, executor_id=st.sampled_from(EXECUTORS), cordoned=st.booleans()),
    ),
    st.builds(facts.ExecutorDeleted, at_ms=times, executor_id=st.sampled_from(EXECUTORS)),
)
GROWTHS = st.sampled_from([None, MemoryGrowth(factor=1.5), MemoryGrowth(added="1Gi")])
JOB_KINDS: list[tuple[type[Any], dict[str, Any]]] = [
    (facts.JobReprioritisationRequested, {"priority": st.integers(-3, 3)}),
    (facts.JobReprioritised, {"priority": st.integers(-3, 3)}),
    (facts.JobCancelRequested, {}),
    (facts.JobCancelled, {}),
    (facts.JobPreemptRequested, {}),
    (facts.JobRejected, {"reason": st.just("r")}),
    (facts.JobSucceeded, {}),
    (facts.JobFailed, {"failure": st.just(FAILURE)}),
    (facts.JobPreempted, {"failure": st.just(FAILURE)}),
    (facts.JobRequeued, {"avoid_nodes": st.lists(st.sampled_from(NODES), max_size=2).map(tuple), "growth": GROWTHS}),
]
RUN_KINDS: list[tuple[type[Any], dict[str, Any]]] = [
    (facts.RunPending, {}),
    (facts.RunStarted, {}),
    (facts.RunAddressed, {"addresses": st.just({80: "a:80"})}),
    (facts.RunUsageReported, {"peak": st.just({"cpu": "1"})}),
    (facts.RunSucceeded, {}),
    (facts.RunFailed, {"failure": st.just(FAILURE)}),
    (facts.RunReturned, {"failure": st.just(FAILURE), "attempted": st.booleans()}),
    (facts.RunLeaseExpired, {}),
    (facts.RunPreempted, {"kind": st.just("fairshare"), "reason": st.just("r")}),
]


class LedgerMachine(RuleBasedStateMachine):
    """Entries of random facts, many of them impossible; repeats; leaders that come, go and speak too late."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.ledger = Ledger(POLICY)
        self.plain = PlainLedger()
        self.checkpoints: list[tuple[int, bytes]] = []

    def tell(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.ledger.apply(entry)
        self.plain.apply(entry)

    def fresh(self, events: tuple[Event, ...], place: tuple[str, str], epoch: int = 0) -> Entry:
        position = len(self.entries) + 1
        return Entry(
            position=position,
            batch_id=f"b{position}",
            time_ms=position,
            epoch=epoch,
            queue=place[0],
            job_set=place[1],
            events=events,
        )

    def known(self, draw: Any, job_id: str) -> tuple[tuple[str, str], str]:
        """A job's place and current run, or anything."""
        job = self.plain.jobs.get(job_id)
        if job is None or draw(st.integers(0, 9)) == 0:
            return draw(places), draw(run_ids)
        return job.place, job.runs[-1] if job.runs else draw(run_ids)

    @rule(event=submissions, place=places)
    def submit(self, event: facts.JobsSubmitted, place: tuple[str, str]) -> None:
        self.tell(self.fresh((event,), place))

    @initialize()
    def begin(self) -> None:
        """Start where things can happen: nodes, a queue, a gang and some jobs."""
        nodes = tuple(Node(node_id=name, name=name, executor_id="x1", pool="default") for name in NODES[:2])
        report = facts.ExecutorReported(at_ms=1, executor_id="x1", pool="default", nodes=nodes)
        self.tell(self.fresh((report, facts.QueueCreated(at_ms=1, queue=Queue(name="qa"))), ("", "")))
        plain = JobTemplate(shape=SHAPES[0], pod_spec=b"{}", namespace="")
        gang = JobTemplate(shape=SHAPES[0], pod_spec=b"{}", namespace="", gang=GangSpec("g", 2))
        for template, first in ((plain, 0), (gang, 2)):
            jobs = tuple(NewJob(f"01h0000000000000000000000{first + index}", 0) for index in range(2))
            self.tell(self.fresh((facts.JobsSubmitted(at_ms=1, template=template, jobs=jobs),), PLACES[0]))

    @rule(data=st.data(), steps=st.integers(1, 8), at_ms=times)
    def advance(self, data: st.DataObject, steps: int, at_ms: int) -> None:
        """Known jobs go on as jobs do: leased, run, ended, tried again."""
        for _ in range(steps):
            if self.plain.jobs:
                self.advance_one(data, at_ms)

    def advance_one(self, data: st.DataObject, at_ms: int) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.plain.jobs)))
        job = self.plain.jobs[job_id]
        event: Any
        if job.state == JobState.QUEUED:
            number = len(self.entries)
            node = data.draw(st.sampled_from(NODES))
            event = facts.RunLeased(
                at_ms=at_ms,
                job_id=job_id,
                run_id=f"r{number}",
                executor_id="x1",
                node_id=node,
                node_name=node,
                pool="default",
                priority=1,
            )
        elif job.state.is_terminal:
            event = facts.RunsReleased(at_ms=at_ms, run_ids=tuple(data.draw(st.permutations(job.runs))[:1]))
        else:
            run_id, run = job.runs[-1], self.plain.runs[job.runs[-1]]
            if not run.state.is_terminal:
                kinds: list[Any] = [facts.RunPending, facts.RunStarted, facts.RunSucceeded, facts.RunLeaseExpired]
                fitting = [kind for kind in kinds if run.state in RUN_TRANSITIONS[kind.__name__][0]]
                kind = data.draw(st.sampled_from([*fitting, facts.JobPreemptRequested]))
                names = {"run_id": run_id} if kind in kinds else {}
                event = kind(at_ms=at_ms, job_id=job_id, **names)
            elif run.state == RunState.SUCCEEDED:
                event = facts.JobSucceeded(at_ms=at_ms, job_id=job_id)
            else:
                avoid = data.draw(st.lists(st.sampled_from(NODES), max_size=1))
                growth = data.draw(GROWTHS)
                event = facts.JobRequeued(at_ms=at_ms, job_id=job_id, avoid_nodes=tuple(avoid), growth=growth)
        self.tell(self.fresh((event,), ("", "") if isinstance(event, facts.RunsReleased) else job.place))

    @rule(data=st.data(), job_id=job_ids, at_ms=times)
    def tell_of_a_job(self, data: st.DataObject, job_id: str, at_ms: int) -> None:
        place, _ = self.known(data.draw, job_id)
        kind, fields = data.draw(st.sampled_from(JOB_KINDS))
        event = data.draw(st.builds(kind, at_ms=st.just(at_ms), job_id=st.just(job_id), **fields))
        self.tell(self.fresh((event,), place))

    @rule(data=st.data(), job_id=job_ids, at_ms=times)
    def tell_of_a_run(self, data: st.DataObject, job_id: str, at_ms: int) -> None:
        place, run_id = self.known(data.draw, job_id)
        kind, fields = data.draw(st.sampled_from(RUN_KINDS))
        common = {"at_ms": st.just(at_ms), "job_id": st.just(job_id), "run_id": st.just(run_id)}
        events: tuple[Event, ...] = (data.draw(st.builds(kind, **common, **fields)),)
        ends: Any = data.draw(st.sampled_from([None, facts.JobSucceeded, facts.JobRequeued]))
        if ends is not None:
            events += (ends(at_ms=at_ms, job_id=job_id),)
        self.tell(self.fresh(events, place))

    @rule(data=st.data(), job_id=job_ids, at_ms=times, node=st.sampled_from(NODES), run_id=run_ids)
    def lease(self, data: st.DataObject, job_id: str, at_ms: int, node: str, run_id: str) -> None:
        place, _ = self.known(data.draw, job_id)
        event = facts.RunLeased(
            at_ms=at_ms,
            job_id=job_id,
            run_id=run_id,
            executor_id=data.draw(st.sampled_from(EXECUTORS)),
            node_id=node,
            node_name=node,
            pool=data.draw(st.sampled_from(["default", "other"])),
            priority=1000,
            overlay=data.draw(st.sampled_from([{}, {"a": "b"}])),
        )
        epoch = data.draw(st.sampled_from([0, self.plain.epoch, max(0, self.plain.epoch - 1)]))
        self.tell(self.fresh((event,), place, epoch))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        known = st.sampled_from([*sorted(self.plain.runs), "r0"])
        run_ids = data.draw(st.lists(known, min_size=1, max_size=2, unique=True))
        self.tell(self.fresh((facts.RunsReleased(at_ms=1, run_ids=tuple(run_ids)),), ("", "")))

    @rule(event=fleet_facts)
    def tell_of_the_fleet(self, event: Event) -> None:
        self.tell(self.fresh((event,), ("", "")))

    @rule(epoch=st.integers(0, 3), claimed=st.integers(1, 3))
    def claim(self, epoch: int, claimed: int) -> None:
        claim = facts.LeadershipClaimed(at_ms=1, epoch=claimed, holder=f"r{claimed}")
        self.tell(self.fresh((claim,), ("", ""), epoch))

    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """An old entry comes again, under a new position or at its old one."""
        if not self.entries:
            return
        old = data.draw(st.sampled_from(self.entries))
        position = data.draw(st.sampled_from([old.position, len(self.entries) + 1]))
        before = self.ledger.digest()
        again = Entry(**{name: getattr(old, name) for name in Entry.__struct_fields__} | {"position": position})
        if position == old.position:
            self.ledger.apply(again)
        else:
            self.tell(again)
        assert self.ledger.digest() == before

    @rule()
    def restart(self) -> None:
        """Go on from a checkpoint of now."""
        payload = self.ledger.to_bytes()
        self.checkpoints.append((len(self.entries), payload))
        restored = Ledger.from_bytes(payload, POLICY)
        assert restored.digest() == self.ledger.digest()
        assert restored.to_bytes() == payload
        self.ledger = restored

    @rule(ahead_ms=st.integers(0, 20))
    def snapshot(self, ahead_ms: int) -> None:
        """Reading may tidy orders up, and may change nothing that can be seen."""
        before = self.ledger.digest()
        self.ledger.penalties("default", len(self.entries) + ahead_ms)
        self.ledger.pool_snapshot("default", Circumstances(executors=frozenset(EXECUTORS)))
        assert self.ledger.digest() == before

    @invariant()
    def it_is_sound(self) -> None:
        self.ledger.validate()

    @invariant()
    def it_agrees_with_the_plain_one(self) -> None:
        plain, ledger = self.plain, self.ledger
        assert ledger.job_count == len(plain.jobs)
        assert ledger.run_count == len(plain.runs)
        assert ledger.retry_policies == plain.policies
        assert (ledger.epoch, ledger.position) == (plain.epoch, plain.position)
        for job_id, job in plain.jobs.items():
            record = ledger.job(job_id)
            assert record is not None
            assert (record.queue, record.job_set) == job.place
            assert (record.state, record.priority) == (job.state, job.priority)
            assert (record.shape, record.gang) == (job.template.shape, job.template.gang)
            assert (record.pools, record.namespace) == (job.template.pools, job.template.namespace)
            assert [record.runs_leased, record.runs_attempted, record.runs_failed] == job.counters
            assert (list(record.avoid_nodes), record.growth) == (job.avoids, job.growth)
            assert [record.cancel_requested, record.preempt_requested] == job.requests
            assert [run.run_id for run in ledger.runs_of_job(job_id)] == job.runs
            assert record.run_id == (job.runs[-1] if job.runs else "")
        for run_id, run in plain.runs.items():
            found = ledger.run(run_id)
            assert found is not None
            assert (found.state, found.ended_ms, found.overlay) == (run.state, run.ended_ms, run.lease.overlay)
        for queue, client_id in plain.clients:
            assert ledger.client_job(queue, client_id) == plain.clients[queue, client_id]

    @invariant()
    def it_names_the_same_voids(self) -> None:
        last = len(self.entries)
        if last:
            expected = {(event, row) for position, event, row in self.plain.voids if position == last}
            assert self.ledger.void_rows(last) == expected
            entry = self.entries[-1]
            assert (self.ledger.effective(entry) is entry) == (not expected)

    def teardown(self) -> None:
        """Replay from zero, every entry twice, and checkpoint plus tail: all come to the same."""
        digest, voids = self.ledger.digest(), [self.ledger.void_rows(entry.position) for entry in self.entries]
        starts = [(0, Ledger(POLICY).to_bytes()), *self.checkpoints[:2]]
        for start, payload in starts:
            ledger = Ledger.from_bytes(payload, POLICY)
            for entry in self.entries[start:]:
                ledger.apply(entry)
                ledger.apply(entry)
            assert ledger.digest() == digest
            assert [ledger.void_rows(entry.position) for entry in self.entries] == voids


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLedger = LedgerMachine.TestCase
