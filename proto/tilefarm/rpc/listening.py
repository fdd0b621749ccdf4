"""Where a server listens: on loopback or a unix socket, or elsewhere with TLS and tokens.

A gRPC server keeps the certificates that it began with: giving it others while it serves is a use
after free in gRPC's core (grpc/grpc#36693) as soon as two connections begin at a time. Rotation is
a new server at the same port instead. New connections go to that; the one before has until then
accepted all of its own, ends each of them gently once it is old enough, and is stopped thereafter.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.rpc.caller import MOST_MESSAGE_NBYTES, Options
from tilefarm.rpc.health import HealthOf, health_routes
from tilefarm.rpc.reflection import reflection_routes
from tilefarm.rpc.serving import Desk, Handlers, Route
from tilefarm.rpc.takeover import lead_to, listening_sockets, share
from tilefarm.trust.bind_policy import require_safe, why_not
from tilefarm.trust.tls import Certificates, TlsFolder
from tilefarm.watch.log import Level

_CONNECTION_SECONDS: Final = 300
"""A connection's age, at which its client is asked to make a new one: under new certificates."""

_HANDSHAKE_SECONDS: Final = 10
"""In which whoever connects has to show a certificate, or begin to speak where none is needed."""

_IDLE_SECONDS: Final = 60
"""For which a connection may carry no call."""

MOST_STREAMS: Final = 128
"""Calls at a time on one connection; the next one waits in its client."""

MOST_HEADERS_NBYTES: Final = 8 << 10
"""Of one call: its path, a token, and whose work it is."""

SERVER_OPTIONS: Final[Options] = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_concurrent_streams", MOST_STREAMS),
    ("grpc.max_receive_message_length", MOST_MESSAGE_NBYTES),
    ("grpc.max_connection_age_ms", 1000 * _CONNECTION_SECONDS),
    ("grpc.server_handshake_timeout_ms", 1000 * _HANDSHAKE_SECONDS),
    ("grpc.max_connection_idle_ms", 1000 * _IDLE_SECONDS),
    # Above the first, calls are refused at random, the more the longer their headers are.
    ("grpc.max_metadata_size", MOST_HEADERS_NBYTES),
    ("grpc.absolute_max_metadata_size", MOST_HEADERS_NBYTES),
)
_ALONE: Final[Options] = (("grpc.so_reuseport", 0),)
"""Two servers on one port would share its connections silently."""

_SHARING: Final[Options] = (("grpc.so_reuseport", 1),)
MOST_CALLS: Final = 1 << 16
"""Of callers who may not be let in, too; `Desk.places` has those of callers who are."""

_STOP_GRACE_SECONDS: Final = 1.0
_PROBE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.25
_QUIET_SECONDS: Final = 60.0
"""From one line on strangers in the log to the next."""

_DRAIN_SECONDS: Final = 1.1 * _CONNECTION_SECONDS + _HANDSHAKE_SECONDS + 5
"""After that the last connection of a server that gets no new ones has ended, but for its calls.

gRPC varies the age of connections by a tenth.
"""

_CALLS_END_SECONDS: Final = 2 * 3600.0
"""No run has more than an hour."""

MOST_SERVERS: Final = 64
"""At one port: so many rotations within the drain lose no call."""


class Listening:
    """A server that answers at `address`: new connections under the latest certificates.

    Args:
        make: makes a gRPC server that has not been started.
        tls: the folder of its certificates; None: no TLS.
        desk: clock and log.

    Raises:
        SettingsError: the certificates cannot be read.
    """

    address: str

    def __init__(
        self, make: Callable[[Options], grpc.aio.Server], *, tls: TlsFolder | None, desk: Desk
    ) -> None:
        self._make = make
        self._tls = tls
        self._desk = desk
        self._certificates = tls.read_usable() if tls is not None else None
        self._newest = make(_ALONE)
        self._group = [self._newest]  # in the order of the port's sockets, see `lead_to`
        self._draining: dict[grpc.aio.Server, float] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._trouble = ""
        self._quiet_until = 0.0

    async def begin(self, listen: str) -> None:
        """Answer calls from now on.

        Raises:
            SettingsError: nobody can listen there, or not under these certificates.
        """
        self.address = await _serve(self._newest, listen, self._certificates)

    async def keep(self) -> None:
        """Follows the certificates, and ends idle strangers' connections, for as long as it lives.

        Certificates of a server on a unix socket, which only its owner reaches, are those of its
        start.
        """
        if self.address.startswith("unix:"):
            await asyncio.Event().wait()  # for ever
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._tls is not None:
                await self._follow(self._tls)
            self._relieve()

    async def stop(self) -> None:
        """Ends it; calls in progress get a moment."""
        await asyncio.gather(*(server.stop(_STOP_GRACE_SECONDS) for server in self._group))
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    @property
    def _now(self) -> float:
        return self._desk.clock.seconds()

    @property
    def _port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def _relieve(self) -> None:
        ended = self._desk.connections.relieve(self._port)
        if ended and self._now >= self._quiet_until:
            self._quiet_until = self._now + _QUIET_SECONDS
            self._desk.log(
                "crowded",
                level=Level.WARNING,
                address=self.address,
                why=f"{plural(ended, 'connection')} on which nobody says who they are",
            )

    async def _follow(self, tls: TlsFolder) -> None:
        try:
            latest = tls.read()
            if latest != self._certificates:
                self._certificates = latest
                await self._renew(tls.read_usable())
            self._trouble = ""
        except SettingsError as error:
            if str(error) != self._trouble:
                self._desk.log(
                    "certificates_fail",
                    level=Level.ERROR,
                    address=self.address,
                    why=f"{error.what}; those from before stay",
                )
            self._trouble = str(error)
        for server in [s for s, ends in self._draining.items() if ends <= self._now]:
            await self._end(server)

    async def _renew(self, certificates: Certificates) -> None:
        """Let a new server take over."""
        server = self._make(_SHARING)
        share(self._port)
        await _serve(server, self.address, certificates)
        self._group.append(server)
        before, self._newest = self._newest, server
        steered = lead_to(self._port, self._group.index(server))
        # Where connections cannot be led to the new one, the one before must not take any more.
        self._draining[before] = self._now + (_DRAIN_SECONDS if steered else 0.0)
        self._desk.log("certificates", address=self.address)
        while len(self._group) > MOST_SERVERS:
            await self._end(next(iter(self._draining)))

    async def _end(self, server: grpc.aio.Server) -> None:
        """Stop one that gets no connections; calls that still go on may end."""
        del self._draining[server]
        sockets = listening_sockets(self._port)
        ending = asyncio.create_task(server.stop(_CALLS_END_SECONDS))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        while listening_sockets(self._port) == sockets and not ending.done():
            await asyncio.sleep(0.01)
        place, last = self._group.index(server), self._group.pop()
        if last is not server:
            self._group[place] = last
        lead_to(self._port, self._group.index(self._newest))


async def start(
    routes: Iterable[Route[Any, Any]],
    *,
    listen: str,
    desk: Desk,
    tls: TlsFolder | None = None,
    options: Options = (),
    health_of: HealthOf,
) -> Listening:
    """A running server.

    Args:
        routes: what it answers.
        listen: `host:port` (port 0 for any free one) or `unix:/path` (made 0600).
        desk: what its handlers share.
        tls: the server's certificates; None for a farm on one machine.
        options: of gRPC, beside those that every server has.
        health_of: how the server is, and what else it answers for.

    Raises:
        SettingsError: the address is none, taken, or not on loopback without TLS; or the
            certificates cannot be used.
    """
    require_safe(listen, tls)
    answers = [*routes, *health_routes(health_of)]
    if tls is None:
        answers += reflection_routes({route.method.service for route in answers})
    handlers = Handlers(answers, desk)
    if not desk.connections.make_room():
        desk.log(
            "few_descriptors",
            level=Level.WARNING,
            connections=desk.connections.most,
            why="the limit of open files (`ulimit -Hn`, LimitNOFILE= of systemd) allows no more",
        )
    bounds: Options = (("grpc.max_allowed_incoming_connections", desk.connections.most),)

    def make(sharing: Options) -> grpc.aio.Server:
        server = grpc.aio.server(
            # Of two values of one option gRPC takes the first.
            options=options + SERVER_OPTIONS + bounds + sharing,
            maximum_concurrent_rpcs=MOST_CALLS,
        )
        server.add_generic_rpc_handlers((handlers,))
        return server

    listening = Listening(make, tls=tls, desk=desk)
    await listening.begin(listen)
    return listening


async def _serve(server: grpc.aio.Server, listen: str, certificates: Certificates | None) -> str:
    """Starts a server; the address that it has got."""
    try:
        address = _bind(server, listen, certificates)
    except BaseException:
        await server.stop(None)
        raise
    await server.start()
    return address


def _bind(server: grpc.aio.Server, listen: str, certificates: Certificates | None) -> str:
    if listen.startswith("unix:"):
        _require_nobody_at(Path(listen.removeprefix("unix:")))
    try:
        if certificates is None:
            port = server.add_insecure_port(listen)
        else:
            port = server.add_secure_port(listen, _server_credentials(certificates))
    except RuntimeError:
        port = 0
    if port == 0:
        raise SettingsError(*why_not(listen))
    if listen.startswith("unix:"):
        Path(listen.removeprefix("unix:")).chmod(0o600)
        return listen
    return f"{listen.rpartition(':')[0]}:{port}"


def _require_nobody_at(path: Path) -> None:
    """Nothing if nobody serves a unix socket: gRPC replaces the one that is there.

    Raises:
        SettingsError: somebody does, or it is no socket.
    """
    what = f"cannot listen on unix:{path}"
    if not path.exists():
        return
    if not path.is_socket():
        raise SettingsError(f"{what}: there is a file of another kind", "name another path")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return  # left behind by a server that was killed
        except OSError as error:
            raise SettingsError(f"{what}: {error.strerror or error}", "name another path") from None
    raise SettingsError(f"{what}: another server serves it", "stop that one, or name another path")


def _server_credentials(certificates: Certificates) -> grpc.ServerCredentials:
    """Credentials that never change, see the module; whoever connects shows a certificate, too."""
    return grpc.ssl_server_credentials(
        [(certificates.key, certificates.certificate)],
        root_certificates=certificates.authority,
        require_client_auth=True,
    )
