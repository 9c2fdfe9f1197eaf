"""Markets through leader and ledger: price bands, bids that change, and what a preempted job is told."""

from armada.control.rounds.cadence import Cadence
from armada.control.rounds.feeds import Feeds
from armada.model.events import RunLeased, RunPreempted
from armada.model.fleet import Bid, BidTable, PoolBids, PriorityClass
from armada.model.policy import MarketPolicy, PoolPolicy, SchedulingPolicy
from armada.model.submission import SubmissionPolicy, SubmittedItem
from tests.unit.control.driving import Driver
from tests.unit.control.world import item

POLICY = SchedulingPolicy(
    pools=(PoolPolicy(name="default", market=MarketPolicy(spot_price_cutoff=0.5, pricing_timeout_ms=1)),),
    priority_classes=(PriorityClass(name="plain", priority=100, preemptible=True),),
    default_priority_class="plain",
)
SUBMISSION = SubmissionPolicy(allowed_priority_class_names=("plain",), default_priority_class_name="plain")


def of_band(letter: str) -> SubmittedItem:
    return item(annotations={"armadaproject.io/priceBand": letter})


def market(**bids: dict[int, float]) -> Feeds:
    """What queues bid by band, for waiting and running jobs alike."""
    table = {
        queue: {"default": PoolBids({band: Bid(bid, bid) for band, bid in own.items()})} for queue, own in bids.items()
    }
    return Feeds(bids=BidTable(queues=table, resource_units={"default": {"cpu": "1"}}))


def driver_of_one_node(cpu: str = "2") -> Driver:
    driver = Driver(POLICY, Cadence(round_delay_ms=0, fleet_settle_ms=0, rounds_without_jobs=True), SUBMISSION)
    driver.nodes("n1", cpu=cpu)
    driver.world.queue("qb")
    return driver


def hear(driver: Driver, feeds: Feeds) -> None:
    driver.world.now_ms += 10_000
    driver.heard("east")
    driver.leader.hear(feeds, driver.world.now_ms)
    driver.run()


def leased(driver: Driver) -> list[str]:
    return [event.job_id for event in driver.events(RunLeased) if isinstance(event, RunLeased)]


def test_the_band_of_a_job_reaches_the_round() -> None:
    driver = driver_of_one_node(cpu="1")
    driver.leader.hear(market(qa={1: 1.0, 3: 5.0}), driver.world.now_ms)
    _, third, _ = driver.world.submit(of_band("A"), of_band("c"), of_band("B"))
    driver.run()
    assert leased(driver) == [third]


def test_a_preempted_job_is_told_what_both_bid() -> None:
    driver = driver_of_one_node()
    driver.leader.hear(market(qa={1: 2.0}, qb={2: 4.5}), driver.world.now_ms)
    driver.world.submit(of_band("A"), of_band("A"))
    driver.run()
    (winner,) = driver.world.submit(of_band("B"), queue="qb")
    driver.run()
    (lost,) = [event for event in driver.events(RunPreempted) if isinstance(event, RunPreempted)]
    assert lost.preempting_job_id == winner
    assert lost.reason == (
        f"Preempted by the scheduler by bid - preempting job {winner} of queue qb, which bids 4.5 where this one bids 2"
    )


def test_a_bid_that_disappears_counts_no_more() -> None:
    driver = driver_of_one_node(cpu="1")
    driver.leader.hear(market(qa={1: 9.0}, qb={1: 3.0}), driver.world.now_ms)
    (first,) = driver.world.submit(of_band("A"))
    driver.run()
    (second,) = driver.world.submit(of_band("A"), queue="qb")
    driver.run()
    assert leased(driver) == [first]
    hear(driver, market(qb={1: 3.0}))
    assert driver.world.state(first) == "preempted"
    (lost,) = [event for event in driver.events(RunPreempted) if isinstance(event, RunPreempted)]
    assert lost.preempting_job_id == second


def test_reports_have_the_figures_of_the_market() -> None:
    driver = driver_of_one_node()
    driver.leader.hear(market(qa={1: 2.0}), driver.world.now_ms)
    driver.world.submit(of_band("A"), of_band("A"), of_band("A"))
    driver.run()
    figures = driver.leader.reports["default"].decisions.market
    assert figures is not None
    assert figures.spot_price == 2
    assert figures.queues[0].realised_value == 4
