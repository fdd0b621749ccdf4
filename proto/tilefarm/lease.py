"""Devices as the farm knows them, and the right to use one for a while."""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.digest import Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """One registered device.

    Attributes:
        name: unique on its tracker.
        address: where its DeviceService listens, `host:port` or `unix:/path`.
        target: digest of the target it implements (`Target.digest`).
        runtime: build id of the VTA library it loads.
        sandbox: how strongly kernels are confined, in words
            ("rlimits+no_new_privs+seccomp+landlock7").
        epoch: changes whenever the device server starts anew; leases of older epochs are void.
        labels: free (key, value) pairs for selection.
    """

    name: str
    address: str
    target: Digest
    runtime: str
    sandbox: str
    epoch: str
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to use a device until the time to live runs out without a renewal.

    `fence` grows with every lease of a device; the device itself refuses a lower one than it has
    seen.
    """

    lease_id: str
    device: DeviceInfo
    fence: int
    ttl_seconds: float
