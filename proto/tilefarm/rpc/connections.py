"""How many connections a server may have, and what becomes of those where nobody says who they are.

gRPC gives each ten seconds to show a certificate, or to begin to speak, and refuses new ones where
there are too many. A stranger who opens thousands would keep everybody else out for as long.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final
from urllib.parse import unquote

from tilefarm.rpc.descriptors import make_room, open_descriptors, sockets_at

_FEWEST: Final = 64
"""Connections, however few descriptors there are."""

_OTHER_DESCRIPTORS: Final = 512
"""Blobs, children, files that are read again, servers from before."""

_MAPPED: Final = "::ffff:"


class Connections:
    """Tells connections whose callers were let in from others; hurries these if they are many.

    Attributes:
        most: that there may be of both. More than half of them are many.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: set[str] = set()
        self._waiting: set[str] = set()

    def make_room(self) -> bool:
        """Let this process have as many descriptors; if it may not, there may be fewer of them."""
        room = make_room(self.most + _OTHER_DESCRIPTORS) - _OTHER_DESCRIPTORS
        enough = room >= self.most
        self.most = min(self.most, max(room, _FEWEST))
        return enough

    def know(self, peer: str) -> None:
        """Somebody was let in who calls from this address; in gRPC's words, ipv4:10.0.0.2:4711."""
        self._known.add(unquote(peer).partition(":")[2])

    def relieve(self, port: int) -> int:
        """End those on which nobody was let in since the last time, if there are many; how many.

        Args:
            port: to which they came.
        """
        many = self.most // 2
        if abs(open_descriptors() - len(self._known)) <= many:
            self._waiting = set()
            return 0
        here = {_name(connection) for connection in sockets_at(port, listening=False)}
        before, self._waiting = self._waiting, here - self._known
        self._known &= here
        if len(self._waiting) <= many:
            return 0
        ended, late = 0, self._waiting & before
        for connection in sockets_at(port, listening=False):
            if _name(connection) in late:
                with contextlib.suppress(OSError):  # its other end has gone
                    connection.shutdown(socket.SHUT_RDWR)
                    ended += 1
        return ended


def _name(connection: socket.socket) -> str:
    """Who is at the other end, as in gRPC's words; empty if they have gone."""
    try:
        host, port = connection.getpeername()[:2]
    except OSError:
        return ""
    host = host.removeprefix(_MAPPED)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
