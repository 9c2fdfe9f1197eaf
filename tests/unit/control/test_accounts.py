"""Accounts of rounds: the figures add up, and the words hold what was asked for."""

import msgspec
import numpy as np
import pytest

from armada.control.accounts.figures import job_account, queue_accounts, round_account
from armada.control.accounts.words import moment, round_text
from armada.control.explaining import Explaining
from armada.control.rounds.planning import RoundReport
from armada.model.events import RunPreempted
from armada.model.policy import RateLimit, SchedulingPolicy
from armada.scheduling.decisions import (
    IndicativePrice,
    IndicativeShare,
    MarketFigures,
    Method,
    PreemptionKind,
    QueueMarket,
    Reason,
    Termination,
)
from tests.unit.control.driving import Driver
from tests.unit.control.world import gang_item, item, pod

SOFT = pod(cpu="1", priorityClassName="armada-preemptible")


def crowded() -> tuple[Driver, dict[str, tuple[str, ...]]]:
    """Four cpus: one queue's two soft jobs lose theirs to an urgent gang of another, whose last job finds no room."""
    driver = Driver()
    driver.world.queue("qb")
    driver.nodes("n1", "n2", cpu="2")
    soft = driver.world.submit(*[item(SOFT) for _ in range(2)])
    driver.run()
    urgent = pod(cpu="2", priorityClassName="armada-urgent")
    gang = driver.world.submit(*[gang_item("g", 2, urgent) for _ in range(2)], queue="qb")
    late = driver.world.submit(*[item(urgent) for _ in range(3)], queue="qb")
    driver.run()
    return driver, {"soft": soft, "gang": gang, "late": late}


@pytest.fixture(scope="module")
def crowd() -> tuple[Driver, dict[str, tuple[str, ...]]]:
    return crowded()


def report_of(driver: Driver) -> RoundReport:
    return driver.leader.reports["default"]


def test_a_round_adds_up(crowd: tuple[Driver, dict[str, tuple[str, ...]]]) -> None:
    driver, _ = crowd
    report = report_of(driver)
    account = round_account(report)
    cpu = report.order.snapshot.rules.resources.index("cpu")
    assert (account.pool, account.nodes, account.termination) == ("default", 2, Termination.COMPLETED)
    assert account.started_ms <= account.finished_ms
    assert account.capacity[cpu] == 4_000
    assert (account.leased.jobs, account.leased.gangs, account.leased.total[cpu]) == (2, 1, 4_000)
    assert (account.preempted.jobs, account.preempted.gangs, account.preempted.total[cpu]) == (2, 0, 2_000)
    assert [queue.name for queue in account.queues] == ["qa", "qb"]
    for queue in account.queues:
        held = [sum(parts) for parts in zip(*queue.allocated_by_class.values(), strict=True)]
        assert (held or [0] * len(account.capacity)) == list(queue.figures.allocated)
    assert sum(queue.leased.jobs for queue in account.queues) == account.leased.jobs


def test_a_queue_tells_its_losses_and_its_waiting_jobs(crowd: tuple[Driver, dict[str, tuple[str, ...]]]) -> None:
    driver, ids = crowd
    report = report_of(driver)
    (loser,), (winner,) = queue_accounts(report, "qa"), queue_accounts(report, "qb")
    assert (loser.preempted.jobs, loser.optimised.jobs, loser.leased.jobs) == (2, 0, 0)
    assert list(loser.preempted.by_class) == ["armada-preemptible"]
    assert loser.allocated_by_class == {}
    assert [(waiting.reason, waiting.jobs) for waiting in winner.waiting] == [(Reason.NO_FIT, 3)]
    assert driver.world.ledger.job_at(winner.waiting[0].sample_row, report.order.as_of) in ids["late"]
    assert (winner.unreached, queue_accounts(report, "nobody")) == (0, ())


def test_a_job_hears_how_it_fared(crowd: tuple[Driver, dict[str, tuple[str, ...]]]) -> None:
    driver, ids = crowd
    report, ledger = report_of(driver), driver.world.ledger
    found = {}
    for name, (job_id, *_) in ids.items():
        row = ledger.row_of(job_id, report.order.as_of)
        assert row is not None
        found[name] = job_account(report, row)
    assert [account.outcome for account in found.values() if account] == ["preempted", "leased", "refused"]
    leased, refused = found["gang"], found["late"]
    assert leased is not None
    assert refused is not None
    assert leased.method in set(Method)
    assert (leased.node_id[:5], leased.nodes) == ("east-", 2)
    assert refused.exclusions == ("2 nodes could hold it but are in use",)
    assert job_account(report, 10_000) is None


def test_words_grow_with_verbosity(crowd: tuple[Driver, dict[str, tuple[str, ...]]]) -> None:
    driver, ids = crowd
    explaining, ledger = Explaining(driver.leader), driver.world.ledger
    texts = [explaining.pools(ledger, verbosity) for verbosity in range(4)]
    assert [len(text) for text in texts] == sorted(len(text) for text in texts)
    assert "queues with preempted jobs: qa" in texts[0]
    assert "leased 2 jobs (1 gang) with 128Mi memory, 4 cpu" in texts[0]
    assert "armada-urgent: 128Mi memory, 4 cpu" not in texts[2]
    assert "armada-urgent: 128Mi memory, 4 cpu" in texts[3]
    queue = explaining.queue(ledger, "qb")
    assert "3 jobs not placed: no node has room for the job" in queue
    assert any(f"({job_id} and 2 more)" in queue for job_id in ids["late"])
    assert "armada-urgent" in explaining.queue(ledger, "qb", 1)
    job = explaining.job(ledger, ids["late"][0])
    assert "Pool default: no node has room for the job\n" in job
    assert "2 nodes could hold it but are in use" in job
    assert "leased to node east-n" in explaining.job(ledger, ids["gang"][0])


def test_a_job_that_no_round_has_seen_says_so() -> None:
    driver = Driver()
    (job_id,) = driver.world.submit(item())
    assert "No round has" in Explaining(driver.leader).pools(driver.world.ledger)
    assert "No round has looked at it yet" in Explaining(driver.leader).job(driver.world.ledger, job_id)
    assert "No round has looked at queue 'qa' yet" in Explaining(driver.leader).queue(driver.world.ledger, "qa")


def test_times_are_written_exactly() -> None:
    assert moment(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"


def test_what_was_put_back_is_not_preempted() -> None:
    """A queue above its share competes for its places again. The defect 27.11: what returns counted as preempted."""
    driver = Driver()
    driver.world.queue("qb")
    driver.nodes("n1", cpu="4")
    driver.world.submit(*[item(SOFT) for _ in range(4)])
    driver.run()
    driver.world.submit(*[item(SOFT) for _ in range(1)], queue="qb")
    driver.run()
    report = report_of(driver)
    account = round_account(report)
    evicted = len(report.decisions.evicted)
    assert (account.preempted.jobs, account.optimised.jobs, evicted) == (1, 0, 4)
    assert account.put_back == 3
    text = Explaining(driver.leader).pools(driver.world.ledger)
    assert "preempted 1 job with" in text
    assert "3 jobs competed for a place again, and kept it" in text
    (loser,) = queue_accounts(report, "qa")
    assert loser.preempted.jobs == 1
    assert len(driver.events(RunPreempted)) == 1


def test_what_the_optimiser_preempts_is_told_apart(crowd: tuple[Driver, dict[str, tuple[str, ...]]]) -> None:
    driver, _ = crowd
    report = report_of(driver)
    kinds = np.array([PreemptionKind.FAIR_SHARE, PreemptionKind.OPTIMISER], np.uint8)
    lost = msgspec.structs.replace(report.decisions.preemptions, kind=kinds)
    changed = msgspec.structs.replace(report, decisions=msgspec.structs.replace(report.decisions, preemptions=lost))
    account = round_account(changed)
    assert (account.preempted.jobs, account.optimised.jobs) == (1, 1)
    assert [(queue.preempted.jobs, queue.optimised.jobs) for queue in account.queues] == [(1, 1), (0, 0)]
    text = round_text(account, report.order.snapshot, lambda _: "", 0)
    assert "  preempted by the fairness optimiser 1 job with" in text
    assert "queues with preempted jobs: qa" in text


@pytest.mark.parametrize("termination", Termination)
def test_every_end_of_a_round_has_words(
    crowd: tuple[Driver, dict[str, tuple[str, ...]]], termination: Termination
) -> None:
    driver, _ = crowd
    report = report_of(driver)
    shares = (IndicativeShare(priority=3, share=0.25),)
    decisions = msgspec.structs.replace(report.decisions, termination=termination, indicative_shares=shares)
    account = round_account(msgspec.structs.replace(report, decisions=decisions))
    text = round_text(account, report.order.snapshot, lambda _: "", 1)
    assert f"({termination.name.lower()})\n" in text
    assert "  a new queue of priority factor 3 would get a share of 0.250\n" in text


def test_a_market_tells_prices_and_bills(crowd: tuple[Driver, dict[str, tuple[str, ...]]]) -> None:
    driver, _ = crowd
    report = report_of(driver)
    rules = report.order.snapshot.rules
    billable = tuple(4_000 if name == "cpu" else 0 for name in rules.resources)
    queue = QueueMarket(
        name="qb",
        billable=billable,
        price_override=2.0,
        idealised=billable,
        idealised_value=12.0,
        realised_value=8.0,
    )
    prices = (
        IndicativePrice(name="big", price=4.0, evaluated=True, schedulable=True),
        IndicativePrice(name="huge", price=float("nan"), evaluated=True, schedulable=False, reason="no node is as big"),
    )
    market = MarketFigures(spot_price=3.0, queues=(queue,), indicative_prices=prices)
    decisions = msgspec.structs.replace(report.decisions, market=market)
    account = round_account(msgspec.structs.replace(report, decisions=decisions))
    short, long = (round_text(account, report.order.snapshot, lambda _: "", verbosity) for verbosity in (0, 1))
    assert "  spot price 3\n" in short
    assert "a gang of kind" not in short
    assert "a gang of kind big would have to bid 4\n" in long
    assert "a gang of kind huge has no price: no node is as big\n" in long
    assert "pays for 4 cpu at 2; what it holds is worth 8 to it, ideally 12" in long
    assert [queue.market is not None for queue in account.queues] == [False, True]
    unpriced = msgspec.structs.replace(market, spot_price=0.0, queues=())
    account = msgspec.structs.replace(account, market=unpriced)
    assert "no spot price" in round_text(account, report.order.snapshot, lambda _: "", 0)


def test_a_round_with_less_than_a_token_says_so() -> None:
    """F120: one job in two seconds; the bucket holds a fraction in between, which is not enough for any job."""
    driver = Driver(SchedulingPolicy(rate=RateLimit(0.5, 1)))
    driver.nodes("n1")
    driver.world.submit(*[item() for _ in range(5)])
    started: list[int] = []
    ends: list[str] = []
    for _ in range(13):  # six seconds, in steps of a half
        started.append(driver.run().count("RunLeased"))
        text = Explaining(driver.leader).pools(driver.world.ledger)
        ends.append("rate" if "it ended because: the scheduling rate was used up" in text else text)
        driver.world.now_ms += 500
        driver.heard("east")
    assert started == [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]
    assert set(ends) == {"rate"}
