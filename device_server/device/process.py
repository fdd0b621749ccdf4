"""A device server as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from tilefarm.rpc.security import Security
from tilefarm.sandbox import SandboxLevel
from tilefarm.target import Target
from tilefarm.trust.tls import Credentials
from tilefarm.watch.operations import UNWATCHED, Operations

from device_server.device.hooks import NO_HOOKS, Hooks
from device_server.device.self_test import known_kernel_for, require_level, runner_of
from device_server.device.server import run_device
from device_server.device.settings import DeviceSettings
from device_server.server import lifetime


def serve(
    *,
    name: str,
    target: Target,
    tracker: str,
    listen: str = "127.0.0.1:0",
    labels: tuple[tuple[str, str], ...] = (),
    security: Security,
    credentials: Credentials,
    folder: Path,
    runtime: Path | None,
    environment: Mapping[str, str] | None = None,
    threads: int = 1,
    require_sandbox: SandboxLevel = SandboxLevel.SECCOMP,
    on_ready: Callable[[str], None],
    operations: Operations = UNWATCHED,
    hooks: Hooks = NO_HOOKS,
    die_with_parent: bool = False,
) -> None:
    """Runs a device server in this process until SIGTERM or SIGINT.

    Args:
        name: unique on its tracker.
        target: what the device implements.
        tracker: address to register at.
        listen: `host:port` or `unix:/path`; on loopback if there is no TLS.
        labels: free (key, value) pairs for selection.
        security: how it knows its callers.
        credentials: what it shows to the tracker, and the key of the artifacts that it loads.
        folder: where it keeps its blobs; its alone.
        runtime: the VTA library that kernels run on; None for the simulator.
        environment: variables that the library reads.
        threads: that share the work of kernels that are made for it.
        require_sandbox: less than that, and it does not serve.
        on_ready: gets the address, once, when calls are answered.
        operations: how it is watched.
        hooks: what may be done to its board.
        die_with_parent: end when the thread that started this process ends.

    Raises:
        SelfTestError: the known kernel is not right here.
        SettingsError: the name, the address or the folder cannot be used, the name is taken, or
            the sandbox is too weak.
        InfraError: the runner, its library or the known kernel is not there, a hook fails, or the
            known kernel cannot be run.
        DeviceLostError: the device hung, and its power was cut.
        AccessError: the tracker does not know the device, or its role.
    """
    settings = DeviceSettings(
        name=name,
        target=target,
        folder=folder,
        tracker=tracker,
        listen=listen,
        labels=labels,
        hooks=hooks,
    )
    known = known_kernel_for(target)
    runner = runner_of(
        target, runtime=runtime, environment=environment, threads=threads, device=name
    )

    require_level(runner.sandbox, require_sandbox)

    async def main(stopping: asyncio.Event) -> None:
        await run_device(
            stopping,
            settings,
            runner,
            known,
            security=security,
            credentials=credentials,
            on_ready=on_ready,
            operations=operations,
        )

    lifetime.run_until_stopped(main, die_with_parent=die_with_parent)
