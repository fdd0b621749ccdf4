"""A device's folder: all that a device keeps over restarts of its server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tilefarm.clock import Clock
from tilefarm.watch.log import Log

from device_server.device.blob_store import BlobStore
from device_server.device.quarantined import QuarantinedRuns
from device_server.device.secret import device_secret
from device_server.device.settings import DeviceSettings
from device_server.device.spoiled import SpoiledFence


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFolder:
    """What is kept.

    Attributes:
        store: the blobs.
        secret: proves that it is the same device after a restart.
        spoiled: the newest lease under which the device was not right.
        refused: the runs that crashed it too often.
    """

    store: BlobStore
    secret: bytes
    spoiled: SpoiledFence
    refused: QuarantinedRuns


@contextmanager
def folder_of(settings: DeviceSettings, log: Log, clock: Clock) -> Iterator[DeviceFolder]:
    """A device's folder, which no other process has while the block lasts.

    Raises:
        SettingsError: it cannot be used.
    """
    folder, device = settings.folder, settings.name
    with BlobStore(folder, settings.limits) as store:
        yield DeviceFolder(
            store=store,
            secret=device_secret(folder),
            spoiled=SpoiledFence(folder / "spoiled.json", log, device=device),
            refused=QuarantinedRuns(folder / "quarantined.json", log, clock, device=device),
        )
