"""What a lease table remembers of each device and of each lease while they live."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefarm.lease import DeviceInfo
from tilefarm.rpc.tracker_calls import Register

from device_server.tracker.refused import RefusedList
from device_server.tracker.table_state import Holding
from device_server.tracker.usage_rate import UsageRate


@dataclass(slots=True, eq=False)
class Device:
    """A device that is registered.

    Attributes:
        until: when it counts as gone, unless it is heard of before.
        fence: of its last lease.
        lease_id: of the lease that it is under; empty if it is free.
        lost: a client saw it not answering, and it has not said since that it is well.
        resting: why it cannot run, in its own words, as of its last heartbeat or as it told who
            has just given it back.
        unheard: heartbeats until its word counts for more than that of who gave it back: the next
            one may have been on its way by then.
        retired_epochs: its earlier lives, the latest of them.
        gone: it is not registered any more.
        pace: what it does, as it says.
        refused: which runs it refuses, as it says.
    """

    info: DeviceInfo
    secret: bytes
    until: float
    fence: int = 0
    lease_id: str = ""
    lost: bool = False
    resting: str = ""
    unheard: int = 0
    retired_epochs: tuple[str, ...] = ()
    gone: bool = False
    pace: UsageRate = field(default_factory=UsageRate)
    refused: RefusedList = field(default_factory=RefusedList)

    @property
    def registration(self) -> Register:
        """As it registered; its fence is that of its lease, if it is under one."""
        return Register(device=self.info, secret=self.secret)


@dataclass(slots=True, eq=False)
class Held:
    """A lease that lives `until` then, unless it is renewed before.

    Its holder `lends` it if it said so when it last renewed it.
    """

    holding: Holding
    since: float
    until: float
    gone: bool = False
    lends: bool = False
