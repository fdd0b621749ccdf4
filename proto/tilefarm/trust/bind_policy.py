"""Where a server may listen: on loopback or a unix socket, elsewhere with TLS only."""

from __future__ import annotations

import errno
import socket

from tilefarm.address import check_address, is_loopback
from tilefarm.errors import SettingsError
from tilefarm.trust.tls import TlsFolder


def require_safe(listen: str, tls: TlsFolder | None) -> None:
    """Refuses to listen where strangers are, without TLS: anyone there could read a token.

    Raises:
        SettingsError: the address is none, or neither on loopback nor a unix socket.
    """
    check_address(listen, free_port=True)
    if tls is not None or is_loopback(listen):
        return
    host = listen.rpartition(":")[0]
    raise SettingsError(
        f"{listen} is not on loopback, and without TLS anyone on the network could read the token"
        " and run code",
        f"`tilefarm pki init` and `tilefarm pki issue --host {host}`, then --tls with its folder;"
        " or listen on 127.0.0.1",
    )


def why_not(listen: str) -> tuple[str, str]:
    """Why nobody can listen at an address, and what to try: asked of the system itself."""
    what, free = f"cannot listen on {listen}", "port 0 takes any free one"
    if listen.startswith("unix:"):
        return f"{what}: the folder is absent, or the path too long", "name a path in a folder"
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except socket.gaierror:
        return f"{what}: {host} is no host name that is known here", "an address, 127.0.0.1"
    except OSError as error:
        reason, hint = {
            errno.EADDRINUSE: (
                "the port is in use",
                f"stop who has it (see `ss -ltnp`), or {free}",
            ),
            errno.EADDRNOTAVAIL: ("not an address of this machine", "`ip address` lists them"),
            errno.EACCES: ("not allowed", f"a port above 1023; {free}"),
        }.get(error.errno or 0, (str(error.strerror), free))
        return f"{what}: {reason}", hint
    return f"{what}: gRPC refuses it", free
