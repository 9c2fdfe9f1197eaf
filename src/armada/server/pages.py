"""The plain HTTP pages of a process (its health, its metrics), and ports to serve them on."""

import gzip
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from armada.model.errors import StartupRefused

# ruff: noqa: PLC0415 - what serves pages is loaded only by processes that serve pages

Application = Callable[..., Any]
"""An ASGI application."""


def health_application(unhealthy: Callable[[], str]) -> Application:
    """Return the page `/health`: 204 while `unhealthy` returns an empty text, else 503 with that text."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route

    async def health(request: Request) -> Response:
        del request
        reason = unhealthy()
        return PlainTextResponse(reason, status_code=503) if reason else Response(status_code=204)

    methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
    return Starlette(routes=[Route("/health", health, methods=methods)])


class PageContent(Protocol):
    """Makes the content of a page."""

    def __call__(self, *, packed: bool) -> Awaitable[bytes]:
        """Return it, packed by gzip if so asked."""


def metrics_application(content: PageContent, content_type: str) -> Application:
    """Return the page `/metrics` with what `content` makes."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def metrics(request: Request) -> Response:
        packed = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Content-Encoding": "gzip"} if packed else {}
        return Response(await content(packed=packed), headers=headers, media_type=content_type)

    return Starlette(routes=[Route(path, metrics) for path in ("/metrics", "/metrics/", "/")])


def registry_application(registry: Any) -> Application:
    """Return the page `/metrics` of a process that has nothing to show but a registry of prometheus_client."""
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    async def content(*, packed: bool) -> bytes:
        return gzip.compress(generate_latest(registry)) if packed else generate_latest(registry)

    return metrics_application(content, CONTENT_TYPE_PLAIN_0_0_4)


class Page:
    """One application on one port. It does nothing while nobody asks."""

    def __init__(self, name: str, application: Application) -> None:
        self._name = name
        self._application = application
        self._server: Any = None
        self._listening: socket.socket | None = None
        self.address = ""

    async def open(self, host: str, port: int) -> None:
        """Listen; raises StartupRefused when the port can't be had."""
        import uvicorn

        self._listening = bound_socket(host, port, self._name)
        self.address = address_text(host, self._listening.getsockname()[1])
        config = uvicorn.Config(
            self._application,
            log_config=None,
            access_log=False,
            lifespan="off",
            # Nothing ticks here, so nothing would keep the date right.
            date_header=False,
            timeout_graceful_shutdown=1,
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._listening])

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            await self._server.shutdown(sockets=[self._listening])


def bound_socket(host: str, port: int, what: str) -> socket.socket:
    """Bind a TCP socket; port 0 takes any free one.

    Raises:
        StartupRefused: the port is taken, may not be used, or the host is no address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise StartupRefused(port_refused(what, host, port, error.strerror or str(error))) from error
    return bound


def port_refused(what: str, host: str, port: int, reason: str) -> str:
    """Say that a port can't be had, and what to do."""
    return (
        f"{what}: can't listen on {address_text(host, port)}: {reason}."
        " Stop what uses the port, or choose another one (0 takes any that is free)"
    )


def address_text(host: str, port: int) -> str:
    """Write an address as it is given to clients."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
