"""A device server is a stack of parts: whatever ends it, those that have started end in turn."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from kit.farm.flaky import FlakyRunner
from kit.farm.in_process import CREDENTIALS, SECURITY
from kit.farm.watched_device import KERNEL
from tilefarm.errors import SelfTestError, SettingsError
from tilefarm.target import TARGETS
from tilefarm.watch.operations import UNWATCHED, Operations

from device_server.device.blob_store import BlobStore
from device_server.device.server import run_device
from device_server.device.settings import DeviceSettings


@dataclass(slots=True)
class Life:
    """One device server in this process, and in which order what it consists of has ended."""

    settings: DeviceSettings
    runner: FlakyRunner
    operations: Operations = UNWATCHED
    events: list[str] = field(default_factory=list)

    def log(self, event: str, **_: object) -> None:
        self.events.append(event)

    def run(self, on_ready: Callable[[str, asyncio.Event], None]) -> None:
        async def body() -> None:
            stopping = asyncio.Event()
            await run_device(
                stopping,
                self.settings,
                self.runner,
                KERNEL,
                security=SECURITY,
                credentials=CREDENTIALS,
                on_ready=lambda address: on_ready(address, stopping),
                log=self.log,
                operations=self.operations,
            )

        asyncio.run(asyncio.wait_for(body(), 30.0))


@pytest.fixture
def life(tmp_path: Path) -> Life:
    """Its runner, which is closed last, looks at what is still there."""
    before = runner_threads()
    settings = DeviceSettings(name="sim0", target=TARGETS["sim"], folder=tmp_path / "device")

    class Last(FlakyRunner):
        def close(self) -> None:
            super().close()
            assert not runner_threads() - before
            BlobStore(settings.folder).close()
            begun.events.append("closed")

    begun = Life(settings, Last(kernel=KERNEL))
    return begun


def runner_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "runner"}


def stop(_address: str, stopping: asyncio.Event) -> None:
    stopping.set()


@contextmanager
def taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_it_proves_itself_answers_and_gives_all_back_its_runner_last(life: Life) -> None:
    life.run(stop)
    assert life.events == ["proved", "ready", "stopped", "closed"]


def test_where_its_numbers_cannot_be_read_nothing_else_has_begun(life: Life) -> None:
    with taken_port() as address:
        life.operations = Operations(metrics=address)
        with pytest.raises(SettingsError, match="cannot listen"):
            life.run(stop)
    assert life.events == ["closed"]


def test_one_that_is_not_right_ends_before_it_answers(life: Life) -> None:
    life.runner.pace = 2.0
    with pytest.raises(SelfTestError):
        life.run(stop)
    assert life.events == ["closed"]


def test_one_whose_address_is_taken_gives_all_back(life: Life) -> None:
    with taken_port() as address:
        life.settings = replace(life.settings, listen=address)
        with pytest.raises(SettingsError, match="cannot listen"):
            life.run(stop)
    assert life.events == ["proved", "closed"]


def test_one_that_cannot_say_that_it_is_ready_answers_no_more(life: Life) -> None:
    addresses = []

    def broken(address: str, _: asyncio.Event) -> None:
        addresses.append(address)
        raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError):
        life.run(broken)
    assert life.events == ["proved", "ready", "stopped", "closed"]
    host, _, port = addresses[0].rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
