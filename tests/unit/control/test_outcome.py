"""What decisions come to: tolerations of leases, and gangs that go whole or stay whole when the ledger has moved on."""

from armada.control.rounds.cadence import Cadence
from armada.model.events import RunLeased
from armada.model.fleet import AwayNodeType, AwayTypeRef, PriorityClass, Taint, WellKnownNodeType
from armada.model.jobs import Toleration
from armada.model.policy import PoolPolicy, SchedulingPolicy
from armada.model.submission import SubmissionPolicy
from armada.scheduling.round import schedule
from tests.unit.control.driving import Driver
from tests.unit.control.world import gang_item, item, node, pod

DEFAULT = Toleration("team", "Exists")
POLICY = SchedulingPolicy(
    pools=(PoolPolicy(name="default", default_tolerations=(DEFAULT,)),),
    priority_classes=(
        PriorityClass(
            name="flex",
            priority=200,
            preemptible=True,
            away_node_types=(AwayNodeType(50, (AwayTypeRef("gpu"),)),),
        ),
        PriorityClass(name="high", priority=300, preemptible=True),
    ),
    default_priority_class="flex",
    well_known_node_types=(WellKnownNodeType("gpu", (Taint("gpu", "*", "NoSchedule"), Taint("site", "x", ""))),),
)
SUBMISSION = SubmissionPolicy(allowed_priority_class_names=("flex", "high"), default_priority_class_name="flex")
CADENCE = Cadence(round_delay_ms=0, fleet_settle_ms=0)


def test_a_job_that_goes_away_tolerates_what_marks_the_nodes_there() -> None:
    driver = Driver(POLICY, CADENCE, SUBMISSION)
    tainted = (Taint("gpu", "a100", "NoSchedule"), Taint("site", "x", "NoExecute"))
    driver.world.report_nodes(node("home", cpu="1"), node("away", cpu="1", taints=tainted))
    driver.heard("east")
    driver.world.submit(item(), item())
    driver.run()
    added = {event.node_name: event.tolerations for event in driver.events(RunLeased) if isinstance(event, RunLeased)}
    assert added["home"] == (DEFAULT,)
    assert added["away"] == (
        DEFAULT,
        Toleration("gpu", "Exists", "", "NoSchedule"),
        Toleration("site", "Equal", "x", ""),
    )


def test_a_gang_stays_whole_when_the_job_that_it_made_room_for_is_gone() -> None:
    driver = Driver(POLICY, CADENCE, SUBMISSION)
    driver.nodes("n1", "n2", cpu="1")
    members = driver.world.submit(*[gang_item("g", 2) for _ in range(2)])
    driver.run()
    driver.world.queue("qb")
    (urgent,) = driver.world.submit(item(pod(priorityClassName="high")), queue="qb")
    order = driver.step().round
    assert order is not None
    decisions = schedule(order.snapshot, order.seed)
    assert len(decisions.preemptions.row) == 2
    driver.world.cancel(urgent)
    assert driver.leader.finish(driver.world.ledger, order, decisions, driver.world.now_ms).sequences == ()
    assert {driver.world.state(job_id) for job_id in members} == {"leased"}


def test_a_gang_goes_whole_when_one_of_two_jobs_that_it_made_room_for_is_gone() -> None:
    driver = Driver(POLICY, CADENCE, SUBMISSION)
    driver.nodes("n1", "n2", "n3", cpu="1")
    members = driver.world.submit(*[gang_item("g", 3) for _ in range(3)])
    driver.run()
    urgent = driver.world.submit(*[item(pod(priorityClassName="high")) for _ in range(2)])
    order = driver.step().round
    assert order is not None
    decisions = schedule(order.snapshot, order.seed)
    driver.world.cancel(urgent[0])
    driver.store(driver.leader.finish(driver.world.ledger, order, decisions, driver.world.now_ms).sequences, 1)
    assert driver.world.state(urgent[1]) == "leased"
    assert {driver.world.state(job_id) for job_id in members} == {"preempted"}
