"""Queues, executors, nodes, and what the ledger says about runs on them."""

from armada.model import events as facts
from armada.model.fleet import ExecutorSettings, Queue
from armada.model.jobs import JobShape
from armada.model.lifecycle import JobState, RunState
from armada.model.policy import SchedulingPolicy
from armada.state.records import RunHead
from tests.unit.state.building import Story, leased, node, queue, ran, submitted, template

# -- queues, executors, nodes -----------------------------------------------------------------------------------------


def test_queues_come_change_and_go(story: Story) -> None:
    story.fact(facts.QueueCreated(at_ms=1, queue=Queue(name="qb", priority_factor=2.0)))
    story.fact(facts.QueueCordoned(at_ms=1, name="qb", cordoned=True))
    assert story.ledger.queues["qb"] == Queue(name="qb", priority_factor=2.0, cordoned=True)
    story.fact(facts.QueueUpdated(at_ms=1, queue=Queue(name="qb", priority_factor=3.0)))
    assert story.ledger.queues["qb"].priority_factor == 3.0
    assert list(story.ledger.counts()) == ["qa", "qb"]
    story.fact(facts.QueueDeleted(at_ms=1, name="qb"), facts.QueueDeleted(at_ms=1, name="qa"))
    assert dict(story.ledger.queues) == {}
    assert list(story.ledger.counts()) == ["qa"]
    story.ledger.validate()


def test_index_order_is_the_order_of_first_reports() -> None:
    story = Story()
    story.fact(facts.ExecutorSettingsChanged(at_ms=1, settings=ExecutorSettings(executor_id="x3", cordoned=True)))
    for executor_id, names in (("x2", "ba"), ("x1", "c"), ("x3", "d")):
        nodes = tuple(node(name, executor_id=executor_id) for name in names)
        story.fact(facts.ExecutorReported(at_ms=2, executor_id=executor_id, pool="default", nodes=nodes))
    story.fact(
        facts.ExecutorReported(
            at_ms=3,
            executor_id="x2",
            pool="default",
            nodes=(node("b", executor_id="x2", cpu="9"), node("e", executor_id="x2")),
        )
    )
    assert list(story.ledger.executors) == ["x2", "x1", "x3"]
    assert [one.node_id for one in story.ledger.executors["x2"].nodes] == ["b", "a", "e"]
    assert story.ledger.executors["x3"].settings.cordoned
    changed = story.ledger.node("b")
    assert changed is not None
    assert changed.total["cpu"] == "9"
    story.fact(facts.ExecutorReported(at_ms=4, executor_id="x2", pool="default", nodes=(node("b"),), gone=("b", "odd")))
    assert [one.node_id for one in story.ledger.executors["x2"].nodes] == ["a", "e", "b"]
    assert story.ledger.pools() == ("default",)


def test_the_fleet_s_version_grows_with_every_change_and_only_then(story: Story) -> None:
    before = story.ledger.fleet_version
    story.tell(submitted("x"))
    assert story.ledger.fleet_version == before
    story.node("n2")
    assert story.ledger.fleet_version > before


def test_a_node_that_moves_belongs_to_the_last_who_reported_it() -> None:
    story = Story()
    story.node("n1", "x1")
    story.node("n1", "x2")
    assert story.ledger.executors["x1"].nodes == ()
    assert [one.node_id for one in story.ledger.executors["x2"].nodes] == ["n1"]
    story.ledger.validate()


def test_room_on_a_node_that_is_gone_is_nobody_s(story: Story) -> None:
    story.tell(leased("q"), *ran("q"))
    story.fact(facts.ExecutorReported(at_ms=1, executor_id="x1", pool="default", gone=("n1",)))
    assert not story.ledger.has_job("q")
    assert story.ledger.job_state("r") == JobState.RUNNING
    story.tell(facts.RunLeaseExpired(at_ms=2, job_id="r", run_id="r-r"), facts.JobRequeued(at_ms=2, job_id="r"))
    assert story.ledger.run("r-r") is None
    assert story.ledger.job_state("r") == JobState.QUEUED
    story.ledger.validate()


def test_room_of_a_deleted_executor_is_nobody_s(story: Story) -> None:
    story.tell(leased("q"), *ran("q"))
    story.fact(facts.ExecutorDeleted(at_ms=1, executor_id="x1"))
    assert not story.ledger.has_job("q")
    assert story.ledger.node("n1") is None
    assert story.ledger.run_state("r-r") == RunState.RUNNING
    story.ledger.validate()


# -- reads about runs -------------------------------------------------------------------------------------------------


def test_what_an_executor_has_to_start_and_to_end(story: Story) -> None:
    story.tell(submitted("a", "b"), leased("a"), leased("b", executor_id="x2"), leased("q"))
    assert [run.job_id for run in story.ledger.runs_to_start("x1")] == ["l", "a", "q"]
    assert [run.job_id for run in story.ledger.runs_to_start("x1", limit=2)] == ["l", "a"]
    assert [run.job_id for run in story.ledger.runs_of_executor("x1")] == ["l", "r", "a", "q"]
    story.tell(facts.RunPending(at_ms=1, job_id="a", run_id="a-r"), facts.JobCancelled(at_ms=1, job_id="l"))
    assert [run.job_id for run in story.ledger.runs_to_start("x1")] == ["q"]
    assert story.ledger.runs_to_end("x1") == ("l-r",)
    assert story.ledger.runs_to_start("nobody") == ()
    assert story.ledger.runs_to_end("nobody") == ()


def test_what_a_report_is_checked_against(story: Story) -> None:
    assert story.ledger.run_head("r-r") == RunHead("r", "qa", "s", "x1", RunState.RUNNING, True)
    assert story.ledger.run_head("nothing") is None


def test_rows_of_a_round_are_not_mistaken_for_later_jobs(story: Story) -> None:
    rows = {job_id: story.ledger._jobs.ids.find(job_id) for job_id in ("q", "l", "r")}
    as_of = story.ledger.next_sequence
    story.tell(facts.JobCancelled(at_ms=1, job_id="q"))
    story.tell(submitted("later"))
    assert story.ledger._jobs.ids.find("later") == rows["q"]
    assert [story.ledger.job_at(rows[job_id], as_of) for job_id in ("q", "l", "r")] == [None, "l", "r"]
    assert story.ledger.job_at(10_000, as_of) is None


def test_a_policy_without_the_job_s_class_takes_the_default_class() -> None:
    story = Story(SchedulingPolicy())
    story.fact(queue())
    story.tell(submitted("odd", of=template(shape=JobShape(requests=(), priority_class="unheard-of"))))
    assert story.ledger._jobs.class_priority[0] == 1000
