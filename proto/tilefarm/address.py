"""Where servers are: `host:port` or `unix:/path`, checked before gRPC sees it.

gRPC takes nearly anything: a missing port is 443, and a port beyond 65535 wraps around.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from tilefarm.errors import SettingsError

_PORTS: Final = 1 << 16


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    host = address.rpartition(":")[0].strip("[]")
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(address: str, *, free_port: bool = False) -> None:
    """Nothing if the text is an address; with `free_port`, port 0 stands for any free one.

    Raises:
        SettingsError: it is not.
    """
    if address.startswith("unix:") and address != "unix:":
        return
    host, _, port = address.rpartition(":")
    bare = host.strip("[]")
    well_formed = bool(bare) and port.isascii() and port.isdigit()
    if not well_formed or (":" in bare and host == bare):
        raise SettingsError(
            f"{address!r} is not host:port or unix:/path", "127.0.0.1:9190, for example"
        )
    if not (0 if free_port else 1) <= int(port) < _PORTS:
        raise SettingsError(f"{address}: there is no port {port}", f"1 to {_PORTS - 1}")
