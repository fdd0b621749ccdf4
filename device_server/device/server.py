"""The device server: parts that stack, each on those before it; they stop in the reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from tilefarm.background_tasks import until
from tilefarm.clock import Clock, SystemClock
from tilefarm.names import IdSource, RandomIds
from tilefarm.rpc.security import Security
from tilefarm.trust.tls import Credentials
from tilefarm.watch.log import LineLog, Log
from tilefarm.watch.metrics import DEVICE_METRICS
from tilefarm.watch.operations import UNWATCHED, Operations

from device_server.device.fencing import FenceGate
from device_server.device.folder import folder_of
from device_server.device.health import health_of
from device_server.device.health_state import HealthState
from device_server.device.kernel_runner import KernelRunner
from device_server.device.known_kernel import KnownKernel
from device_server.device.registration import Registration
from device_server.device.served_device import ServedDevice
from device_server.device.settings import DeviceSettings
from device_server.device.watched_device import watched_device
from device_server.server.answering import Endpoint, answering
from device_server.server.counted import DEVICE_RULES
from device_server.server.telemetry import telemetry_of

MOST_CONNECTIONS: Final = 2048
"""A few are those of clients; strangers need not take all of the others."""

MOST_CALLS: Final = 256
"""That are answered at a time: who holds the lease, who looks on, and who reads results."""


async def run_device(
    stopping: asyncio.Event,
    settings: DeviceSettings,
    runner: KernelRunner,
    known: KnownKernel,
    *,
    security: Security,
    credentials: Credentials,
    on_ready: Callable[[str], None],
    clock: Clock | None = None,
    ids: IdSource | None = None,
    log: Log | None = None,
    operations: Operations = UNWATCHED,
) -> None:
    """A device server from start to end, in the running event loop; closes the runner at the end.

    It answers calls, and registers, once the known kernel was right.

    Raises:
        SelfTestError: it was not.
        InfraError: the board cannot be programmed, or the known kernel not be run.
        DeviceLostError: the device hung, and its power was cut.
        SettingsError: the address or the folder cannot be used, or the name is taken.
        AccessError: the tracker does not know the device, or its role.
    """
    clock, log = clock or SystemClock(), log or LineLog(settings.name, style=operations.style)
    epoch = (ids or RandomIds()).fresh("epoch")
    async with AsyncExitStack() as parts:
        condition = HealthState()
        parts.callback(_close, runner, condition)
        telemetry = parts.enter_context(
            telemetry_of(
                log, clock, operations, security.tls, table=DEVICE_METRICS, rules=DEVICE_RULES
            )
        )
        log = telemetry.log
        folder = parts.enter_context(folder_of(settings, log, clock))
        spoiled = folder.spoiled
        gate = FenceGate(epoch, folder.secret, leased=spoiled.lease, spoiled=spoiled.spoil)
        watched = await parts.enter_async_context(
            watched_device(
                settings, runner, known, condition, spoil=gate.spoil, clock=clock, log=log
            )
        )
        device = ServedDevice(
            epoch=epoch,
            settings=settings,
            folder=folder,
            gate=gate,
            watched=watched,
            clock=clock,
            log=log,
        )
        server = await parts.enter_async_context(
            answering(
                device.servicer(credentials.signing_key).routes(),
                _endpoint(settings, security),
                telemetry=telemetry,
                clock=clock,
                component=settings.name,
                health_of=lambda name: health_of(name, condition),
            )
        )
        log("ready", address=server.address, target=settings.target.digest.short, epoch=epoch)
        on_ready(server.address)
        duties = []
        if settings.tracker:
            registration = device.registration(settings.tracker, credentials, server.address)
            duties.append(_registered(registration))
        await until(stopping, [*duties, server.keep(), *watched.duties()])


def _close(runner: KernelRunner, condition: HealthState) -> None:
    """Ends a runner, unless it hangs: then its child may not even be killed."""
    if not condition.hung:
        runner.close()


def _endpoint(settings: DeviceSettings, security: Security) -> Endpoint:
    return Endpoint(
        listen=settings.listen,
        security=security,
        most_calls=MOST_CALLS,
        most_connections=MOST_CONNECTIONS,
    )


async def _registered(registration: Registration) -> None:
    """Stays registered until cancelled or refused for good."""
    try:
        await registration.keep()
    finally:
        await registration.leave()
