"""How one device server is set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tilefarm.address import check_address, is_loopback
from tilefarm.errors import SettingsError
from tilefarm.target import Target
from tilefarm.trust.access import is_name

from device_server.device.blob_store import StoreLimits
from device_server.device.health_monitor import MonitorLimits
from device_server.device.hooks import NO_HOOKS, Hooks

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
    watch: MonitorLimits = field(default_factory=MonitorLimits)
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
