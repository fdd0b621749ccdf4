"""Where the devices of a run come from, as those who run something on them see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tilefarm.lease import Lease

from driver.farm.retrying_client import Client


class LeaseSource(Protocol):
    """Where devices come from; see `driver.farm.leases.Leases`."""

    def acquire(self, wait_seconds: float, gone: Callable[[], bool]) -> Lease:
        """One more device, unless we are `gone`; raises NoDeviceError or a FarmFault."""
        ...

    def connect(self, lease: Lease) -> Client:
        """A client of it."""
        ...

    def lost(self, lease: Lease) -> str:
        """Why the lease is void; empty while it is good."""
        ...

    def wanted(self, lease: Lease) -> bool:
        """Whether it is to be given back, because others have a fairer claim to the device."""
        ...

    def void(self, lease: Lease) -> str:
        """As `lost`, after asking for it now; empty also when nobody can say."""
        ...

    def release(
        self, lease: Lease, *, device_lost: bool = False, why: str = "", for_good: bool = False
    ) -> None:
        """Give it back; `why` it was lost, or rests. `for_good`: it is not to be had again as it
        is.
        """
        ...
