"""The sections `priorityOverride` and `pricingApi`."""

from typing import Any

import pytest

from armada.model.configuration import ServiceFeed, bid_feed, override_feed
from armada.model.errors import InvalidRequest


def test_what_is_not_enabled_is_not_asked() -> None:
    assert override_feed({}) is None
    assert override_feed({"enabled": False, "serviceUrl": "h:1", "updateFrequency": "1m"}) is None
    assert bid_feed({"devModeEnabled": True}) is None


def test_a_service_with_the_references_keys() -> None:
    values = {"enabled": True, "serviceUrl": "prices:50051", "updateFrequency": "30s", "forceNoTls": True}
    assert override_feed(values) == ServiceFeed(service_url="prices:50051", period_ms=30_000, encrypted=False)
    assert bid_feed(values) == ServiceFeed(service_url="prices:50051", period_ms=30_000, encrypted=False)
    assert bid_feed({"enabled": True, "serviceUrl": "h:1"}) == ServiceFeed(service_url="h:1", period_ms=60_000)


def test_a_file_may_stand_in() -> None:
    feed = override_feed({"enabled": True, "serviceUrl": "file:folder/overrides.yaml"})
    assert feed is not None
    assert feed.file == "folder/overrides.yaml"
    assert ServiceFeed(service_url="file.example:1").file == ""


def test_invented_bids_need_no_service() -> None:
    feed = bid_feed({"enabled": True, "devModeEnabled": True})
    assert feed is not None
    assert feed.invents


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"enabled": True}, "priorityOverride.serviceUrl: which service"),
        ({"enabled": True, "serviceUrl": "http://h:1"}, "is no gRPC target"),
        ({"enabled": True, "serviceUrl": "file:"}, "which file"),
        ({"enabled": True, "serviceUrl": "h:1", "updateFrequency": "0s"}, "priorityOverride.updateFrequency"),
        ({"enabled": True, "serviceUrl": "h:1", "devModeEnabled": True}, "devModeEnabled"),
        ({"enabled": "yes"}, "priorityOverride.enabled"),
        ({"enabled": True, "serviceUrl": "h:1", "serviceURL": "h:1"}, "serviceURL"),
    ],
)
def test_what_is_wrong_is_named(values: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidRequest, match=fault):
        override_feed(values, "priorityOverride")
