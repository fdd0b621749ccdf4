"""The device server: wires store, gate, bench and registration into one gRPC server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tilefarm.address import check_address, is_loopback
from tilefarm.clock import Clock, SystemClock
from tilefarm.duties import until
from tilefarm.errors import SelfTestError, SettingsError
from tilefarm.lease import DeviceInfo
from tilefarm.measurement import DeviceClock
from tilefarm.names import IdSource, RandomIds
from tilefarm.rpc import device_calls, listening, serving
from tilefarm.rpc.connections import Connections
from tilefarm.rpc.places import Places
from tilefarm.rpc.security import Security
from tilefarm.rpc.version import PROTOCOL
from tilefarm.target import Target
from tilefarm.trust.access import is_name
from tilefarm.trust.tls import Credentials
from tilefarm.watch.log import LineLog, Log
from tilefarm.watch.metrics import DEVICE_METRICS, call_meter
from tilefarm.watch.operations import UNWATCHED, Operations
from tilefarm.watch.prometheus import metrics_at

from device_server.counted import DEVICE_RULES, counted
from device_server.device.bench import Bench, BenchSettings
from device_server.device.board import Board
from device_server.device.canary import Canary, Proof
from device_server.device.condition import Condition
from device_server.device.gate import FenceGate
from device_server.device.health import health_of
from device_server.device.hooks import NO_HOOKS, Hooks
from device_server.device.kernel_runner import KernelRunner
from device_server.device.known_kernel import KnownKernel
from device_server.device.odometer import Odometer
from device_server.device.quarantined import QuarantinedRuns
from device_server.device.registration import Registration
from device_server.device.runner_thread import RunnerThread
from device_server.device.secret import device_secret
from device_server.device.self_test import machine_of
from device_server.device.servicer import DeviceServicer
from device_server.device.spoiled import SpoiledFence
from device_server.device.store import BlobStore, StoreLimits
from device_server.device.watch import Watch, WatchLimits
from device_server.moderated import moderated

MOST_CONNECTIONS: Final = 2048
"""A few are those of clients; strangers need not take all of the others."""

MOST_CALLS: Final = 256
"""That are answered at a time: who holds the lease, who looks on, and who reads results."""

_EVERYWHERE: Final = ("0.0.0.0", "[::]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSettings:
    """How one device server is set up.

    Attributes:
        name: unique on its tracker.
        target: what the device implements.
        folder: where it keeps its blobs; its alone.
        tracker: address to register at; None: nobody can lease it.
        listen: `host:port` or `unix:/path`; on loopback if there is no TLS.
        labels: free (key, value) pairs for selection.
        limits: caps of the blob store.
        grace_seconds: what a run may take beyond its kernel's time (start a child, load, compare)
            before the device counts as hung.
        watch: how closely it is watched.
        hooks: what may be done to its board.
    """

    name: str
    target: Target
    folder: Path
    tracker: str | None = None
    listen: str = "127.0.0.1:0"
    labels: tuple[tuple[str, str], ...] = ()
    limits: StoreLimits = field(default_factory=StoreLimits)
    grace_seconds: float = 20.0
    watch: WatchLimits = field(default_factory=WatchLimits)
    hooks: Hooks = NO_HOOKS

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise SettingsError(
                f"--name {self.name!r}: not a name", "letters, digits and . _ -, at most 64 of them"
            )
        if self.tracker:
            check_address(self.tracker)
        if self.tracker and not self._reachable(self.tracker):
            raise SettingsError(
                f"{self.listen} is no address under which those at the tracker {self.tracker}"
                " reach this device",
                "--listen with one of this machine's addresses, 10.0.0.2:9191 for example",
            )

    def _reachable(self, tracker: str) -> bool:
        if is_loopback(self.listen):
            return is_loopback(tracker)
        return self.listen.rpartition(":")[0] not in _EVERYWHERE


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
    with ExitStack() as owned:
        condition = Condition()
        # The child of one that hangs may not even be killed.
        owned.callback(lambda: None if condition.hung else runner.close())
        metrics = owned.enter_context(
            metrics_at(operations.metrics, DEVICE_METRICS, log=log, tls=security.tls)
        )
        log = counted(moderated(log, clock), metrics, DEVICE_RULES)
        store = owned.enter_context(BlobStore(settings.folder, settings.limits))
        secret = device_secret(settings.folder)
        spoiled = SpoiledFence(settings.folder / "spoiled.json", log, device=settings.name)
        gate = FenceGate(epoch, secret, spoiled.lease)

        def spoil(why: str) -> None:
            gate.spoil(why)
            spoiled.spoil()

        board = Board(settings.hooks, settings.folder, log, device=settings.name)
        await board.prepare()
        odometer = Odometer(clock)
        thread = RunnerThread(
            settings.name,
            condition,
            log,
            odometer=odometer,
            grace_seconds=settings.grace_seconds,
        )
        owned.callback(thread.close)
        canary = Canary(known, runner, settings.folder / "known", clock=clock, device=settings.name)
        watch = Watch(
            canary,
            thread,
            condition,
            settings.watch,
            log,
            device=settings.name,
            spoil=spoil,
        )
        try:
            proof = await watch.prove()
        except SelfTestError:
            spoiled.spoil()
            raise
        bench_settings = BenchSettings(
            device=settings.name, machine=machine_of(settings.target), clock=proof.clock
        )
        quarantined = QuarantinedRuns(
            settings.folder / "quarantined.json", log, clock, device=settings.name
        )
        bench = Bench(runner, thread, watch, bench_settings, clock, log, quarantined)

        def readmit() -> None:
            quarantined.forget()
            watch.readmit()

        capabilities = _capabilities(settings, runner, epoch, proof)
        servicer = DeviceServicer(
            capabilities,
            gate,
            store,
            bench,
            watch,
            spoiled,
            clock=clock,
            log=log,
            signing_key=credentials.signing_key,
        )
        server = await listening.start(
            servicer.routes(),
            listen=settings.listen,
            desk=serving.Desk(
                component=settings.name,
                door=security.door(log, clock),
                clock=clock,
                log=log,
                places=Places(MOST_CALLS),
                connections=Connections(MOST_CONNECTIONS),
                meter=call_meter(metrics),
            ),
            tls=security.tls,
            health_of=lambda name: health_of(name, condition),
        )
        address = server.address
        log("ready", address=address, target=settings.target.digest.short, epoch=epoch)
        on_ready(address)
        duties = [
            server.keep(),
            watch.cool_down(),
            watch.readmissions(),
            board.rescue(thread.stuck, condition),
        ]
        if settings.tracker:
            registration = Registration(
                settings.tracker,
                credentials,
                _info(settings, capabilities, address, proof.clock),
                secret=secret,
                gate=gate,
                clock=clock,
                condition=condition,
                usage=lambda: odometer.usage,
                refused=quarantined,
                readmit=readmit,
                log=log,
            )
            duties.append(_registered(registration))
        try:
            await until(stopping, duties)
        finally:
            await server.stop()
            log("stopped", address=address)


async def _registered(registration: Registration) -> None:
    """Stays registered until cancelled or refused for good."""
    try:
        await registration.keep()
    finally:
        await registration.leave()


def _capabilities(
    settings: DeviceSettings, runner: KernelRunner, epoch: str, proof: Proof
) -> device_calls.Capabilities:
    return device_calls.Capabilities(
        protocol=PROTOCOL.major,
        protocol_minor=PROTOCOL.minor,
        name=settings.name,
        target=settings.target.digest,
        runtime=runner.runtime_id,
        sandbox=runner.sandbox,
        epoch=epoch,
        max_blob_nbytes=settings.limits.blob_nbytes,
        self_test=str(proof),
    )


def _info(
    settings: DeviceSettings,
    capabilities: device_calls.Capabilities,
    address: str,
    clock: DeviceClock,
) -> DeviceInfo:
    return DeviceInfo(
        name=settings.name,
        address=address,
        target=capabilities.target,
        runtime=capabilities.runtime,
        sandbox=capabilities.sandbox,
        epoch=capabilities.epoch,
        labels=settings.labels,
        self_test=capabilities.self_test,
        clock=clock,
    )
