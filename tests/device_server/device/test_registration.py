"""A device whose tracker is silent: what becomes of the lease that it is under."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo, ticket_of
from tilefarm.rpc.device_calls import Claim

from device_server.device.fencing import FenceGate
from device_server.device.health_state import HealthState
from device_server.device.heartbeat import Heartbeats
from device_server.device.quarantined import QuarantinedRuns
from device_server.device.registration import Registration, pause_seconds
from device_server.device.usage_counters import UsageCounters
from device_server.tenancy import Tenancy

SECRET = b"of the device"
INFO = DeviceInfo(
    name="sim0",
    address="127.0.0.1:1",
    target=Digest.of(b"target"),
    runtime="r",
    sandbox="s",
    epoch="e",
)


def leased(gate: FenceGate) -> Tenancy:
    ticket = ticket_of(SECRET, lease_id="lease", fence=5, epoch="e", user="")
    return gate.admit(Claim(lease_id="lease", fence=5, epoch="e", ticket=ticket))


@pytest.mark.parametrize(
    ("asked", "kept"), [(0.0, 0.05), (1e-9, 0.05), (0.25, 0.25), (3.0, 3.0), (1e9, 60.0)]
)
def test_a_device_neither_floods_nor_forgets_its_tracker(asked: float, kept: float) -> None:
    assert pause_seconds(asked) == kept


def test_a_silent_tracker_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    """It may start again meanwhile; after that the device is nobody's."""
    clock, gate, events = ManualClock(), FenceGate("e", SECRET), list[str]()
    tenancy = leased(gate)
    counters = UsageCounters(clock)

    def log(event: str, **_: object) -> None:
        events.append(event)

    async def story() -> None:
        registration = Registration(
            f"unix:{tmp_path}/absent.sock",
            CREDENTIALS,
            lambda: INFO,
            Heartbeats(
                gate,
                HealthState(),
                usage=lambda: counters.usage,
                refused=QuarantinedRuns(tmp_path / "quarantined.json", log, clock, device="sim0"),
                readmit=lambda: None,
            ),
            secret=SECRET,
            gate=gate,
            clock=clock,
            log=log,
        )
        keeping = asyncio.create_task(registration.keep())
        clock.advance(299.0)
        while "tracker_silent" not in events:
            await asyncio.sleep(0.01)
        assert not tenancy.over
        clock.advance(1.0)
        while not tenancy.over:
            await asyncio.sleep(0.01)
        keeping.cancel()
        await registration.leave()

    asyncio.run(asyncio.wait_for(story(), 60.0))
    assert tenancy.over == "the device has lost its tracker"
