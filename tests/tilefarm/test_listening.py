"""A server under new certificates takes over from the one before, which ends when it is drained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.farm.in_process import TOKEN
from kit.farm.parties import Parties
from kit.manual_clock import ManualClock
from tilefarm.errors import SettingsError
from tilefarm.rpc import listening, methods, serving, tracker_calls
from tilefarm.rpc.authentication import Authentication
from tilefarm.rpc.call_slots import CallSlots
from tilefarm.rpc.connections import Connections
from tilefarm.rpc.empty import Empty
from tilefarm.rpc.health import Health
from tilefarm.rpc.takeover import listening_sockets
from tilefarm.trust.access import FarmRole, Identity
from tilefarm.trust.tls import TlsFolder
from tilefarm.trust.tokens import SharedSecret

from device_server.tracker.client import TrackerClient


async def no_devices(_: Empty, _by: Identity) -> tracker_calls.Devices:
    return tracker_calls.Devices(states=())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)


class Site:
    """A server, its certificates, its clock and what it logs; lives in one event loop."""

    def __init__(self, folder: Path) -> None:
        self.parties = Parties(folder)
        self.hub = self.parties.issue(FarmRole.TRACKER, "hub")
        self.ann = self.parties.credentials(self.parties.issue(FarmRole.SUBMIT, "ann", hosts=()))
        self.clock = ManualClock()
        self.events: list[str] = []

    async def start(self, listen: str = "127.0.0.1:0") -> listening.Listening:
        door = Authentication(SharedSecret(TOKEN), audit=lambda entry: None, clock=self.clock)
        return await listening.start(
            [serving.unary(methods.LIST_DEVICES, no_devices)],
            listen=listen,
            desk=serving.Desk(
                component="hub",
                authentication=door,
                clock=self.clock,
                log=self.log,
                places=CallSlots(16),
                connections=Connections(64),
            ),
            tls=TlsFolder(self.hub),
            health_of=lambda name: Health.SERVING,
        )

    def log(self, event: str, **fields: object) -> None:
        self.events.append(event)

    async def rotate(self) -> None:
        seen = self.events.count("certificates")
        self.parties.issue(FarmRole.TRACKER, "hub", out=self.hub)
        await until(lambda: self.events.count("certificates") > seen)

    def call(self, address: str) -> None:
        with TrackerClient(address, self.ann) as client:
            assert client.devices() == []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "pki")


def test_servers_from_before_end_when_their_connections_have(site: Site) -> None:
    async def main() -> list[int]:
        server = await site.start()
        port = int(server.address.rpartition(":")[2])
        kept = asyncio.create_task(server.keep())
        counts = []
        try:
            for _ in range(3):
                await site.rotate()
                site.clock.advance(100.0)
                await asyncio.to_thread(site.call, server.address)
            counts.append(listening_sockets(port))
            site.clock.advance(60.0)  # the first one is drained now
            await until(lambda: listening_sockets(port) < 4)
            counts.append(listening_sockets(port))
            await asyncio.to_thread(site.call, server.address)
            site.clock.advance(1000.0)
            await until(lambda: listening_sockets(port) == 1)
            await asyncio.to_thread(site.call, server.address)
            await site.rotate()
            await asyncio.to_thread(site.call, server.address)
        finally:
            kept.cancel()
            await server.stop()
        return [*counts, listening_sockets(port)]

    assert asyncio.run(main()) == [4, 3, 0]


def test_very_many_rotations_end_the_oldest_server_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "MOST_SERVERS", 2)

    async def main() -> int:
        server = await site.start()
        kept = asyncio.create_task(server.keep())
        try:
            for _ in range(4):
                await site.rotate()
                await asyncio.to_thread(site.call, server.address)
            return listening_sockets(int(server.address.rpartition(":")[2]))
        finally:
            kept.cancel()
            await server.stop()

    assert asyncio.run(main()) == 2


def test_no_second_server_takes_part_in_a_port_whatever_was_rotated(site: Site) -> None:
    async def main() -> None:
        server = await site.start()
        kept = asyncio.create_task(server.keep())
        try:
            await site.rotate()
            with pytest.raises(SettingsError, match="the port is in use"):
                await site.start(server.address)
        finally:
            kept.cancel()
            await server.stop()

    asyncio.run(main())


def test_a_server_does_not_begin_with_another_ones_certificate(site: Site) -> None:
    other = site.parties.issue(FarmRole.TRACKER, "other") / "identity.pem"
    key, begin, _ = other.read_bytes().partition(b"-----BEGIN CERTIFICATE")
    _, _, certificate = (site.hub / "identity.pem").read_bytes().partition(begin)
    (site.hub / "identity.pem").write_bytes(key + begin + certificate)
    with pytest.raises(SettingsError, match="no key with its certificate") as told:
        asyncio.run(site.start())
    assert "tilefarm pki rotate" in told.value.hint
