"""The device server: wires store, gate, bench and registration into one gRPC server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tilefarm import calls, serving
from tilefarm.address import check_address
from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import SettingsError
from tilefarm.lease import DeviceInfo
from tilefarm.log import LineLog, Log
from tilefarm.names import IdSource, RandomIds
from tilefarm.target import Target

from device_server import elf, lifetime
from device_server.bench import Bench, BenchSettings, KernelRunner
from device_server.gate import FenceGate
from device_server.registration import Registration
from device_server.runner import Runner
from device_server.servicer import DeviceServicer
from device_server.store import BlobStore, StoreLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSettings:
    """How one device server is set up.

    Attributes:
        name: unique on its tracker.
        target: what the device implements.
        folder: where it keeps its blobs; its alone.
        tracker: address to register at; None to serve without one.
        listen: `host:port` on loopback or `unix:/path`.
        labels: free (key, value) pairs for selection.
        limits: caps of the blob store.
        grace_seconds: see `bench.BenchSettings`.
    """

    name: str
    target: Target
    folder: Path
    tracker: str | None = None
    listen: str = "127.0.0.1:0"
    labels: tuple[tuple[str, str], ...] = ()
    limits: StoreLimits = field(default_factory=StoreLimits)
    grace_seconds: float = 20.0

    def __post_init__(self) -> None:
        if self.tracker:
            check_address(self.tracker)

    def bench(self) -> BenchSettings:
        """The part that the bench needs.

        Raises:
            SettingsError: the target's host is no machine that kernels can be verified for.
        """
        try:
            machine = elf.Machine.of_triple(self.target.host.triple)
        except ValueError as error:
            raise SettingsError(str(error), "x86_64, aarch64 or armv7 hosts") from None
        return BenchSettings(device=self.name, machine=machine, grace_seconds=self.grace_seconds)


async def run_device(
    stopping: asyncio.Event,
    settings: DeviceSettings,
    runner: KernelRunner,
    *,
    token: str,
    on_ready: Callable[[str], None],
    clock: Clock | None = None,
    ids: IdSource | None = None,
    log: Log | None = None,
) -> None:
    """A device server from start to end, in the running event loop; closes the runner at the end.

    Raises:
        SettingsError: the address or the folder cannot be used, or the name was taken over.
        AccessError: the tracker does not know the token.
    """
    clock, log = clock or SystemClock(), log or LineLog(settings.name)
    epoch = (ids or RandomIds()).fresh("epoch")
    gate = FenceGate(epoch)
    with ExitStack() as owned:
        owned.callback(runner.close)
        store = owned.enter_context(BlobStore(settings.folder, settings.limits))
        bench = Bench(runner, store, settings.bench(), clock, log)
        owned.callback(bench.close)
        capabilities = _capabilities(settings, runner, epoch)
        servicer = DeviceServicer(capabilities, gate, store, bench)
        server, address = await serving.start(
            servicer.routes(), listen=settings.listen, token=token, log=log
        )
        log("ready", address=address, target=settings.target.digest.short, epoch=epoch)
        on_ready(address)
        try:
            if settings.tracker:
                registration = Registration(
                    settings.tracker,
                    token,
                    _info(settings, capabilities, address),
                    fence=lambda: gate.fence,
                    well=lambda: not bench.hung,
                    log=log,
                )
                await _registered(registration, stopping)
            else:
                await stopping.wait()
        finally:
            await serving.stop(server)
            log("stopped", address=address)


async def _registered(registration: Registration, stopping: asyncio.Event) -> None:
    """Waits for the stop while the device stays registered; a refusal for good ends the wait."""
    keeping = asyncio.create_task(registration.keep())
    waiting = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((keeping, waiting), return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            keeping.result()
    finally:
        keeping.cancel()
        waiting.cancel()
        await registration.leave()


def _capabilities(settings: DeviceSettings, runner: KernelRunner, epoch: str) -> calls.Capabilities:
    return calls.Capabilities(
        protocol=calls.PROTOCOL,
        name=settings.name,
        target=settings.target.digest,
        runtime=runner.runtime_id,
        sandbox=runner.sandbox,
        epoch=epoch,
        max_blob_nbytes=settings.limits.blob_nbytes,
    )


def _info(settings: DeviceSettings, capabilities: calls.Capabilities, address: str) -> DeviceInfo:
    return DeviceInfo(
        name=settings.name,
        address=address,
        target=capabilities.target,
        runtime=capabilities.runtime,
        sandbox=capabilities.sandbox,
        epoch=capabilities.epoch,
        labels=settings.labels,
    )


def serve(
    *,
    name: str,
    target: Target,
    tracker: str | None,
    listen: str = "127.0.0.1:0",
    token: str,
    folder: Path,
    runtime: Path | None,
    on_ready: Callable[[str], None],
    die_with_parent: bool = False,
) -> None:
    """Runs a device server in this process until SIGTERM or SIGINT.

    Args:
        name: unique on its tracker.
        target: what the device implements.
        tracker: address to register at; None to serve without one.
        listen: `host:port` on loopback or `unix:/path`.
        token: the farm's shared secret.
        folder: where it keeps its blobs; its alone.
        runtime: the VTA library that kernels run on; None for the simulator.
        on_ready: gets the address, once, when calls are answered.
        die_with_parent: end when the thread that started this process ends.

    Raises:
        SettingsError: the address or the folder cannot be used, or the name was taken over.
        InfraError: the runner or its library is not there.
        AccessError: the tracker does not know the token.
    """
    settings = DeviceSettings(
        name=name, target=target, folder=folder, tracker=tracker, listen=listen
    )
    if runtime is not None and not runtime.is_file():
        raise SettingsError(f"{runtime}: no such VTA library", "name a shared object")
    library = runtime.absolute() if runtime is not None else None
    runner = Runner(target=target, library=library, device=name)

    async def main(stopping: asyncio.Event) -> None:
        await run_device(stopping, settings, runner, token=token, on_ready=on_ready)

    lifetime.run_until_stopped(main, die_with_parent=die_with_parent)
