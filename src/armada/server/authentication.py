"""Who calls. For now everybody is `anonymous` and may do everything, which is why only this machine may call."""

import ipaddress
import socket
from typing import Any

from armada.control.commands.permissions import ALL_PERMISSIONS
from armada.model.errors import StartupRefused
from armada.model.submission import Caller

ANONYMOUS = Caller(name="anonymous", permissions=ALL_PERMISSIONS)


class Authenticator:
    """Names the caller of a request."""

    async def caller(self, call: Any) -> Caller:
        """Return who calls; raises Unauthenticated once there are credentials that can be wrong."""
        del call
        return ANONYMOUS


def refuse_open_doors(host: str, *, allow_anonymous_anywhere: bool) -> None:
    """Refuse to start where callers of other machines would be let in without credentials.

    Raises:
        StartupRefused: `host` is not a loopback address, and nobody said that this is wanted.
    """
    if allow_anonymous_anywhere or _is_loopback(host):
        return
    raise StartupRefused(
        f"host {host} can be reached from other machines, and callers need no credentials:"
        " listen on 127.0.0.1, or set allow_anonymous_anywhere to let everybody do everything"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None)
    except OSError as error:
        raise StartupRefused(f"host {host!r} is no address of this machine: {error}") from error
    return all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)
