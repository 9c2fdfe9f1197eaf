"""A round's input: who is in it, in which order, and that it stays as it was."""

import random

import msgspec
import numpy as np

from armada.model import events as facts
from armada.model.fleet import Bid, BidTable, PoolBids, PriorityClass
from armada.model.jobs import GangSpec, JobShape, NewJob
from armada.model.policy import MarketPolicy, PoolPolicy, SchedulingPolicy
from armada.scheduling.snapshot import AWAY, ELSEWHERE, HOME, PoolSnapshot
from armada.state.ledger import Ledger
from armada.state.pools import Circumstances, Excluded
from tests.unit.state.building import SHAPE, Story, leased, node, queue, submitted, template

EVERYBODY = Circumstances(executors=frozenset({"x1", "x2"}))
CLASSES = SchedulingPolicy(
    priority_classes=(
        PriorityClass(name="armada-default", priority=1000),
        PriorityClass(name="high", priority=2000, preemptible=True),
    ),
)


def shape(cpu: str = "1", priority_class: str = "armada-default") -> JobShape:
    return JobShape(requests=(("cpu", cpu),), priority_class=priority_class)


def story_with_nodes(policy: SchedulingPolicy = CLASSES) -> Story:
    story = Story(policy)
    story.fact(queue("qa"), queue("qb"))
    story.node("n1", "x1")
    story.node("n2", "x2")
    return story


def job_at(story: Story, row: int) -> str:
    found = story.ledger.job_at(row, story.ledger.next_sequence)
    assert found is not None
    return found


def queued(story: Story, snapshot: PoolSnapshot) -> dict[str, list[str]]:
    """The ids of queued jobs by queue, in the order in which they would be served."""
    offsets = snapshot.queued.offsets.tolist()
    rows = snapshot.queued.row.tolist()
    return {
        name: [job_at(story, row) for row in rows[offsets[place] : offsets[place + 1]]]
        for place, name in enumerate(snapshot.queues.names)
    }


def running(story: Story, snapshot: PoolSnapshot) -> dict[str, str | None]:
    """Where the running jobs are; None where their node takes no part."""
    columns = snapshot.running
    pairs = zip(columns.row.tolist(), columns.node.tolist(), strict=True)
    return {job_at(story, row): None if place < 0 else snapshot.nodes.ids[place] for row, place in pairs}


def test_jobs_come_by_class_then_priority_then_submit_order() -> None:
    story = story_with_nodes()
    story.tell(submitted(NewJob("late", 5), NewJob("first", -1), NewJob("second", 0)))
    story.tell(submitted(NewJob("third", 0), NewJob("fourth", 0)), job_set="t")
    story.tell(submitted(NewJob("urgent", 99), of=template(shape=shape(priority_class="high"))))
    story.tell(submitted("other"), queue="qb")
    found = queued(story, story.ledger.pool_snapshot("default", EVERYBODY))
    assert found == {"qa": ["urgent", "first", "second", "third", "fourth", "late"], "qb": ["other"]}


def test_the_order_holds_whatever_comes_goes_and_changes() -> None:
    """The incremental order against a plain sort, over many rounds."""
    chance = random.Random(7)
    story = story_with_nodes()
    alive: dict[str, tuple[int, int, int]] = {}
    shapes = [template(shape=shape(priority_class=name)) for name in ("armada-default", "high")]
    count = 0
    for _ in range(60):
        for _ in range(chance.randrange(20)):
            count += 1
            which, priority = chance.randrange(2), chance.randrange(3)
            story.tell(submitted(NewJob(f"j{count}", priority), of=shapes[which]))
            alive[f"j{count}"] = (-which, priority, count)
        for job_id in chance.sample(sorted(alive), min(len(alive), chance.randrange(12))):
            if chance.random() < 0.5:
                story.tell(facts.JobCancelled(at_ms=1, job_id=job_id))
                del alive[job_id]
            else:
                priority = chance.randrange(3)
                story.tell(facts.JobReprioritised(at_ms=1, job_id=job_id, priority=priority))
                alive[job_id] = (alive[job_id][0], priority, alive[job_id][2])
        found = queued(story, story.ledger.pool_snapshot("default", EVERYBODY))
        assert found.get("qa", []) == sorted(alive, key=alive.__getitem__)
    story.ledger.validate()


def test_a_job_that_waits_again_keeps_its_place() -> None:
    story = story_with_nodes()
    story.tell(submitted("a", "b"), leased("a"))
    story.tell(facts.RunLeaseExpired(at_ms=1, job_id="a", run_id="a-r"), facts.JobRequeued(at_ms=1, job_id="a"))
    assert queued(story, story.ledger.pool_snapshot("default", EVERYBODY)) == {"qa": ["a", "b"]}


def test_only_jobs_that_may_run_in_the_pool_are_in_it() -> None:
    story = story_with_nodes()
    story.tell(submitted("everywhere"), submitted("here", of=template(pools=("default", "x"))))
    story.tell(submitted("elsewhere", of=template(pools=("x",))))
    story.tell(submitted("unfit", of=template(shape=shape("1000"))))
    story.tell(submitted("unfit-but-named", of=template(shape=shape("1000"), pools=("default",))))
    excluded = Excluded(shapes={"qa": (shape("1000"), shape("7")), "qb": (shape("1"),)})
    circumstances = Circumstances(executors=EVERYBODY.executors, excluded=excluded)
    snapshot = story.ledger.pool_snapshot("default", circumstances)
    assert queued(story, snapshot) == {"qa": ["everywhere", "here", "unfit-but-named"]}
    assert queued(story, story.ledger.pool_snapshot("x", circumstances)) == {"qa": ["everywhere", "here", "elsewhere"]}


def test_gangs_are_left_out_by_their_ids() -> None:
    story = story_with_nodes()
    for gang in ("g", "h"):
        story.tell(submitted(f"{gang}0", f"{gang}1", of=template(gang=GangSpec(gang, 2))))
    story.tell(submitted("single"))
    excluded = Excluded(gangs={"qa": ("g", "unknown")}, shapes={"qa": (SHAPE,)})
    circumstances = Circumstances(executors=EVERYBODY.executors, excluded=excluded)
    assert queued(story, story.ledger.pool_snapshot("default", circumstances)) == {"qa": ["h0", "h1"]}


def test_jobs_of_a_queue_that_does_not_exist_are_ignored_but_hold_their_room() -> None:
    story = story_with_nodes()
    story.tell(submitted("a", "b", of=template(shape=shape("3"))), leased("a"), queue="gone")
    snapshot = story.ledger.pool_snapshot("default", EVERYBODY)
    assert snapshot.queues.names == ()
    cpu = snapshot.rules.resources.index("cpu")
    assert snapshot.nodes.allocatable[:, cpu].tolist() == [5_000, 8_000]


def test_running_jobs_stand_on_their_nodes_and_ended_ones_hold_their_room() -> None:
    story = story_with_nodes()
    for job_id, cpu in (("here", "1"), ("there", "2"), ("lost", "1"), ("ended", "3"), ("foreign", "4")):
        story.tell(submitted(job_id, of=template(shape=shape(cpu))))
    story.tell(leased("here"), leased("there", node_id="n2", executor_id="x2"), leased("lost", node_id="n9"))
    story.tell(leased("ended"), facts.RunLeaseExpired(at_ms=1, job_id="ended", run_id="ended-r"))
    story.tell(facts.JobFailed(at_ms=1, job_id="ended", failure=facts.Failure(reason="r")))
    other_pool = facts.RunLeased(
        at_ms=1, job_id="foreign", run_id="f", executor_id="x1", node_id="n1", node_name="n1", pool="x", priority=1
    )
    story.tell(other_pool)
    snapshot = story.ledger.pool_snapshot("default", EVERYBODY)
    assert running(story, snapshot) == {"here": "n1", "there": "n2", "lost": None}
    assert snapshot.running.kind.tolist() == [HOME] * 3
    cpu_column = snapshot.rules.resources.index("cpu")
    assert snapshot.nodes.allocatable[:, cpu_column].tolist() == [8_000 - 3_000 - 4_000, 8_000]
    story.fact(facts.RunsReleased(at_ms=2, run_ids=("ended-r",)))
    freed = story.ledger.pool_snapshot("default", EVERYBODY)
    assert freed.nodes.allocatable[:, cpu_column].tolist() == [4_000, 8_000]


def test_a_pool_borrows_nodes_and_its_jobs_there_are_guests_of_their_owner() -> None:
    lender = PoolPolicy(name="lender")
    borrower = PoolPolicy(name="default", away_pools=("lender",))
    story = story_with_nodes(msgspec.structs.replace(CLASSES, pools=(lender, borrower)))
    lent = facts.ExecutorReported(at_ms=1, executor_id="x2", pool="lender", nodes=(node("n8", pool="lender"),), gone=())
    story.fact(lent)
    story.tell(submitted("home", "guest", "own"))
    story.tell(submitted("member", "sibling", of=template(gang=GangSpec("g", 2))))
    story.tell(leased("home"), leased("guest", node_id="n8", executor_id="x2"))
    story.tell(leased("member", node_id="n8", executor_id="x2"), leased("sibling", node_id="n2", executor_id="x2"))
    own = facts.RunLeased(
        at_ms=1, job_id="own", run_id="o", executor_id="x2", node_id="n8", node_name="n8", pool="lender", priority=1
    )
    story.tell(own)
    borrowing = story.ledger.pool_snapshot("default", EVERYBODY)
    assert borrowing.nodes.ids == ("n1", "n2", "n8")
    assert running(story, borrowing) == {"home": "n1", "guest": "n8", "member": "n8", "sibling": "n2"}
    assert borrowing.queues.names == ("qa",)
    lending = story.ledger.pool_snapshot("lender", EVERYBODY)
    assert lending.nodes.ids == ("n8",)
    assert lending.queues.names == ("qa", "qa-away")
    kinds = dict(zip(running(story, lending), lending.running.kind.tolist(), strict=True))
    assert kinds == {"own": HOME, "guest": AWAY, "member": AWAY, "sibling": ELSEWHERE}
    assert running(story, lending)["sibling"] is None


def test_nodes_of_executors_that_take_no_part_are_left_out_and_others_keep_their_order() -> None:
    story = story_with_nodes()
    story.fact(
        facts.ExecutorReported(
            at_ms=1, executor_id="x1", pool="default", nodes=(node("n0"), node("n7", pool="other")), gone=()
        )
    )
    assert story.ledger.pool_snapshot("default", EVERYBODY).nodes.ids == ("n1", "n0", "n2")
    assert story.ledger.pool_snapshot("other", EVERYBODY).nodes.ids == ("n7",)
    story.tell(submitted("a"), leased("a"))
    alone = story.ledger.pool_snapshot("default", Circumstances(executors=frozenset({"x2"})))
    assert alone.nodes.ids == ("n2",)
    assert running(story, alone) == {"a": None}


def test_a_changed_node_is_seen_by_the_next_round() -> None:
    story = story_with_nodes()
    cpu = story.ledger.pool_snapshot("default", EVERYBODY).rules.resources.index("cpu")
    story.fact(facts.ExecutorReported(at_ms=1, executor_id="x1", pool="default", nodes=(node("n1", cpu="3"),)))
    assert story.ledger.pool_snapshot("default", EVERYBODY).nodes.allocatable[:, cpu].tolist() == [3_000, 8_000]


def test_later_facts_do_not_touch_a_snapshot() -> None:
    story = story_with_nodes()
    story.tell(submitted("a", "b", "c"), leased("b"))
    snapshot = story.ledger.pool_snapshot("default", EVERYBODY)
    before = snapshot.to_bytes()
    story.tell(leased("a"), facts.JobCancelled(at_ms=1, job_id="b"), submitted("d", of=template(shape=shape("5"))))
    story.ledger.pool_snapshot("default", EVERYBODY)
    assert snapshot.to_bytes() == before


def test_shapes_whose_numbers_are_used_again_are_told_to_the_scheduler() -> None:
    story = story_with_nodes()
    cpu = story.ledger.pool_snapshot("default", EVERYBODY).rules.resources.index("cpu")
    for amount in (1, 2, 3):
        story.tell(submitted(f"j{amount}", of=template(shape=shape(str(amount)))))
        snapshot = story.ledger.pool_snapshot("default", EVERYBODY)
        assert snapshot.shapes.request[snapshot.queued.shape][:, cpu].tolist() == [amount * 1_000]
        story.tell(facts.JobCancelled(at_ms=1, job_id=f"j{amount}"))
    story.tell(submitted("x", of=template(shape=shape("7"))), facts.JobCancelled(at_ms=1, job_id="x"))
    story.tell(submitted("y", of=template(shape=shape("9"))), submitted("z", of=template(shape=shape("8"))))
    snapshot = story.ledger.pool_snapshot("default", EVERYBODY)
    assert snapshot.shapes.request[snapshot.queued.shape][:, cpu].tolist() == [9_000, 8_000]


def test_gangs_bring_their_size_and_label() -> None:
    story = story_with_nodes()
    story.tell(submitted("a", "b", of=template(gang=GangSpec("g", 2, "zone"))))
    story.tell(submitted("c", of=template(gang=GangSpec("h", 3))), submitted("d"))
    snapshot = story.ledger.pool_snapshot("default", EVERYBODY)
    gangs = snapshot.queued.gang.tolist()
    assert gangs[0] == gangs[1] != gangs[2] != -1
    assert gangs[3] == -1
    assert [int(snapshot.gangs.cardinality[gang]) for gang in gangs[:3]] == [2, 2, 3]
    assert snapshot.gangs.labels == ("zone",)
    assert [int(snapshot.gangs.label[gang]) for gang in gangs[1:3]] == [0, -1]


def test_the_circumstances_reach_the_round() -> None:
    story = story_with_nodes()
    story.tell(submitted("a"))
    kinds = len(CLASSES.kinds())
    snapshot = story.ledger.pool_snapshot(
        "default",
        Circumstances(
            executors=EVERYBODY.executors,
            queue_tokens={"qa": 3.5},
            weight_overrides={"qa": 4.0},
            penalties={"qa": (1,) * kinds},
            global_tokens=9.0,
            preemption_tokens=2.0,
        ),
    )
    assert snapshot.queues.tokens.tolist() == [3.5]
    assert snapshot.queues.weight.tolist() == [0.25]
    assert snapshot.queues.penalty.tolist() == [[1] * kinds]
    assert (snapshot.rules.global_tokens, snapshot.rules.preemption_tokens) == (9.0, 2.0)


def test_a_restored_ledger_gives_the_same_round() -> None:
    """Only the rows, which are nobody's business, may differ."""
    story = story_with_nodes()
    story.tell(*(submitted(NewJob(f"j{index}", index % 3), of=template(shape=SHAPE)) for index in range(30)))
    story.tell(*(facts.JobCancelled(at_ms=1, job_id=f"j{index}") for index in range(0, 30, 4)))
    story.tell(*(leased(f"j{index}", at_ms=index) for index in (1, 2, 3)))
    first = story.ledger.pool_snapshot("default", EVERYBODY)
    names = queued(story, first), running(story, first)
    story.ledger = type(story.ledger).from_bytes(story.ledger.to_bytes(), CLASSES)
    second = story.ledger.pool_snapshot("default", EVERYBODY)
    assert (queued(story, second), running(story, second)) == names
    assert np.array_equal(first.running.priority, second.running.priority)


def test_price_bands_reach_the_snapshot_and_outlive_a_checkpoint() -> None:
    terms = MarketPolicy(spot_price_cutoff=0.5, pricing_timeout_ms=1)
    policy = msgspec.structs.replace(CLASSES, pools=(PoolPolicy(name="default", market=terms),))
    story = story_with_nodes(policy)
    banded = msgspec.structs.replace(template(shape=shape()), price_band=3)
    story.tell(submitted("plain", of=template(shape=shape())), submitted("banded", of=banded))
    story.tell(submitted("other", of=banded), queue="qb")
    bids = BidTable(queues={"qa": {"default": PoolBids({3: Bid(2.0, 4.0)}, Bid(1.0, 1.0))}})
    circumstances = msgspec.structs.replace(EVERYBODY, bids=bids)
    restored = Ledger.from_bytes(story.ledger.to_bytes(), policy)
    for ledger in (story.ledger, restored):
        market = ledger.pool_snapshot("default", circumstances).market
        assert market is not None
        assert market.queued_band.tolist() == [3, 0, 3]
        assert market.bids[0, [0, 3]].tolist() == [[1.0, 1.0], [2.0, 4.0]]
        assert not market.bids[1].any()
    assert queued(story, story.ledger.pool_snapshot("default", circumstances))["qa"] == ["banded", "plain"]
    story.tell(facts.JobCancelled(at_ms=2, job_id="banded"))
    story.ledger.validate()
