"""A tracker as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tilefarm.rpc.security import Security
from tilefarm.watch.operations import UNWATCHED, Operations

from device_server.server import lifetime
from device_server.tracker.limits import TableLimits
from device_server.tracker.server import run_tracker


def serve(
    *,
    listen: str = "127.0.0.1:0",
    security: Security,
    state: Path | None = None,
    limits: TableLimits | None = None,
    calls_per_user: float | None = None,
    on_ready: Callable[[str], None],
    operations: Operations = UNWATCHED,
    die_with_parent: bool = False,
) -> None:
    """Runs a tracker in this process until SIGTERM or SIGINT.

    Args:
        listen: `host:port` or `unix:/path`; on loopback if there is no TLS.
        security: how it knows its callers.
        state: the file of what it knows; None: a tracker that starts again knows nothing.
        limits: times to live, and leases that one user may hold.
        calls_per_user: a second, on the average; None: as many as they like.
        on_ready: gets the address, once, when calls are answered.
        operations: how it is watched.
        die_with_parent: end when the thread that started this process ends.

    Raises:
        SettingsError: see `run_tracker`.
    """

    async def main(stopping: asyncio.Event) -> None:
        await run_tracker(
            stopping,
            listen=listen,
            security=security,
            state=state,
            limits=limits,
            calls_per_user=calls_per_user,
            on_ready=on_ready,
            operations=operations,
        )

    lifetime.run_until_stopped(main, die_with_parent=die_with_parent)
