"""What the override service and the bid service answer, as data and back."""

import math

import pytest

from armada._proto import prices_pb2 as api
from armada.model.errors import InvalidRequest
from armada.model.fleet import Bid, BidTable, PoolBids
from armada.wire.feeds.bids import bid_message, bid_request, bid_table
from armada.wire.feeds.overrides import override_message, weight_overrides

TABLE = {
    "qa": {"p": PoolBids({1: Bid(2.0, 3.0), 8: Bid(9.5, 0.0)}, Bid(0.5, 0.25)), "r": PoolBids({2: Bid(1.0, 1.0)})},
    "qb": {"p": PoolBids({}, Bid(7.0, 7.0))},
}
UNITS = {"p": {"cpu": "1", "memory": "4Gi"}}


def test_overrides_survive_the_wire() -> None:
    overrides = {"p": {"qa": 2.0, "qb": 0.5}, "r": {"qa": 1.0}}
    encoded = override_message(overrides).SerializeToString()
    assert weight_overrides(api.PriorityOverrideResponse.FromString(encoded)) == overrides


def test_overrides_that_say_nothing_are_left_out() -> None:
    said = {"zero": 0.0, "negative": -1.0, "endless": math.inf, "none": math.nan, "qa": 4.0}
    assert weight_overrides(override_message({"p": said})) == {"p": {"qa": 4.0}}


def test_a_pool_that_comes_twice_is_one() -> None:
    message = api.PriorityOverrideResponse(
        poolPriorityOverrides=[
            api.PoolPriorityOverrides(pool="p", overrides={"qa": 1.0, "qb": 1.0}),
            api.PoolPriorityOverrides(pool="p", overrides={"qb": 2.0}),
        ]
    )
    assert weight_overrides(message) == {"p": {"qa": 1.0, "qb": 2.0}}


def test_bids_survive_the_wire() -> None:
    sent = BidTable(queues=TABLE, resource_units=UNITS)
    read = bid_table(api.RetrieveBidsResponse.FromString(bid_message(sent).SerializeToString()))
    assert (read.queues, read.resource_units) == (TABLE, UNITS)
    assert read.bid("qa", "p", 1, running=True) == 3.0
    assert read.bid("qb", "p", 1, running=False) == 0.0
    assert read.bid("qb", "p", 0, running=False) == 7.0


def test_equal_answers_are_known_by_their_id() -> None:
    first, again = (bid_table(bid_message(BidTable(queues=TABLE, resource_units=UNITS))) for _ in range(2))
    assert first.snapshot_id
    assert first == again
    turned = dict(reversed(TABLE.items()))
    assert bid_table(bid_message(BidTable(queues=turned, resource_units=UNITS))).snapshot_id == first.snapshot_id
    dearer = {**TABLE, "qb": {"p": PoolBids({}, Bid(7.0, 7.5))}}
    assert bid_table(bid_message(BidTable(queues=dearer, resource_units=UNITS))).snapshot_id != first.snapshot_id
    assert bid_table(bid_message(BidTable(queues=TABLE))).snapshot_id != first.snapshot_id


def test_a_key_that_is_not_in_the_next_answer_has_no_price() -> None:
    """27.13."""
    fewer = {"qa": {"p": PoolBids({8: Bid(9.5, 0.0)})}}
    read = bid_table(bid_message(BidTable(queues=fewer)))
    assert (read.bid("qa", "p", 1, running=True), read.bid("qa", "p", 0, running=False)) == (0.0, 0.0)


def test_a_band_without_a_name_is_no_band() -> None:
    message = bid_message(BidTable(queues={"qa": {"p": PoolBids({0: Bid(5.0, 5.0), 1: Bid(2.0, 2.0)}, Bid(1.0, 1.0))}}))
    assert bid_table(message).of("qa", "p") == PoolBids({1: Bid(2.0, 2.0)}, Bid(1.0, 1.0))


@pytest.mark.parametrize("amount", [math.nan, math.inf, -math.inf, -1.0, 1e101])
def test_a_bid_that_is_no_price_is_refused_with_its_queue(amount: float) -> None:
    message = bid_message(BidTable(queues={"qa": {"p": PoolBids({1: Bid(1.0, 1.0)})}}))
    held = message.queue_bids["qa"].pool_bids["p"].price_band_bids[0].price_band_bids
    held.pricing_phase_bids[0].bid.amount = amount
    with pytest.raises(InvalidRequest, match=r"queue qa, pool p: a bid must be a number"):
        bid_table(message)


@pytest.mark.parametrize("unit", ["0", "-1", "plenty"])
def test_a_resource_unit_that_is_no_amount_is_refused(unit: str) -> None:
    with pytest.raises(InvalidRequest):
        bid_table(bid_message(BidTable(resource_units={"p": {"cpu": unit}})))


def test_the_question_names_the_queues() -> None:
    assert list(bid_request(["qa", "qb"]).queues) == ["qa", "qb"]
