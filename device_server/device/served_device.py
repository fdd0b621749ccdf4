"""A device that serves: what it answers calls with, and how its tracker knows it."""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.clock import Clock
from tilefarm.lease import DeviceInfo
from tilefarm.power import power_state
from tilefarm.rpc import device_calls
from tilefarm.rpc.version import PROTOCOL
from tilefarm.trust.tls import Credentials
from tilefarm.watch.log import Log

from device_server.device.executor import Executor, ExecutorSettings
from device_server.device.fencing import FenceGate
from device_server.device.folder import DeviceFolder
from device_server.device.heartbeat import Heartbeats
from device_server.device.registration import Registration
from device_server.device.self_test import machine_of
from device_server.device.servicer import DeviceServicer
from device_server.device.settings import DeviceSettings
from device_server.device.watched_device import WatchedDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDevice:
    """A device in one life of its server.

    Attributes:
        epoch: names that life.
        settings: how it is set up.
        folder: what it keeps.
        gate: who may use it.
        watched: what runs its kernels, and sees to it.
    """

    epoch: str
    settings: DeviceSettings
    folder: DeviceFolder
    gate: FenceGate
    watched: WatchedDevice
    clock: Clock
    log: Log

    @property
    def capabilities(self) -> device_calls.Capabilities:
        """What it says of itself to whoever asks."""
        return device_calls.Capabilities(
            protocol=PROTOCOL.major,
            protocol_minor=PROTOCOL.minor,
            name=self.settings.name,
            target=self.settings.target.digest,
            runtime=self.watched.proof.runtime,
            sandbox=self.watched.sandbox,
            epoch=self.epoch,
            max_blob_nbytes=self.settings.limits.blob_nbytes,
            self_test=str(self.watched.proof),
        )

    def servicer(self, signing_key: bytes | None) -> DeviceServicer:
        """What answers its calls.

        Args:
            signing_key: of the artifacts that it loads; None: it loads any.

        Raises:
            SettingsError: the key is none for a device.
        """
        return DeviceServicer(
            self.capabilities,
            self.gate,
            self.folder.store,
            self._executor(),
            self.watched.watch,
            self.folder.spoiled,
            clock=self.clock,
            log=self.log,
            signing_key=signing_key,
        )

    def registration(self, tracker: str, credentials: Credentials, address: str) -> Registration:
        """What keeps it known at a tracker, as one that answers at `address`.

        Raises:
            SettingsError: the credentials cannot be used.
        """
        heartbeats = Heartbeats(
            self.gate,
            self.watched.condition,
            usage=lambda: self.watched.thread.counters.usage,
            refused=self.folder.refused,
            readmit=self.watched.watch.readmit,
        )
        return Registration(
            tracker,
            credentials,
            lambda: self._info(address),
            heartbeats,
            secret=self.folder.secret,
            gate=self.gate,
            clock=self.clock,
            log=self.log,
        )

    def _executor(self) -> Executor:
        settings = ExecutorSettings(
            device=self.settings.name,
            machine=machine_of(self.settings.target),
            clock=self.watched.proof.clock,
        )
        return Executor(
            self.watched.runner,
            self.watched.thread,
            self.watched.watch,
            settings,
            self.clock,
            self.log,
            self.folder.refused,
        )

    def _info(self, address: str) -> DeviceInfo:
        proof, time = self.watched.proof, self.watched.proof.wall_time
        return DeviceInfo(
            name=self.settings.name,
            address=address,
            target=self.settings.target.digest,
            runtime=proof.runtime,
            sandbox=self.watched.sandbox,
            epoch=self.epoch,
            labels=self.settings.labels,
            self_test=str(proof),
            clock=proof.clock,
            known_seconds=0.0 if time is None else time.minimum_seconds,
            known_spread=0.0 if time is None else time.spread,
            power="" if time is None else power_state().words,
        )
