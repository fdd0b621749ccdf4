"""Many at the door of a server: strangers who only connect, and clients who call."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import grpc
from kit.farm.throng import Throng
from tilefarm.errors import UnreachableError
from tilefarm.trust.tls import Credentials, TlsFolder

from device_server.tracker.client import TrackerClient

_STREAMS: Final = 100
"""Of one connection, which takes 128."""

_ATTEMPTS: Final = 5
"""A connection has a second to come about, which a busy machine may not have."""


def connect(address: str) -> socket.socket:
    """A bare TCP connection to a server."""
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def knock_and_run(address: str, times: int, *, at_once: int = 10) -> None:
    """So many connections that are opened and closed, some at once."""
    with ThreadPoolExecutor(at_once) as strangers:
        for _ in strangers.map(lambda _: connect(address).close(), range(times)):
            pass


@contextmanager
def silent_calls(
    address: str,
    path: str,
    metadata: Any,
    *,
    calls: int,
    seconds: float | None = 60.0,
    tls: TlsFolder | None = None,
) -> Iterator[list[Any]]:
    """Calls whose headers are sent, and no message until the end of the context."""
    released = threading.Event()

    def nothing() -> Iterator[bytes]:
        released.wait()
        yield from ()

    with ExitStack() as owned:
        owned.callback(released.set)
        made = []
        for number in range(calls):
            if not number % _STREAMS:
                channel = owned.enter_context(_channel(address, tls))
            start = cast(Callable[..., Any], channel.stream_stream(path, bytes, bytes))
            made.append(start(nothing(), timeout=seconds, metadata=metadata))
        yield made
        for call in made:
            call.cancel()


def _channel(address: str, tls: TlsFolder | None) -> grpc.Channel:
    options = [("grpc.use_local_subchannel_pool", 1)]
    if tls is None:
        return grpc.insecure_channel(address, options=options)
    found = tls.read()
    proof = grpc.ssl_channel_credentials(found.authority, found.key, found.certificate)
    return grpc.secure_channel(address, proof, options=options)


def ask(client: TrackerClient) -> int:
    """One call, tried again where no connection came about in time; how many times that was."""
    for attempt in range(_ATTEMPTS):
        try:
            client.devices()
            return attempt
        except UnreachableError:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt ends")


@dataclass(slots=True)
class Crowd(Throng):
    """Clients of a tracker that call as often as they can, until the end of the context.

    Attributes:
        fresh: make a new connection for each call.
        staying: keep theirs.
        answered: calls of both kinds.
        tried_again: calls that found nobody at first.
        errors: why calls failed for good.
    """

    address: str
    credentials: Credentials
    fresh: int
    staying: int
    answered: Counter[str] = field(default_factory=Counter)
    tried_again: int = 0
    errors: list[Exception] = field(default_factory=list)

    def bodies(self) -> list[Callable[[], None]]:
        come_and_go = [self._guarded(self._come_and_go)] * self.fresh
        return come_and_go + [self._guarded(self._stay)] * self.staying

    def _guarded(self, kind: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                kind()
            except Exception as error:
                self.errors.append(error)

        return run

    def _come_and_go(self) -> None:
        while not self._ended.is_set():
            with TrackerClient(self.address, self.credentials) as client:
                self.tried_again += ask(client)
            self.answered["fresh"] += 1

    def _stay(self) -> None:
        with TrackerClient(self.address, self.credentials) as client:
            while not self._ended.is_set():
                self.tried_again += ask(client)
                self.answered["staying"] += 1
