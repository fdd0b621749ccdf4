"""The tracker: parts that stack, each on those before it; they stop in the reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Final

from tilefarm.background_tasks import until
from tilefarm.clock import Clock, SystemClock
from tilefarm.names import RandomIds
from tilefarm.rpc.caller import SMALL_MESSAGES
from tilefarm.rpc.security import Security
from tilefarm.watch.log import LineLog, Log
from tilefarm.watch.metrics import TRACKER_METRICS
from tilefarm.watch.operations import UNWATCHED, Operations

from device_server.server.answering import Endpoint, answering
from device_server.server.counted import TRACKER_RULES
from device_server.server.telemetry import telemetry_of
from device_server.tracker.call_rate_limit import CallRateLimit
from device_server.tracker.gauges import keep_gauges
from device_server.tracker.health import health_of
from device_server.tracker.leases import LeaseTable
from device_server.tracker.limits import TableLimits
from device_server.tracker.listening_clock import ListeningClock
from device_server.tracker.servicer import TrackerServicer
from device_server.tracker.state_file import TrackerState
from device_server.tracker.table_state import TableChanges

MOST_CONNECTIONS: Final = 8192
"""Of devices and of clients, one each; eight times the largest farm that was measured."""

MOST_CALLS: Final = 4096
"""All devices of a farm may call at the same moment; who waits for a device is counted apart."""


MOST_MESSAGE_NBYTES: Final = 1 << 20
"""Of one request; the longest is a heartbeat that tells which runs a device refuses."""


async def run_tracker(
    stopping: asyncio.Event,
    *,
    listen: str,
    security: Security,
    on_ready: Callable[[str], None],
    state: Path | None = None,
    limits: TableLimits | None = None,
    calls_per_user: float | None = None,
    clock: Clock | None = None,
    log: Log | None = None,
    operations: Operations = UNWATCHED,
) -> None:
    """A tracker from start to end, in the running event loop.

    Raises:
        SettingsError: see `listening.start`, `state_file.TrackerState` and `prometheus.metrics_at`.
    """
    clock, log = clock or SystemClock(), log or LineLog("tracker", style=operations.style)
    # Wall milliseconds are above any fence that an earlier tracker gave, unless time ran backwards;
    # then the fences that devices bring along when they register again are.
    fence, listening = int(clock.wall_seconds() * 1000), ListeningClock(clock)
    table = LeaseTable(listening, RandomIds(), limits=limits, fence=fence)
    async with AsyncExitStack() as parts:
        telemetry = parts.enter_context(
            telemetry_of(
                log, clock, operations, security.tls, table=TRACKER_METRICS, rules=TRACKER_RULES
            )
        )
        log = telemetry.log
        save: Callable[[TableChanges], None] = _forget
        if state is not None:
            kept = parts.enter_context(closing(TrackerState(state, log)))
            table.restore(kept.load())
            save = kept.save
        rates = None if calls_per_user is None else CallRateLimit(calls_per_user, clock)
        servicer = TrackerServicer(table, listening, log, save, rates)
        server = await parts.enter_async_context(
            answering(
                servicer.routes(),
                _endpoint(listen, security),
                telemetry=telemetry,
                clock=clock,
                component="tracker",
                health_of=lambda name: health_of(name, servicer.overview),
            )
        )
        log("ready", address=server.address)
        on_ready(server.address)
        duties = [server.keep(), servicer.watch()]
        if operations.metrics is not None:
            duties.append(keep_gauges(servicer.overview, telemetry.metrics))
        await until(stopping, duties)


def _endpoint(listen: str, security: Security) -> Endpoint:
    return Endpoint(
        listen=listen,
        security=security,
        most_calls=MOST_CALLS,
        most_connections=MOST_CONNECTIONS,
        options=(*SMALL_MESSAGES, ("grpc.max_receive_message_length", MOST_MESSAGE_NBYTES)),
    )


def _forget(_changes: TableChanges) -> None:
    """Keeps nothing."""
