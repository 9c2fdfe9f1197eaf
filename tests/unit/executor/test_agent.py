"""The agent step by step: what it asks for after each thing that reaches it."""

from armada.executor.cluster import Changes, Creation, Outcome, PodDeletion
from armada.executor.holding.retention import RetentionLimits
from armada.executor.holding.runs import Mark
from armada.executor.holding.stimuli import (
    Acknowledged,
    Changed,
    Created,
    DeletionFailed,
    Draining,
    ExchangeFailed,
    Listed,
    Replied,
    ReportFailed,
)
from armada.model.events import RunFailed, RunReturned, RunSucceeded
from armada.model.leases import HeldRun, LeaseReply
from tests.unit.executor.agents import Bench
from tests.unit.executor.builders import (
    NODE,
    created,
    facts,
    gone,
    kinds,
    lease,
    listing,
    pod,
    seen,
)


def test_nothing_happens_before_the_cluster_was_listed() -> None:
    bench = Bench()
    assert bench.step().exchange is None
    assert bench.step(Listed(listing())).exchange is not None


def test_a_lease_becomes_a_pod_and_its_facts() -> None:
    bench = Bench()
    request = bench.step(Listed(listing())).exchange
    assert request is not None
    assert (request.executor_id, request.pool, request.max_leases) == ("e", "p", 1000)
    assert [node.node.name for node in request.nodes] == ["n1"]
    instructions = bench.reply("r1")
    assert [order.run_id for order in instructions.create] == ["r1"]
    assert instructions.create[0].name == "armada-job-r1-0"
    bench.step(Created(created("r1")))
    assert bench.last.marks == (Mark("c", "r1", 0, "job-r1", "q", "s"),)
    assert bench.step(Changed(seen(pod("r1")))).report[0].queue == "q"
    assert kinds(bench.last.report) == ["RunPending"]
    assert bench.step(Acknowledged(), Changed(seen(pod("r1", "running")))).marks == (Mark("t", "r1", 1),)
    assert kinds(bench.last.report) == ["RunStarted"]
    bench.step(Acknowledged(), Changed(seen(pod("r1", "succeeded"))))
    (end,) = facts(bench.last.report)
    assert isinstance(end, RunSucceeded)
    assert (end.at_ms, end.pod.node_name, end.pod.uid, end.pod.cluster) == (2_000, "n1", "uid-r1", "e")


def test_a_lease_is_acknowledged_at_once_and_idempotent() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1")
    request = bench.step(after_ms=5).exchange
    assert request is not None
    assert request.unassigned_run_ids == ("r1",)
    assert request.max_leases == 999
    again = bench.step(Replied(LeaseReply(leases=(lease("r1"),))))
    assert again.create == ()
    assert bench.agent.run_ids() == ("r1",)


def test_skipped_phases_are_told() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1")
    bench.step(Created(created("r1")), Changed(seen(pod("r1", "succeeded"))))
    assert kinds(bench.last.report) == ["RunPending", "RunStarted", "RunSucceeded"]


def test_a_pod_that_never_started_is_not_told_as_started() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1")
    refused = pod("r1", "failed", started_ms=0, containers=(), reason="UnexpectedAdmissionError", message="no device")
    bench.step(Changed(seen(refused)))
    assert kinds(bench.last.report) == ["RunPending", "RunFailed"]
    failed = facts(bench.last.report)[1]
    assert isinstance(failed, RunFailed)
    assert failed.failure.reason == "no device"


def test_facts_wait_while_a_report_is_under_way_and_come_again_when_it_failed() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1", "r2")
    assert kinds(bench.step(Changed(seen(pod("r1")))).report) == ["RunPending"]
    assert bench.step(Changed(seen(pod("r2"), pod("r1", "running")))).report == ()
    assert bench.step(ReportFailed()).report == ()
    assert bench.step(after_ms=400).report == ()
    again = bench.step(after_ms=200)
    assert [(type(e).__name__, getattr(e, "run_id", "")) for e in facts(again.report)] == [
        ("RunPending", "r1"),
        ("RunPending", "r2"),
        ("RunStarted", "r1"),
    ]


def test_a_refused_report_is_cut_down_to_the_fact_that_is_dropped() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1", "r2", "r3")
    report = bench.step(Changed(seen(pod("r1"), pod("r2"), pod("r3")))).report
    sizes = []
    bad = "r2"
    delivered: list[str] = []
    for _ in range(12):
        if not report:
            break
        runs = [str(getattr(event, "run_id", "")) for event in facts(report)]
        sizes.append(len(runs))
        if bad in runs:
            report = bench.step(ReportFailed(was_refused=True)).report
        else:
            delivered += runs
            report = bench.step(Acknowledged()).report
        if bench.last.warnings:
            assert "RunPending of run r2" in bench.last.warnings[0]
    assert delivered == ["r1", "r3"]
    assert sizes[0] == 3
    assert bench.agent.figures().facts_dropped == 1
    assert bench.agent.figures().facts_waiting == 0


def test_an_ended_run_is_held_until_it_is_cancelled_and_its_pod_stays() -> None:
    bench = Bench()
    bench.started("r1")
    bench.step(Changed(seen(pod("r1", "succeeded"))))
    bench.step(Acknowledged())
    assert bench.held() == {"r1": "succeeded"}
    bench.reply(cancel=["r1"])
    assert bench.last.delete == ()
    assert bench.held() == {}
    assert bench.agent.figures().pods_kept == 1


def test_without_retention_a_pod_goes_with_its_run() -> None:
    bench = Bench(retention=RetentionLimits(pod_count=0))
    bench.started("r1")
    bench.step(Changed(seen(pod("r1", "succeeded"))))
    bench.step(Acknowledged())
    assert bench.reply(cancel=["r1"]).delete == (PodDeletion("r1", 0),)
    bench.step(Changed(gone("r1")))
    assert bench.agent.figures().pods_kept == 0


def test_cancelled_before_it_was_ordered() -> None:
    bench = Bench(create_batch=1)
    bench.step(Listed(listing()))
    assert [order.run_id for order in bench.reply("r1", "r2").create] == ["r1"]
    assert bench.reply(cancel=["r2"]).delete == ()
    assert bench.step(Created(created("r1"))).create == ()
    assert set(bench.held()) == {"r1"}


def test_cancelled_while_its_order_is_under_way() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1")
    assert bench.reply(cancel=["r1"]).delete == ()
    assert bench.step(Created(created("r1"))).delete == (PodDeletion("r1", None),)
    assert set(bench.held()) == {"r1"}
    assert bench.step(Changed(gone("r1"))).report == ()
    assert bench.held() == {}


def test_a_cancelled_run_is_held_until_nothing_of_it_executes() -> None:
    bench = Bench()
    bench.started("r1")
    assert bench.reply(cancel=["r1"]).delete == (PodDeletion("r1", None),)
    assert bench.held() == {"r1": "running"}
    assert bench.reply(cancel=["r1"]).delete == ()  # told again: no news
    bench.step(Changed(seen(pod("r1", "running", deletion_due_ms=40_000))))
    assert bench.held() == {"r1": "running"}
    bench.step(Changed(gone("r1")))
    assert bench.held() == {}
    assert facts(bench.last.report) == []


def test_news_of_room_gives_up_a_held_exchange() -> None:
    bench = Bench()
    bench.started("r1")
    bench.reply(cancel=["r1"])
    bench.settle_exchange()
    bench.step(after_ms=100)
    assert not bench.last.abandon
    assert bench.step(Changed(gone("r1"))).abandon
    assert not bench.step().abandon
    request = bench.step(ExchangeFailed(was_abandoned=True)).exchange
    assert request is not None
    assert request.nodes[0].runs == ()


def test_repeated_cancels_do_not_spin() -> None:
    bench = Bench()
    bench.started("r1")
    bench.reply(cancel=["r1"])
    bench.settle_exchange()
    exchanges = 0
    for _ in range(100):
        stimuli = (Replied(LeaseReply(cancel_run_ids=("r1",))),) if bench.last.exchange is not None else ()
        exchanges += bool(stimuli)
        bench.step(*stimuli)
    assert exchanges <= 5


def test_an_empty_answer_waits_for_the_interval() -> None:
    bench = Bench(hold_ms=0)
    bench.step(Listed(listing()))
    bench.reply()
    assert bench.step(after_ms=4_900).exchange is None
    assert bench.step(after_ms=100).exchange is not None


def test_a_failed_exchange_is_tried_again_ever_later() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    waits = []
    for _ in range(8):
        bench.step(ExchangeFailed())
        start = bench.now_ms
        while bench.last.exchange is None:
            bench.step(after_ms=max(bench.last.wake_at_ms - bench.now_ms, 1))
        waits.append(bench.now_ms - start)
    assert waits == [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]


def test_more_leases_are_asked_for_once_pods_were_made() -> None:
    bench = Bench(max_unstarted=4)
    bench.step(Listed(listing()))
    bench.reply("r1", "r2", "r3", "r4")
    request = bench.step(after_ms=10).exchange
    assert request is not None
    assert request.max_leases == 0
    bench.step(Created(created("r1", "r2", "r3", "r4")), after_ms=30)
    assert not bench.last.abandon
    bench.step(Changed(seen(*(pod(run_id) for run_id in ("r1", "r2", "r3")))))
    assert bench.last.abandon
    request = bench.step(ExchangeFailed(was_abandoned=True)).exchange
    assert request is not None
    assert request.max_leases == 3


def test_a_node_report_is_the_same_object_while_nothing_changed_there() -> None:
    other = NODE.__class__(node_id="e-n2", name="n2", executor_id="e", pool="p")
    bench = Bench()
    first = bench.step(Listed(listing(nodes=(NODE, other)))).exchange
    bench.reply("r1")
    bench.step(Created(created("r1")), Changed(seen(pod("r1"))))
    bench.reply()
    bench.settle_exchange()
    assert bench.step(Changed(Changes(nodes=(NODE,)))).exchange is None
    bench.step(Replied(LeaseReply()))
    second = bench.step(after_ms=6_000).exchange
    assert first is not None
    assert second is not None
    assert second.nodes[1] is first.nodes[1]
    assert second.nodes[0].runs == (HeldRun("r1", "pending"),)


def test_a_fatal_refusal_fails_the_run_once() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1")
    bench.step(Created(created("r1", outcome=Outcome.REFUSED, message="container main has no command")))
    (failed,) = facts(bench.last.report)
    assert isinstance(failed, RunFailed)
    assert failed.failure.reason == "the cluster refused the pod: container main has no command"
    assert bench.held() == {"r1": ""}
    assert bench.reply("r1").create == ()


def test_a_passing_fault_of_the_cluster_is_tried_again() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1")
    bench.step(Created(created("r1", outcome=Outcome.FAILED, message="timeout")))
    assert bench.last.create == ()
    assert [order.run_id for order in bench.step(after_ms=500).create] == ["r1"]
    bench.step(Created(created("r1")))
    assert bench.last.report == ()


def test_a_lasting_fault_gives_the_lease_back() -> None:
    bench = Bench(create_tries=3)
    bench.step(Listed(listing()))
    bench.reply("r1")
    for wait in (0, 500, 1000):
        bench.step(after_ms=wait)
        bench.step(Created(created("r1", outcome=Outcome.FAILED, message="timeout")))
    (returned,) = facts(bench.last.report)
    assert isinstance(returned, RunReturned)
    assert "timeout" in returned.failure.reason
    assert bench.last.delete == (PodDeletion("r1", 0),)


def test_a_node_that_is_gone_gives_the_lease_back_at_once() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.reply("r1")
    bench.step(Created(created("r1", outcome=Outcome.NO_NODE, message="no node n1")))
    assert kinds(bench.last.report) == ["RunReturned"]


def test_a_name_taken_by_a_kept_pod_frees_it_first() -> None:
    bench = Bench()
    bench.started("r1")
    bench.step(Changed(seen(pod("r1", "failed"))))
    bench.step(Acknowledged())
    bench.reply("r2", cancel=["r1"])
    taken = Creation("r2", Outcome.NAME_TAKEN, "", "r1")
    assert bench.step(Created((taken,))).delete == (PodDeletion("r1", 0),)
    bench.step(Changed(gone("r1")))
    assert [order.run_id for order in bench.step(after_ms=1_000).create] == ["r2"]


def test_a_pod_deleted_by_someone_else_fails_its_run() -> None:
    bench = Bench()
    bench.started("r1")
    bench.step(Changed(gone("r1", reason="node n1 is gone")))
    (failed,) = facts(bench.last.report)
    assert isinstance(failed, RunFailed)
    assert failed.failure.reason == "node n1 is gone"
    assert failed.failure.subcategory == "externally-deleted"
    assert bench.reply("r1").create == ()


def test_the_last_word_of_a_pod_counts_when_it_is_deleted_after_its_end() -> None:
    bench = Bench()
    bench.started("r1")
    bench.step(Changed(Changes(pods=(pod("r1", "succeeded"),), gone=gone("r1").gone)))
    assert kinds(bench.last.report) == ["RunSucceeded"]


def test_an_end_that_the_control_plane_does_not_know_is_said_again() -> None:
    bench = Bench()
    bench.started("r1")
    bench.step(Changed(seen(pod("r1", "succeeded"))))
    bench.step(Acknowledged())
    again: list[str] = []
    for _ in range(30):
        bench.step(after_ms=5_000)
        again += kinds(bench.last.report)
    assert again == ["RunSucceeded"]


def test_draining_asks_for_nothing() -> None:
    bench = Bench()
    bench.step(Listed(listing()), Draining())
    assert bench.last.exchange is not None
    assert bench.last.exchange.max_leases == 0


def test_a_lease_without_names_is_dropped_with_a_warning() -> None:
    bench = Bench()
    bench.step(Listed(listing()))
    bench.step(Replied(LeaseReply(leases=(lease("r1", queue=""),))))
    assert bench.last.create == ()
    assert "r1" in bench.last.warnings[0]


def test_failed_deletions_are_asked_again() -> None:
    bench = Bench()
    bench.started("r1")
    deletion = bench.reply(cancel=["r1"]).delete
    bench.step(DeletionFailed(deletion))
    assert bench.step(after_ms=5_000).delete == deletion


def test_a_pod_that_does_not_go_is_forced() -> None:
    bench = Bench()
    bench.started("r1")
    bench.reply(cancel=["r1"])
    forced: list[PodDeletion] = []
    start = bench.now_ms
    while not forced:
        bench.step(after_ms=1_000)
        forced += bench.last.delete
    assert forced == [PodDeletion("r1", 0)]
    assert 60_000 <= bench.now_ms - start <= 66_000  # its grace, then the margin
