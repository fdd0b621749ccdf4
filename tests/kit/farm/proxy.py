"""A bad network between two parties: a TCP proxy that cuts, delays, damages and half-closes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, Self

from tilefarm.closing import Closing

Way = Literal["up", "down"]
"""Towards the server, or towards the client."""

_PIECE_NBYTES: Final = 64 << 10
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER that ends a connection with RST."""


@dataclass(slots=True)
class _Direction:
    """What happens to bytes on one way, over all connections.

    `flips` are positions, counted over all bytes that ever went this way, of which a bit turns
    over; `ends_at` is the position at which connections break.
    """

    open: asyncio.Event = field(default_factory=asyncio.Event)
    passed: int = 0
    flips: set[int] = field(default_factory=set)
    ends_at: int | None = None

    def damaged(self, data: bytes) -> bytes:
        """The bytes as they leave."""
        out = bytearray(data)
        for at in [f for f in self.flips if self.passed <= f < self.passed + len(data)]:
            out[at - self.passed] ^= 0x10
            self.flips.discard(at)
        if self.ends_at is not None:
            del out[max(0, self.ends_at - self.passed) :]
        self.passed += len(data)
        return bytes(out)


class Proxy(Closing):
    """Passes bytes to `upstream` and back until told otherwise; a context manager.

    What is cut is kept and arrives after `heal`, as TCP has it, unless a party gives up before.
    """

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream = (host, int(port))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._ways: dict[Way, _Direction] = {"up": _Direction(), "down": _Direction()}
        self._delay_seconds = 0.0
        self._greeting_seconds = 0.0
        self._links: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(60)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.heal()
        return self

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def cut(self, *ways: Way) -> None:
        """Nothing passes on these ways any more, both if none is named; nobody is told."""
        chosen = [self._ways[way] for way in ways or ("up", "down")]
        for direction in chosen:
            self._do(direction.open.clear)

    def heal(self) -> None:
        """Everything passes, at once and unharmed."""
        self._do(self._healed)

    def delay(self, seconds: float) -> None:
        """Every piece waits so long."""
        self._do(lambda: setattr(self, "_delay_seconds", seconds))

    def hesitate(self, seconds: float) -> None:
        """Every new connection is accepted at once, and nothing passes on it for so long."""
        self._do(lambda: setattr(self, "_greeting_seconds", seconds))

    def flip(self, way: Way, after_nbytes: int) -> None:
        """Turn a bit over, so many bytes from now."""
        direction = self._ways[way]
        self._do(lambda: direction.flips.add(direction.passed + after_nbytes))

    def truncate(self, way: Way, after_nbytes: int) -> None:
        """Break the connection on which the so manieth byte from now would pass."""
        direction = self._ways[way]
        self._do(lambda: setattr(direction, "ends_at", direction.passed + after_nbytes))

    def reset(self) -> None:
        """Break all connections, as a router does that starts anew; both parties are told."""
        self._do(lambda: _reset(*(writer for link in self._links for writer in link)))

    def half_open(self) -> None:
        """Servers lose their connections; clients are not told, and keep theirs."""
        self.cut("down")
        self._do(lambda: _reset(*(server for _, server in self._links)))

    def passed(self, way: Way) -> int:
        """Bytes that went this way so far."""
        return self._ways[way].passed

    def _do(self, change: Callable[[], object]) -> None:
        done = threading.Event()

        def body() -> None:
            change()
            done.set()

        self._loop.call_soon_threadsafe(body)
        assert done.wait(60)

    def _healed(self) -> None:
        self._delay_seconds = self._greeting_seconds = 0.0
        for direction in self._ways.values():
            direction.open.set()
            direction.flips.clear()
            direction.ends_at = None

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await asyncio.sleep(self._greeting_seconds)
            await self._ways["up"].open.wait()
            server, to_server = await asyncio.open_connection(*self._upstream)
            link = (to_client, to_server)
            self._links.add(link)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pump("up", client, to_server))
                    both.create_task(self._pump("down", server, to_client))
            finally:
                self._links.discard(link)
                to_server.close()
        except* (OSError, asyncio.CancelledError):
            _reset(to_client)  # as who stands behind would
        finally:
            to_client.close()
            self._tasks.discard(task)

    async def _pump(
        self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        direction = self._ways[way]
        while data := await reader.read(_PIECE_NBYTES):
            if self._delay_seconds:
                await asyncio.sleep(self._delay_seconds)
            await direction.open.wait()
            writer.write(direction.damaged(data))
            await writer.drain()
            if direction.ends_at is not None and direction.passed >= direction.ends_at:
                direction.ends_at = None
                raise ConnectionAbortedError
        await direction.open.wait()
        with contextlib.suppress(OSError):
            writer.write_eof()

    async def _stop(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _reset(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()
