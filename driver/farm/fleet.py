"""The devices of a run: those of a farm that somebody serves, or simulated ones started here."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Final, Protocol

from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import FarmFault, InfraError, LeaseError, NoDeviceError
from tilefarm.lease import Lease
from tilefarm.target import Target

from device_server.client import DeviceClient, TrackerClient
from driver.farm.children import Child
from driver.farm.token import create_token

_RESTARTS: Final = 3
_WATCH_SECONDS: Final = 0.5
_RENEWALS_PER_TTL: Final = 3
_SLICE_SECONDS: Final = 2.0


class Farm(Protocol):
    """Where a tracker is."""

    @property
    def token(self) -> str: ...

    def tracker(self, wait_seconds: float) -> str:
        """Its address `host:port`, once it serves.

        Raises:
            InfraError: it does not serve within that time.
            NoDeviceError: it never will.
        """
        ...

    def check(self) -> None:
        """Nothing while devices may still come.

        Raises:
            NoDeviceError: none will.
        """
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class RemoteFarm:
    """A farm that somebody serves."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._token = token

    @property
    def token(self) -> str:
        return self._token

    def tracker(self, wait_seconds: float) -> str:  # noqa: ARG002
        """The address it was given."""
        return self._address

    def check(self) -> None:
        """Nothing: somebody may start a device at any time."""

    def close(self) -> None:
        """Nothing: it is not ours."""


class LocalFarm:
    """A tracker and simulated devices on loopback, as processes of our own.

    A thread starts them, starts again what died, a few times, and ends them.

    Args:
        target: what the devices implement; written to a file for them.
        devices: how many.
        folder: for token and uploads; the owner's alone.
        log: folder for what they print.
    """

    def __init__(self, target: Target, devices: int, folder: Path, log: Path) -> None:
        self._log = log
        self._devices = devices
        self._folder = folder
        self._token_file = folder / "token"
        self._token = create_token(self._token_file)
        self._target_file = folder / "target.json"
        self._target_file.write_text(target.to_json())
        self._address = ""
        self._hopeless = ""
        self._serving = threading.Event()
        self._closing = threading.Event()
        self._children: list[Child] = []
        self._restarts = 0
        self._thread = threading.Thread(target=self._run, name="farm", daemon=True)
        self._thread.start()

    @property
    def token(self) -> str:
        return self._token

    def tracker(self, wait_seconds: float) -> str:
        self._serving.wait(wait_seconds)
        self.check()
        if not self._address:
            raise InfraError(f"the tracker did not start within {wait_seconds:.3g} s")
        return self._address

    def check(self) -> None:
        if self._hopeless:
            raise NoDeviceError(self._hopeless, f"read {self._log}, or `tilefarm doctor`")

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except InfraError as failure:
            self._hopeless = failure.what
            self._serving.set()
            self._closing.wait()
        finally:
            for child in reversed(self._children):
                child.terminate()
            for child in reversed(self._children):
                child.join()

    def _serve(self) -> None:
        tracker = self._start("tracker", "tracker")
        self._address = tracker.ready()
        self._serving.set()
        devices = [self._start_device(f"sim{n}") for n in range(self._devices)]
        while not self._closing.wait(_WATCH_SECONDS):
            if not tracker.alive:
                tracker = self._restart_tracker()
            devices = [d if d.alive else self._restart(d) for d in devices]
            if not any(d.alive for d in devices):
                self._hopeless = f"no simulated device stays up: {devices[0].last_words()}"

    def _start_device(self, name: str) -> Child:
        return self._start(
            name,
            "device",
            "--name",
            name,
            "--tracker",
            self._address,
            "--target",
            str(self._target_file),
            "--folder",
            str(self._folder / name),
        )

    def _restart_tracker(self) -> Child:
        """Another one at the same address, where the devices will register by themselves."""
        if self._restarts >= _RESTARTS:
            raise InfraError("the tracker of this run does not stay up")
        self._restarts += 1
        tracker = self._start("tracker", "tracker", "--listen", self._address)
        tracker.ready()
        return tracker

    def _restart(self, dead: Child) -> Child:
        if self._restarts >= _RESTARTS:
            return dead
        self._restarts += 1
        return self._start_device(dead.name)

    def _start(self, name: str, *words: str) -> Child:
        log = self._log / f"{name}.log"
        child = Child(name, [*words, "--token-file", str(self._token_file)], log)
        self._children.append(child)
        return child


class Leases:
    """The devices that this run holds, renewed in the background until closed.

    Args:
        farm: where the tracker is.
        target: what a device must implement.
        owner: for the tracker's list.
    """

    def __init__(
        self,
        farm: Farm,
        target: Target,
        *,
        owner: str,
        clock: Clock | None = None,
    ) -> None:
        self._farm = farm
        self._target = target
        self._owner = owner
        self._clock = clock or SystemClock()
        self._held: dict[str, Lease] = {}
        self._lost: dict[str, str] = {}
        self._lock = threading.Lock()
        self._tracker: TrackerClient | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="leases", daemon=True)
        self._thread.start()

    def acquire(self, wait_seconds: float) -> Lease:
        """One more device.

        Raises:
            NoDeviceError: none within that time; says what is missing.
            FarmFault: the tracker cannot be asked.
        """
        began = self._clock.seconds()
        tracker = self._client(wait_seconds)
        left = max(0.0, wait_seconds - (self._clock.seconds() - began))
        lease = self._first_free(tracker, left)
        if lease is None:
            raise NoDeviceError(*self._missing(tracker, wait_seconds))
        with self._lock:
            self._held[lease.lease_id] = lease
        return lease

    def connect(self, lease: Lease) -> DeviceClient:
        """A client of a leased device, for one thread."""
        return DeviceClient(lease, self._farm.token)

    def lost(self, lease: Lease) -> str:
        """Why the tracker no longer knows a lease; empty while it is good."""
        return self._lost.get(lease.lease_id, "")

    def release(self, lease: Lease, *, device_lost: bool = False) -> None:
        """Give a device back; a lost one is taken off the tracker's list."""
        with self._lock:
            held = self._held.pop(lease.lease_id, None)
        if held is not None and self._tracker is not None:
            with contextlib.suppress(FarmFault):
                self._tracker.release(lease, device_lost=device_lost)

    def close(self) -> None:
        """Give everything back."""
        self._closing.set()
        self._thread.join()
        for lease in list(self._held.values()):
            self.release(lease)
        if self._tracker is not None:
            self._tracker.close()

    def _first_free(self, tracker: TrackerClient, wait_seconds: float) -> Lease | None:
        """Wait in slices, so that a farm that will never have a device is noticed."""
        deadline = self._clock.seconds() + wait_seconds
        while True:
            self._farm.check()
            left = max(0.0, deadline - self._clock.seconds())
            lease = tracker.acquire(
                self._target.digest, wait_seconds=min(left, _SLICE_SECONDS), owner=self._owner
            )
            if lease is not None or left <= _SLICE_SECONDS:
                return lease

    def _client(self, wait_seconds: float) -> TrackerClient:
        address = self._farm.tracker(wait_seconds)
        with self._lock:
            if self._tracker is None:
                self._tracker = TrackerClient(address, self._farm.token)
            return self._tracker

    def _missing(self, tracker: TrackerClient, wait_seconds: float) -> tuple[str, str]:
        devices = tracker.devices()
        fitting = [d for d in devices if d.target == self._target.digest]
        wanted = f"no device with target {self._target.name} within {wait_seconds:.3g} s"
        if fitting:
            names = ", ".join(d.name for d in fitting)
            return f"{wanted}: {names} in use by others", "wait longer: --device-wait"
        hint = f"`tilefarm device --target {self._target.name} …` serves one"
        if devices:
            return f"{wanted}: {len(devices)} registered, all with other targets", hint
        return f"{wanted}: none is registered", hint

    def _renew(self) -> None:
        while not self._closing.wait(self._pause_seconds()):
            for lease in list(self._held.values()):
                try:
                    assert self._tracker is not None
                    self._tracker.renew(lease)
                except LeaseError as error:
                    self._lost[lease.lease_id] = error.what
                except FarmFault:
                    continue  # the tracker may be back before the time to live is over

    def _pause_seconds(self) -> float:
        ttl = min((lease.ttl_seconds for lease in list(self._held.values())), default=3.0)
        return ttl / _RENEWALS_PER_TTL
