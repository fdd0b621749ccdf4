"""Devices as the farm knows them, and the right to use one for a while."""

from __future__ import annotations

import hmac
import math
from collections.abc import Iterable
from dataclasses import dataclass

from tilefarm.digest import Digest, canonical_json
from tilefarm.measurement import DeviceClock
from tilefarm.sandbox import SANDBOX_LABEL, SandboxLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """One registered device.

    Attributes:
        name: unique on its tracker.
        address: where its DeviceService listens, `host:port` or `unix:/path`.
        target: digest of the target it implements (`Target.digest`).
        runtime: build id of the VTA library it loads.
        sandbox: how strongly kernels are confined, in words
            ("rlimits, no_new_privs, two-stage seccomp"); `SandboxLevel.of` reads them.
        epoch: changes whenever the device server starts anew; leases of older epochs are void.
        labels: free (key, value) pairs for selection, beside `clock` and
            `sandbox`, which every device has.
        self_test: what the known kernel gave before it registered, in words.
        clock: what tells how long a kernel takes on it.
        known_seconds: the shortest time of the known kernel, at the pace that the device has when
            it registers; 0 where cycles are counted, or the device is of an older version.
        known_spread: of that kernel's times, see `WallTime.spread`.
        power: how steady its host's frequency is, in words; where the host's clock tells time.

    Raises:
        ValueError: the known kernel's time cannot be.
    """

    name: str
    address: str
    target: Digest
    runtime: str
    sandbox: str
    epoch: str
    labels: tuple[tuple[str, str], ...] = ()
    self_test: str = ""
    clock: DeviceClock = DeviceClock.CYCLES
    known_seconds: float = 0.0
    known_spread: float = 0.0
    power: str = ""

    def __post_init__(self) -> None:
        if not (0 <= self.known_seconds < math.inf and 0 <= self.known_spread < math.inf):
            raise ValueError(f"a known kernel of {self.known_seconds} s, +-{self.known_spread}")

    def has(self, labels: Iterable[tuple[str, str]]) -> bool:
        """Whether who wants all these labels may have it; `sandbox` wants a level, or more."""
        own = {*self.labels, clock_label(self.clock)}
        level = SandboxLevel.of(self.sandbox)
        return all(
            level.is_at_least(value) if key == SANDBOX_LABEL else (key, value) in own
            for key, value in labels
        )


def label_words(info: DeviceInfo) -> str:
    """The labels of a device in words, with its clock where that is not the usual one."""
    usual = info.clock is DeviceClock.CYCLES
    labels = info.labels if usual else (*info.labels, clock_label(info.clock))
    return " ".join(f"{key}={value}" for key, value in labels)


def clock_label(clock: DeviceClock) -> tuple[str, str]:
    """What selects the devices with that clock."""
    return "clock", clock.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to use a device until the time to live runs out without a renewal.

    `fence` grows with every lease of a device; the device itself refuses a lower one than it has
    seen. `ticket` proves to the device that its tracker gave the lease; see `ticket_of`.
    """

    lease_id: str
    device: DeviceInfo
    fence: int
    ttl_seconds: float
    ticket: bytes = b""


def ticket_of(secret: bytes, *, lease_id: str, fence: int, epoch: str, user: str) -> bytes:
    """What proves a lease to a device: an HMAC-SHA256 under the secret that it registered with.

    Without it any user could make up a claim with a high fence and lock all others out.
    """
    text = canonical_json([lease_id, fence, epoch, user])
    return hmac.digest(secret, text.encode(), "sha256")
