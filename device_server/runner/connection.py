"""The connection to a process of the runner: requests to it, replies from it until a deadline."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable
from typing import Final

from tilefarm.closing import Closing

from device_server.runner.frames import Reply, Request, read_reply

_MOST_NBYTES: Final = 1 << 16


class ChildGone(Exception):
    """The connection ended: the process is dead or about to be."""


class ChildSilent(Exception):
    """The process did not reply in time."""


class Connection(Closing):
    """One side of a socket pair; `theirs` is for the process."""

    def __init__(self) -> None:
        self._socket, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._unread = bytearray()
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def close(self) -> None:
        """Let go of both sides. May be called again."""
        self._socket.close()
        self.theirs.close()

    def send(self, request: Request) -> None:
        """Send a request. What a process said before it died is left for the reply to find."""
        frame, descriptors = request.frame, list(request.descriptors)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = socket.send_fds(self._socket, [frame], descriptors) if descriptors else 0
            if sent < len(frame):
                self._socket.sendall(frame[sent:])

    def ask(self, request: Request, within_seconds: float) -> Reply:
        """The reply to a request."""
        self.send(request)
        return self.reply(within_seconds)

    def reply(self, within_seconds: float) -> Reply:
        """The next reply.

        Raises:
            ChildSilent: it does not come in time, nor is it there when the time is over.
            ChildGone: it will never come.
            InfraError: it is none.
        """
        return read_reply(_Incoming(self._take, time.monotonic() + within_seconds))

    def _take(self, count: int, deadline: float) -> bytes:
        """So many bytes. Who was kept from looking until it was too late looks once more."""
        is_over = False
        while len(self._unread) < count:
            left_seconds = deadline - time.monotonic()
            if is_over or not self._poll.poll(1000 * max(0.0, left_seconds)):
                raise ChildSilent
            is_over = left_seconds <= 0
            try:
                arrived = self._socket.recv(_MOST_NBYTES)
            except ConnectionResetError:
                raise ChildGone from None
            if not arrived:
                raise ChildGone
            self._unread += arrived
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken


class _Incoming:
    """Bytes of a connection until a deadline."""

    def __init__(self, take: Callable[[int, float], bytes], deadline: float) -> None:
        self._take = take
        self._deadline = deadline

    def take(self, count: int) -> bytes:
        return self._take(count, self._deadline)
