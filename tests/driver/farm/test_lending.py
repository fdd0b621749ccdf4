"""Runs that share devices through a tracker: they give back what others have a fairer claim to."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, Server, eventually
from kit.objects.elves import Elf
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.lease import Lease
from tilefarm.measurement import RunJob
from tilefarm.target import TARGETS

from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits
from driver.farm.device_messages import (
    DeviceLent,
    DeviceLost,
    DeviceUp,
    Message,
    NoDevice,
    Order,
    RunEnded,
)
from driver.farm.device_thread import DeviceThread
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases

SIM = TARGETS["sim"]
CODE = Elf().build()
JOB = RunJob(artifact=Digest.of(CODE), entry="brief", buffers=())
"""A run that takes a while: who never has enough asks for some hundred of them, and not for as many
as the machine can do."""
QUICK = TableLimits(lease_ttl_seconds=4.5, settle_seconds=0.5, turn_seconds=1.0)
"""Turns of a second; leases that last even where a busy machine renews them seconds late."""


class Run:
    """A run that never has enough: as soon as one job is done it gives the next."""

    def __init__(self, tracker: Server, devices: int, wait_seconds: float = 30.0) -> None:
        self.leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="test")
        self.messages: queue.SimpleQueue[Message | Exception | None] = queue.SimpleQueue()
        self.seen: list[Message] = []
        self.held: set[str] = set()
        self.ups: dict[int, Lease] = {}
        self.done: Counter[str] = Counter()
        self._threads = [
            DeviceThread(
                slot,
                self.leases,
                wait_seconds=wait_seconds,
                report=self.messages.put,
                clock=SystemClock(),
            )
            for slot in range(devices)
        ]
        self._given = 0
        self._main = threading.Thread(target=self._hear)
        self._main.start()

    def _hear(self) -> None:
        while (message := self.messages.get()) is not None:
            assert not isinstance(message, Exception)
            self.seen.append(message)
            match message:
                case DeviceUp(lease=lease):
                    self.held.add(lease.device.name)
                    self.ups[message.slot] = lease
                    self._give(message.slot)
                case DeviceLent(device=device) | DeviceLost(device=device):
                    self.held.discard(device)
                case RunEnded(device=device):
                    self.done[device] += 1
                    self._give(message.slot)

    def _give(self, slot: int) -> None:
        self._given += 1
        request = f"{id(self)}-{self._given}"
        order = Order(number=self._given, job=JOB, blobs={JOB.artifact: CODE}, request_id=request)
        self._threads[slot].put(self.ups[slot], order)

    def of(self, kind: type[Message]) -> int:
        """How many messages of a kind there were."""
        return sum(isinstance(message, kind) for message in self.seen)

    def close(self) -> None:
        for thread in self._threads:
            thread.close()
        for thread in self._threads:
            thread.join(60.0)
        self.messages.put(None)
        self._main.join()
        self.leases.close()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@contextmanager
def running(*runs: Run) -> Iterator[None]:
    with ExitStack() as owned:
        for run in runs:
            owned.callback(run.close)
        yield


def test_two_runs_that_want_all_devices_have_half_of_them_each(farm: Farm) -> None:
    tracker = farm.tracker(limits=QUICK)
    for name in ("sim0", "sim1"):
        farm.device(name, tracker=tracker, runner=FakeRunner())
    first = Run(tracker, 2)
    with running(first):
        eventually(lambda: len(first.held) == 2)
        second = Run(tracker, 2)
        with running(second):
            eventually(lambda: len(first.held) == len(second.held) == 1)
            before = first.of(DeviceLent), second.of(DeviceLent)
            done = first.done.total(), second.done.total()
            eventually(
                lambda: first.done.total() > done[0] + 20 and second.done.total() > done[1] + 20
            )
            assert (first.of(DeviceLent), second.of(DeviceLent)) == before == (1, 0), (
                "and then it stays so"
            )
        eventually(lambda: len(first.held) == 2)
    assert first.of(DeviceLost) == second.of(DeviceLost) == 0
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        assert not any(state.owner for state in client.states())


def test_one_device_goes_to_and_fro_and_nobody_runs_out_of_patience(farm: Farm) -> None:
    tracker = farm.tracker(limits=QUICK)
    farm.device("sim0", tracker=tracker, runner=FakeRunner())
    first = Run(tracker, 1, wait_seconds=0.2)
    with running(first):
        eventually(lambda: len(first.held) == 1)
        second = Run(tracker, 1)
        with running(second):
            eventually(
                lambda: first.of(DeviceLent) >= 2 and second.of(DeviceLent) >= 2, seconds=60.0
            )
            assert first.of(NoDevice) == 0, "it waits for its turn, however long that takes"


def test_who_found_no_device_in_time_gets_one_that_comes_free_later(farm: Farm) -> None:
    tracker = farm.tracker(limits=QUICK)
    run = Run(tracker, 1, wait_seconds=0.1)
    with running(run):
        eventually(lambda: run.of(NoDevice) > 0)
        farm.device("sim0", tracker=tracker, runner=FakeRunner())
        eventually(lambda: len(run.held) == 1)
