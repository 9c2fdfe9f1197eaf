"""Services of others that rounds listen to, read from the sections `priorityOverride` and `pricingApi`."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from armada.model.configuration.reading import Section, boolean, closed, duration_ms, text
from armada.model.errors import InvalidRequest

FILE_SCHEME: Final = "file:"
DEFAULT_PERIOD_MS: Final = 60_000
MIN_PERIOD_MS: Final = 100


class ServiceFeed(msgspec.Struct, frozen=True, kw_only=True):
    """A service to ask every `period_ms`: a gRPC target, or `file:PATH` for a local file in its place.

    With `invents` nothing is asked, and the answer is made up: for trying things out.
    """

    service_url: str
    period_ms: int = DEFAULT_PERIOD_MS
    encrypted: bool = True
    invents: bool = False

    @property
    def file(self) -> str:
        """The path of the file that stands in for the service; empty for a service."""
        return self.service_url.removeprefix(FILE_SCHEME) if self.service_url.startswith(FILE_SCHEME) else ""


@closed
def _override_feed(section: Section) -> ServiceFeed | None:
    return _feed(section, invents=False)


@closed
def _bid_feed(section: Section) -> ServiceFeed | None:
    return _feed(section, invents=section.get("devModeEnabled", boolean, False))


def _feed(section: Section, *, invents: bool) -> ServiceFeed | None:
    enabled = section.get("enabled", boolean, False)
    url = section.get("serviceUrl", text, "")
    period_ms = section.get("updateFrequency", duration_ms, DEFAULT_PERIOD_MS)
    plain = section.get("forceNoTls", boolean, False)
    if not enabled:
        return None
    if period_ms < MIN_PERIOD_MS:
        raise InvalidRequest(f"{section.path('updateFrequency')}: must be at least {MIN_PERIOD_MS} ms")
    if not (url or invents):
        raise InvalidRequest(f"{section.path('serviceUrl')}: which service is to be asked?")
    if url.startswith(("http:", "https:")):
        raise InvalidRequest(
            f"{section.path('serviceUrl')}: {url!r} is no gRPC target such as HOST:PORT; forceNoTls says if encrypted"
        )
    if url == FILE_SCHEME:
        raise InvalidRequest(f"{section.path('serviceUrl')}: which file? write file:PATH")
    return ServiceFeed(service_url=url, period_ms=period_ms, encrypted=not plain, invents=invents)


def override_feed(values: Mapping[str, Any], path: str = "") -> ServiceFeed | None:
    """Read which service overrides queues' priorities (section `priorityOverride`); None where none is asked.

    Raises:
        InvalidRequest: an unknown key, a value of the wrong kind, or no service where one is to be asked.
    """
    return _override_feed(values, path)


def bid_feed(values: Mapping[str, Any], path: str = "") -> ServiceFeed | None:
    """Read which service knows the queues' bids (section `pricingApi`); None where none is asked.

    Raises:
        InvalidRequest: as `override_feed`.
    """
    return _bid_feed(values, path)
