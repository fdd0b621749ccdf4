"""What systemd, or who else supervises a server, wants to hear: ready, alive, about to end.

The protocol is sd_notify(3)'s: datagrams of KEY=VALUE lines to the socket that NOTIFY_SOCKET names.
Where there is no such socket, nobody wants to hear anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_SIGNS_PER_LIMIT: Final = 3
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """Who started this process and watches it.

    Attributes:
        address: of its socket; abstract ones begin with a NUL. None: nobody watches.
        limit_seconds: silence after which it kills us; None for any.
    """

    address: str | None = None
    limit_seconds: float | None = None

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], pid: int) -> Supervisor:
        """The one that the environment of process `pid` tells of."""
        path = environment.get("NOTIFY_SOCKET")
        if not path:
            return cls()
        limit = environment.get("WATCHDOG_USEC", "")
        watched = environment.get("WATCHDOG_PID", str(pid)) == str(pid) and limit.isdigit()
        return cls(
            address="\0" + path[1:] if path.startswith("@") else path,
            limit_seconds=int(limit) / _MICROSECONDS if watched else None,
        )

    def ready(self, address: str) -> None:
        """Calls are answered at `address` from now on."""
        self._tell(f"READY=1\nSTATUS=serves at {address}")

    def ending(self) -> None:
        """No more calls are taken."""
        self._tell("STOPPING=1\nSTATUS=ends")

    async def keep_alive(self) -> None:
        """Gives signs of life for as long as the event loop turns; returns if none are wanted."""
        while self.limit_seconds:
            self._tell("WATCHDOG=1")
            await asyncio.sleep(self.limit_seconds / _SIGNS_PER_LIMIT)

    def _tell(self, state: str) -> None:
        if self.address is None:
            return
        # A supervisor that has gone is no reason for a server to end.
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out,
        ):
            out.connect(self.address)
            out.send(state.encode())


def supervisor() -> Supervisor:
    """The one of this process."""
    return Supervisor.of_environment(os.environ, os.getpid())
