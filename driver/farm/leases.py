"""The devices that a run holds: leased one by one, renewed in the background, given back.

When somebody with a fairer claim waits, the tracker says so in its answer to a renewal.

A search has devices of one clock only: cycles are never compared with seconds; and where the clock
tells time, devices that are as fast as one another: see `driver.farm.comparable`.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import (
    ClockError,
    DevicesInUseError,
    FarmFault,
    ImplausibleError,
    InfraError,
    LeaseError,
    NoDeviceError,
)
from tilefarm.lease import DeviceInfo, Lease, clock_label
from tilefarm.measurement import DeviceClock
from tilefarm.names import IdSource, RandomIds
from tilefarm.rpc.tracker_calls import DeviceState
from tilefarm.target import Target
from tilefarm.threads import Breakage, start_thread

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from driver.farm.clock_baselines import ClockBaselines
from driver.farm.comparable import reference_among, why_left_out
from driver.farm.farms import Farm
from driver.farm.lease_file import HeldLeases
from driver.farm.signing import signer

_RENEWALS_PER_TTL: Final = 3
_RETURN_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 1.0
_SLICE_SECONDS: Final = 2.0
_SOONEST_SECONDS: Final = 0.1
_OTHERWISE: Final[Mapping[DeviceClock, str]] = {
    DeviceClock.CYCLES: "this search has times in cycles, and the devices that are registered count"
    " none",
    DeviceClock.SECONDS: "this search has times by the clock, and the devices that are registered"
    " count cycles",
}
"""Why there is no device for times of a kind."""
_UNBELIEVED: Final = (
    "another device; have its owner look at what counts there, and start its server anew"
)
_ANOTHER_FOLDER: Final = "another folder with --out for devices with another clock"

_OTHER_PACE: Final = (
    "start the device's server anew once its machine is idle and as fast as the others, or choose"
    " devices that are alike with --label"
)
_NOT_ASKED: Final[tuple[float, tuple[DeviceState, ...]]] = (-math.inf, ())

Labels: TypeAlias = tuple[tuple[str, str], ...]


def in_words(state: DeviceState) -> str:
    """What a device is doing, or why it does nothing."""
    if state.quarantine:
        return f"in quarantine: {state.quarantine}"
    use = f"rests: {state.resting}" if state.resting else "free"
    if state.owner:
        use = f"in use by {state.user or 'others'}: {state.owner}"
    return f"drained: {state.draining}; {use}" if state.draining else use


@dataclass(frozen=True, slots=True, kw_only=True)
class _Return:
    """A lease that ended here, and when it ends by itself if the tracker does not hear of it."""

    lease: Lease
    device_lost: bool
    why: str
    ends_seconds: float


class Leases:
    """The devices that this run holds, renewed in the background until closed.

    What ends the renewals unexpectedly is raised by the next call of `acquire`, `lost` or `wanted`.

    Args:
        farm: where the tracker is.
        target: what a device must implement.
        owner: for the tracker's list.
        labels: that a device must have.
        priority: among those who wait.
        held: remembers what is held, for who goes on after this run was killed.
        ids: names this run among those of its user, which share devices equally.
    """

    def __init__(
        self,
        farm: Farm,
        target: Target,
        *,
        owner: str,
        labels: tuple[tuple[str, str], ...] = (),
        priority: int = 0,
        held: HeldLeases | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        self._job = (ids or RandomIds()).fresh("job")
        self._file = held or HeldLeases()
        self._has_one_clock = False
        self._device_clock: DeviceClock | None = None
        self._paces = ClockBaselines()
        self._reference: DeviceInfo | None = None
        """Whom devices timed by the clock are compared with, once the search has its first."""
        self._left_out: dict[str, str] = {}
        """Why devices cannot be compared with it, by name."""
        self._there: tuple[float, tuple[DeviceState, ...]] = _NOT_ASKED
        """When it was asked which devices there are, and the answer."""
        self._asking = threading.Lock()
        self._farm = farm
        self._target = target
        self._owner = owner
        self._labels = labels
        self._priority = priority
        self._clock = clock or SystemClock()
        self._held: dict[str, Lease] = {}
        self._had: dict[str, DeviceInfo] = {}
        self._requests: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._due: dict[str, float] = {}
        self._wanted: set[str] = set()
        self._unreturned: list[_Return] = []
        self._unbelieved: dict[tuple[str, str], str] = {}
        """Devices by name and epoch that this run takes no more, and why."""
        self._lock = threading.Lock()
        self._tracker: TrackerClient | None = None
        self._closing = False
        self._stirred = threading.Event()
        self._renewals = Breakage()
        self._thread = start_thread(self._renew, name="leases", broken=self._renewals)

    def keep_to_one_clock(
        self, clock: DeviceClock | None, paces: ClockBaselines | None = None
    ) -> None:
        """From now on only devices with that clock; None: with that of the first one.

        Args:
            paces: of the devices of which the search keeps times.
        """
        self._has_one_clock, self._device_clock = True, clock
        self._paces = paces or ClockBaselines()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Devices that this search could have had and not compared with its others, and why."""
        with self._lock:
            return tuple(f"{name} is left out: {why}" for name, why in self._left_out.items())

    def acquire(self, wait_seconds: float, gone: Callable[[], bool] = lambda: False) -> Lease:
        """One more device.

        Args:
            wait_seconds: how long to stand in line for it.
            gone: asked now and then whether to leave the line before.

        Raises:
            NoDeviceError: none within that time; says what is missing. DevicesInUseError if it is
                only that others use them. ClockError if it is only their clock, or if a search may
                have devices of two.
            ImplausibleError: it would be one that says what cannot be.
            FarmFault: the tracker cannot be asked.
        """
        until = self._clock.seconds() + wait_seconds
        unlike: list[Lease] = []  # held while the tracker is asked for another than these
        try:
            while True:
                left = max(0.0, until - self._clock.seconds())
                try:
                    lease = self._acquire(0.0 if unlike else left, gone)
                except NoDeviceError:
                    if not unlike or left <= 0 or gone():
                        raise
                    self._release_all(unlike)
                    self._clock.sleep(min(left, _RETURN_SECONDS))
                    continue
                if not self._leaves_out(lease.device):
                    return lease
                unlike.append(lease)
        finally:
            self._release_all(unlike)

    def _acquire(self, wait_seconds: float, gone: Callable[[], bool]) -> Lease:
        """As `acquire`, whether or not its times can be compared."""
        began = self._clock.seconds()
        tracker = self._client(wait_seconds)
        left = max(0.0, wait_seconds - (self._clock.seconds() - began))
        request_id = tracker.fresh_request()
        lease: Lease | None = None
        try:
            self._keep(request_id, request_id)
            lease = self._first_free(tracker, request_id, self._labels_now(tracker), left, gone)
        finally:
            if lease is None:
                self._keep(request_id, None)
        if lease is None and gone():
            raise NoDeviceError("nobody waits for a device any more", "give the command again")
        if lease is None:
            raise self._missing(tracker, wait_seconds)
        with self._lock:
            if self._has_one_clock and self._device_clock is None:
                self._device_clock = lease.device.clock
            self._requests[lease.lease_id] = self._requests.pop(request_id)
            self._held[lease.lease_id] = lease
            self._had[lease.device.name] = lease.device
            self._due[lease.lease_id] = self._clock.seconds() + _renewal_seconds(lease)
        self._stirred.set()
        if self._has_one_clock and lease.device.clock is not self._device_clock:
            self._there = _NOT_ASKED  # One of another kind has come since.
            self.release(lease)
            raise self._missing(tracker, wait_seconds)
        if why := self._why_not(lease.device):
            self.release(lease, device_lost=True, why=why)
            raise ImplausibleError(why, _UNBELIEVED)
        return lease

    def device(self, name: str) -> DeviceInfo | None:
        """What is known of a device that the run has had; None for others."""
        with self._lock:
            return self._had.get(name)

    def connect(self, lease: Lease) -> DeviceClient:
        """A client of a leased device, for one thread."""
        shown = self._farm.credentials
        return DeviceClient(lease, shown, sign=signer(shown.signing_key))

    def lost(self, lease: Lease) -> str:
        """Why the tracker no longer knows a lease; empty while it is good."""
        self._renewals.check()
        return self._lost.get(lease.lease_id, "")

    def wanted(self, lease: Lease) -> bool:
        """Whether somebody with a fairer claim waits for the device: it is to be given back."""
        self._renewals.check()
        return lease.lease_id in self._wanted

    def void(self, lease: Lease) -> str:
        """As `lost`, but the tracker is asked now; empty also if it does not answer."""
        self._renew_one(lease)
        return self.lost(lease)

    def release(
        self, lease: Lease, *, device_lost: bool = False, why: str = "", for_good: bool = False
    ) -> None:
        """Give a device back; nobody gets a lost or resting one before it says that it is well.

        A tracker that does not answer is told again in the background.

        Args:
            lease: what ends.
            device_lost: the device did not answer, or not right.
            why: it was lost; of one that was not: why it says that it rests.
            for_good: this run takes it no more until it starts anew; others may.
        """
        with self._lock:
            if for_good:
                self._unbelieved[lease.device.name, lease.device.epoch] = why
            held = self._held.pop(lease.lease_id, None)
            self._due.pop(lease.lease_id, None)
            self._wanted.discard(lease.lease_id)
        if held is None:
            return
        ends = self._clock.seconds() + lease.ttl_seconds
        self._give_back(_Return(lease=lease, device_lost=device_lost, why=why, ends_seconds=ends))
        self._stirred.set()

    def close(self) -> None:
        """Give everything back."""
        self._closing = True
        self._stirred.set()
        self._thread.join()
        for lease in list(self._held.values()):
            self.release(lease)
        self._return_again()
        if self._tracker is not None:
            self._tracker.close()

    def _release_all(self, leases: list[Lease]) -> None:
        while leases:
            self.release(leases.pop())

    def _leaves_out(self, device: DeviceInfo) -> bool:
        """Whether a search cannot compare the device's times with those of its others.

        One of which it keeps times counts as it was then, see `ClockBaselines`.
        """
        if not self._has_one_clock or device.clock is not DeviceClock.SECONDS:
            return False
        with self._lock:
            if why := why_left_out(self._paces.at_first(device), self._compared_with(device)):
                self._left_out[device.name] = why
            else:
                self._left_out.pop(device.name, None)  # it has another pace now
            return bool(why)

    def _compared_with(self, device: DeviceInfo) -> DeviceInfo | None:
        """One of those that the search keeps times of; before that, the one that suits it best."""
        if (kept := self._paces.reference(device)) is not None:
            return kept
        old = self._reference
        if old is None or (old.name == device.name and len(self._held) == 1):
            free = {s.device.name: s.device for s in self._there[1] if self._is_to_be_had(s)}
            self._reference = reference_among((free | {device.name: device}).values())
        return self._reference

    def _is_to_be_had(self, state: DeviceState) -> bool:
        trouble = state.owner or state.draining or state.quarantine or state.resting
        return not trouble and self._fits(state.device)

    def _fits(self, device: DeviceInfo) -> bool:
        return device.target == self._target.digest and device.has(self._labels)

    def _first_free(
        self,
        tracker: TrackerClient,
        request_id: str,
        labels: Labels,
        wait_seconds: float,
        gone: Callable[[], bool],
    ) -> Lease | None:
        """Wait in slices, so that a farm that will never have a device is noticed."""
        deadline = self._clock.seconds() + wait_seconds
        while True:
            self._renewals.check()
            self._farm.check()
            left = max(0.0, deadline - self._clock.seconds())
            lease = self._ask(tracker, request_id, labels, min(left, _SLICE_SECONDS))
            if lease is not None or left <= _SLICE_SECONDS or gone():
                return lease

    def _labels_now(self, tracker: TrackerClient) -> Labels:
        """What a device must have. Its clock is among them only where there is more than one kind:
        trackers of older versions do not know of any.

        Raises:
            ClockError: nothing says which clock a search is to go by.
        """
        if not self._has_one_clock:
            return self._labels
        clocks = self._clocks_there(tracker)
        if self._device_clock is None and len(clocks) > 1:
            raise ClockError(
                f"some devices with target {self._target.name} count cycles and others are timed by"
                " the clock, and a search cannot compare the two",
                "--label clock=cycles or --label clock=seconds",
            )
        if self._device_clock is None or clocks <= {self._device_clock}:
            return self._labels
        if self._device_clock not in clocks and not self._has_had(self._device_clock):
            return self._labels  # one of the others says at once that they are no use
        return (*self._labels, clock_label(self._device_clock))

    def _has_had(self, clock: DeviceClock) -> bool:
        """Whether this run had a device of that clock, which may come back."""
        with self._lock:
            return any(device.clock is clock for device in self._had.values())

    def _clocks_there(self, tracker: TrackerClient) -> frozenset[DeviceClock]:
        """Those of the living devices of the target with all labels.

        A thousand threads of one run ask at a time, and a list of a thousand devices is no small
        answer: it does for all of them.
        """
        with self._asking:
            asked, states = self._there
            if self._clock.seconds() - asked >= _SLICE_SECONDS:
                states = tracker.states()
                self._there = self._clock.seconds(), states
        return frozenset(s.device.clock for s in states if self._fits(s.device))

    def _ask(
        self, tracker: TrackerClient, request_id: str, labels: Labels, wait_seconds: float
    ) -> Lease | None:
        return tracker.acquire(
            self._target.digest,
            labels,
            wait_seconds=wait_seconds,
            owner=self._owner,
            priority=self._priority,
            job=self._job,
            request_id=request_id,
        )

    def _keep(self, key: str, request_id: str | None) -> None:
        """In the file: what was asked for so, under a key; None: it is not held any more."""
        with self._lock:
            if request_id is None:
                self._requests.pop(key, None)
            else:
                self._requests[key] = request_id
            self._file.keep(self._requests.values())

    def _client(self, wait_seconds: float) -> TrackerClient:
        address = self._farm.tracker(wait_seconds)
        with self._lock:
            if self._tracker is None:
                self._tracker = TrackerClient(address, self._farm.credentials)
                self._give_back_left(self._tracker)
            return self._tracker

    def _give_back_left(self, tracker: TrackerClient) -> None:
        for request_id in self._file.left():
            with contextlib.suppress(FarmFault):  # it runs out by itself
                lease = self._ask(tracker, request_id, self._labels, 0.0)
                if lease is not None:
                    tracker.release(lease)

    def _missing(self, tracker: TrackerClient, wait_seconds: float) -> NoDeviceError:
        states = tracker.states()
        fitting = [s for s in states if s.device.target == self._target.digest]
        labelled = [s for s in fitting if s.device.has(self._labels)]
        wanted = f"no device with target {self._target.name} within {wait_seconds:.3g} s"
        clock = self._device_clock
        if labelled and clock and not any(s.device.clock is clock for s in labelled):
            return ClockError(f"{wanted}: {_OTHERWISE[clock]}", _ANOTHER_FOLDER)
        if labelled:
            uses = "; ".join(map(self._use, labelled))
            may_be = [s for s in labelled if s.device.name not in self._left_out]
            in_use = any(s.owner and not (s.draining or s.quarantine) for s in may_be)
            kind = DevicesInUseError if in_use else NoDeviceError
            hint = "wait longer: --device-wait" if may_be else _OTHER_PACE
            vain = all(self._why_not(s.device) for s in labelled)
            return kind(f"{wanted}: {uses}", _UNBELIEVED if vain else hint)
        hint = f"`tilefarm device --target {self._target.name} …` serves one"
        if fitting:
            found = f"{len(fitting)} registered, none with all of --label and --require-sandbox"
        elif states:
            found = f"{len(states)} registered, all with other targets"
        else:
            found = "none is registered"
        return NoDeviceError(f"{wanted}: {found}", hint)

    def _why_not(self, device: DeviceInfo) -> str:
        """Why this run takes a device no more; empty if it does."""
        return self._unbelieved.get((device.name, device.epoch), "")

    def _use(self, state: DeviceState) -> str:
        """A device with what it is doing, or why that does not matter."""
        left_out = self._left_out.get(state.device.name, "")
        why = self._why_not(state.device)
        said = f"is not believed any more: {why}" if why else left_out or in_words(state)
        return f"{state.device.name} {said}"

    def _renew(self) -> None:
        while not self._closing:
            self._stirred.wait(self._pause_seconds())
            self._stirred.clear()
            now = self._clock.seconds()
            for lease in list(self._held.values()):
                if self._due.get(lease.lease_id, now) <= now:
                    self._renew_one(lease)
            self._return_again()

    def _renew_one(self, lease: Lease) -> None:
        assert self._tracker is not None
        pause_seconds = _renewal_seconds(lease)
        try:
            wanted_seconds = self._tracker.renew(lease, lends=True)
            if wanted_seconds:
                pause_seconds = min(pause_seconds, max(wanted_seconds, _SOONEST_SECONDS))
            self._note(lease, wanted=wanted_seconds == 0)
        except LeaseError as error:
            self._lost[lease.lease_id] = error.what
        except FarmFault:
            pass  # the tracker may be back before the time to live is over
        with self._lock:
            if lease.lease_id in self._held:
                self._due[lease.lease_id] = self._clock.seconds() + pause_seconds

    def _note(self, lease: Lease, *, wanted: bool) -> None:
        with self._lock:
            if wanted and lease.lease_id in self._held:
                self._wanted.add(lease.lease_id)
            else:
                self._wanted.discard(lease.lease_id)

    def _return_again(self) -> None:
        with self._lock:
            unreturned, self._unreturned = self._unreturned, []
        for given in unreturned:
            self._give_back(given)

    def _give_back(self, given: _Return) -> None:
        if self._arrived(given):
            self._keep(given.lease.lease_id, None)
        else:
            with self._lock:
                self._unreturned.append(given)

    def _arrived(self, given: _Return) -> bool:
        """Whether the tracker needs no further word of a lease that ended."""
        assert self._tracker is not None
        try:
            self._tracker.release(given.lease, device_lost=given.device_lost, why=given.why)
        except InfraError:
            return self._clock.seconds() >= given.ends_seconds
        except FarmFault:
            return True
        return True

    def _pause_seconds(self) -> float:
        if self._unreturned:
            return _RETURN_SECONDS
        soonest = min(list(self._due.values()), default=None)
        if soonest is None:
            return _IDLE_SECONDS
        return max(0.0, soonest - self._clock.seconds())


def _renewal_seconds(lease: Lease) -> float:
    return max(lease.ttl_seconds / _RENEWALS_PER_TTL, _SOONEST_SECONDS)
