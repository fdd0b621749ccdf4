"""The connection to a process of the runner: requests to it, replies from it until a deadline."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence

from tilefarm.closing import Closing

from device_server.runner.frames import Reply, read_reply

_MOST_NBYTES = 1 << 20


class ChildGone(Exception):
    """The connection ended: the process is dead or about to be."""


class ChildSilent(Exception):
    """The process did not reply in time."""


class Connection(Closing):
    """One side of a socket pair; `theirs` is for the process."""

    def __init__(self) -> None:
        self._socket, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def close(self) -> None:
        """Let go of both sides. May be called again."""
        self._socket.close()
        self.theirs.close()

    def ask(self, frame: bytes, descriptors: Sequence[int], within_seconds: float) -> Reply:
        """The reply to a request that goes with some descriptors."""
        self._send(frame, descriptors)
        return self.reply(within_seconds)

    def reply(self, within_seconds: float) -> Reply:
        """The next reply.

        Raises:
            ChildSilent: it does not come in time.
            ChildGone: it will never come.
            InfraError: it is none.
        """
        return read_reply(_Incoming(self._socket, time.monotonic() + within_seconds))

    def _send(self, frame: bytes, descriptors: Sequence[int]) -> None:
        """Send a request. What a process said before it died is left for the reply to find."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = socket.send_fds(self._socket, [frame], list(descriptors)) if descriptors else 0
            if sent < len(frame):
                self._socket.sendall(frame[sent:])


class _Incoming:
    """Bytes from the process until a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def take(self, count: int) -> bytes:
        chunks: list[bytes] = []
        while count > 0:
            chunk = self._receive(min(count, _MOST_NBYTES))
            chunks.append(chunk)
            count -= len(chunk)
        return b"".join(chunks)

    def _receive(self, count: int) -> bytes:
        left_seconds = self._deadline - time.monotonic()
        if left_seconds <= 0:
            raise ChildSilent
        self._connection.settimeout(left_seconds)
        try:
            chunk = self._connection.recv(count)
        except TimeoutError:
            raise ChildSilent from None
        except ConnectionResetError:
            raise ChildGone from None
        finally:
            self._connection.settimeout(None)
        if not chunk:
            raise ChildGone
        return chunk
