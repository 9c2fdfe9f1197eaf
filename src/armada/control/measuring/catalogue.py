"""All series that a leader shows beside those of its process, in the order of the metrics page."""

from typing import Final

from armada.control.measuring import leading, rounds, standing, transitions
from armada.control.measuring.series import GAUGE, Series

KEPT_BY_FEEDS: Final = (
    Series(
        "armada_scheduler_bid_price_cache_last_refresh_timestamp_seconds",
        GAUGE,
        (),
        "When bids were last read, in Unix seconds",
    ),
)
"""What the process notes itself, as things come in."""

SERIES: Final[tuple[Series, ...]] = (
    *leading.SERIES,
    *rounds.SERIES,
    *transitions.SERIES,
    *standing.SERIES,
    *KEPT_BY_FEEDS,
)
