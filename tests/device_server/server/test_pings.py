"""A heartbeat is one message each way: neither side measures the line with pings of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

from kit.farm.in_process import CREDENTIALS, Farm
from tilefarm.errors import UnreachableError
from tilefarm.rpc import methods, tracker_calls
from tilefarm.rpc.caller import AsyncCaller

_PREFACE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
_HEAD = 9
_DATA, _PING = 0, 6
_BEATS = 20


class Line:
    """A TCP relay that counts the HTTP/2 frames that pass, by way and type."""

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream = host, int(port)
        self.frames: Counter[tuple[str, int]] = Counter()
        self.ended = asyncio.Event()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until either side ends it."""
        far_reader, far_writer = await asyncio.open_connection(*self._upstream)
        far_writer.write(await reader.readexactly(_PREFACE))
        ways = (("up", reader, far_writer), ("down", far_reader, writer))
        await asyncio.gather(*(self._pass(*way) for way in ways))
        self.ended.set()

    async def _pass(
        self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readexactly(_HEAD)
                self.frames[way, head[3]] += 1
                writer.write(head + await reader.readexactly(int.from_bytes(head[:3])))
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def beats(tracker: str) -> Counter[tuple[str, int]]:
    """The frames of some heartbeats, one after the other."""
    line = Line(tracker)
    async with await asyncio.start_server(line.carry, "127.0.0.1", 0) as relay:
        host, port = relay.sockets[0].getsockname()
        caller = AsyncCaller(f"{host}:{port}", CREDENTIALS, peer="tracker", lost=UnreachableError)
        beat = tracker_calls.Heartbeat(name="sim0", epoch="e")
        for _ in range(_BEATS):
            await caller.unary(methods.HEARTBEAT, beat, timeout_seconds=60.0)
        await caller.close()
        await line.ended.wait()
    return line.frames


def test_nobody_pings_beside_a_heartbeat(farm: Farm) -> None:
    frames = asyncio.run(beats(farm.tracker().address))
    assert frames["up", _DATA] == frames["down", _DATA] == _BEATS
    assert frames["up", _PING] == frames["down", _PING] == 0
