"""All series that a leader shows beside those of its process, in the order of the metrics page."""

from typing import Final

from armada.control.measuring import leading, rounds, standing, transitions
from armada.control.measuring.series import Series

SERIES: Final[tuple[Series, ...]] = (*leading.SERIES, *rounds.SERIES, *transitions.SERIES, *standing.SERIES)
