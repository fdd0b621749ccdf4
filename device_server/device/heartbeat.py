"""What a device says with every heartbeat, and does about its tracker's answers."""

from __future__ import annotations

from collections.abc import Callable

from tilefarm.rpc.tracker_calls import DeviceRef, Heartbeat, HeartbeatReply, Usage

from device_server.device.fencing import FenceGate
from device_server.device.health_state import HealthState
from device_server.device.quarantined import QuarantinedRuns


class Heartbeats:
    """Makes heartbeats, one after the other, and hears the answers. Lives in one event loop.

    Args:
        gate: hears which leases have ended.
        condition: why the device cannot run; hears whether it is in quarantine.
        usage: what it has done in this life.
        refused: runs that it does not begin, told to a tracker that does not know them yet;
            forgotten when somebody puts the device back into service.
        readmit: has the device checked anew then; returns at once, as a device beats on while it
            waits for its turn.
    """

    def __init__(
        self,
        gate: FenceGate,
        condition: HealthState,
        *,
        usage: Callable[[], Usage],
        refused: QuarantinedRuns,
        readmit: Callable[[], None],
    ) -> None:
        self._gate = gate
        self._condition = condition
        self._usage = usage
        self._refused = refused
        self._readmit = readmit
        self._readmissions = 0
        self._refused_edition: int | None = None

    def next(self, device: DeviceRef) -> Heartbeat:
        """What the device says now."""
        told, ours = self._refused_edition, self._refused.edition
        return Heartbeat(
            name=device.name,
            epoch=device.epoch,
            resting=self._condition.resting,
            quarantine=self._condition.news,
            usage=self._usage(),
            refused=None if told in (None, ours) else self._refused.told,
        )

    def heard(self, reply: HeartbeatReply) -> None:
        """The tracker has answered."""
        if reply.ended_fence is not None:
            self._gate.end(reply.ended_fence)
        self._refused_edition = reply.refused_edition
        readmitted = reply.readmissions > self._readmissions
        self._readmissions = reply.readmissions
        if self._condition.hear(quarantined=reply.quarantined) or readmitted:
            self._refused.forget()
            self._readmit()
