"""The descriptors of this process: how many it may have, how many it has, which are a port's."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_DESCRIPTORS: Final = Path("/proc/self/fd")


def make_room(wanted: int) -> int:
    """Let this process have so many descriptors, if it may; how many it may have now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    room = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))
    return room


def open_descriptors() -> int:
    """How many this process has."""
    return sum(1 for _ in _DESCRIPTORS.iterdir())


def sockets_at(port: int, *, listening: bool) -> Iterator[socket.socket]:
    """The TCP sockets of this process at a port of its own, whoever opened them.

    Args:
        port: where they are.
        listening: those that listen; or else connections that came to them.
    """
    for entry in list(_DESCRIPTORS.iterdir()):
        try:
            number = os.dup(int(entry.name))
        except OSError:
            continue  # closed by now
        try:
            found = socket.socket(fileno=number)
        except OSError:
            os.close(number)
            continue  # a file
        with found:
            if _is_at(found, port, listening=listening):
                yield found


def _is_at(found: socket.socket, port: int, *, listening: bool) -> bool:
    if found.family not in (socket.AF_INET, socket.AF_INET6) or found.type != socket.SOCK_STREAM:
        return False
    listens = bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    return listens is listening and found.getsockname()[1] == port
