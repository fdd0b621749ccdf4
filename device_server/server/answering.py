"""A server's address: calls are answered there, and it says when that is over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tilefarm.clock import Clock
from tilefarm.rpc import listening
from tilefarm.rpc.call_slots import CallSlots
from tilefarm.rpc.caller import Options
from tilefarm.rpc.connections import Connections
from tilefarm.rpc.health import HealthOf
from tilefarm.rpc.listening import Listening
from tilefarm.rpc.security import Security
from tilefarm.rpc.serving import Desk, Route
from tilefarm.watch.metrics import call_meter

from device_server.server.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a server is called, by whom, and by how many at a time.

    Attributes:
        listen: `host:port` or `unix:/path`.
        security: how it knows its callers.
        most_calls: that are answered at a time.
        most_connections: that there are at a time.
        options: of gRPC, beside those that every server has.
    """

    listen: str
    security: Security
    most_calls: int
    most_connections: int
    options: Options = ()


@asynccontextmanager
async def answering(
    routes: Iterable[Route[Any, Any]],
    endpoint: Endpoint,
    *,
    telemetry: Telemetry,
    clock: Clock,
    component: str,
    health_of: HealthOf,
) -> AsyncIterator[Listening]:
    """A gRPC server that answers while the block lasts; then calls in progress get a moment.

    Args:
        component: the server's name, in its log and in traces.
        health_of: how it is, and what else it answers for.

    Raises:
        SettingsError: see `listening.start`, and `Security.authentication`.
    """
    log = telemetry.log
    desk = Desk(
        component=component,
        authentication=endpoint.security.authentication(log, clock),
        clock=clock,
        log=log,
        places=CallSlots(endpoint.most_calls),
        connections=Connections(endpoint.most_connections),
        meter=call_meter(telemetry.metrics),
    )
    server = await listening.start(
        routes,
        listen=endpoint.listen,
        desk=desk,
        tls=endpoint.security.tls,
        options=endpoint.options,
        health_of=health_of,
    )
    try:
        yield server
    finally:
        await server.stop()
        log("stopped", address=server.address)
