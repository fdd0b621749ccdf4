"""Devices that count cycles and devices that are timed by the clock, in one farm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, Server, eventually
from kit.manual_clock import ManualClock
from kit.search.toy_spaces import timed
from tilefarm.clock import Clock
from tilefarm.errors import ClockError, DevicesInUseError, NoDeviceError
from tilefarm.measurement import DeviceClock, Measurement, RunFailure, RunJob
from tilefarm.rpc.tracker_calls import DeviceState

from device_server.tracker.client import TrackerClient
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases


class Countless(FakeRunner):
    """A board whose library counts nothing."""

    def known(self, job: RunJob) -> Measurement | RunFailure:
        outcome = super().known(job)
        assert isinstance(outcome, Measurement)
        return replace(outcome, counters=None, sample_cycles=(), wall_time=timed(1e-5))


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


def serve(farm: Farm, tracker: Server, **runners: FakeRunner) -> None:
    """Devices by name; all are registered."""
    for name, runner in runners.items():
        farm.device(name, tracker=tracker, runner=runner)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: {d.name for d in client.devices()} >= set(runners))


def leases_of(
    farm: Farm, tracker: Server, *labels: tuple[str, str], clock: Clock | None = None
) -> Leases:
    remote = RemoteFarm(tracker.address, CREDENTIALS)
    return Leases(remote, farm.target, owner="test", labels=labels, clock=clock)


def test_a_device_says_by_which_clock_it_is_timed(farm: Farm) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, board=Countless(), sim=FakeRunner())
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        clocks = {device.name: device.clock for device in client.devices()}
    assert clocks == {"board": DeviceClock.SECONDS, "sim": DeviceClock.CYCLES}


def test_a_search_that_may_have_both_kinds_is_asked_which(farm: Farm) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, board=Countless(), sim=FakeRunner())
    with closing(leases_of(farm, tracker)) as leases:
        leases.keep_to_one_clock(None)
        with pytest.raises(ClockError, match="some devices with target sim count cycles") as raised:
            leases.acquire(60.0)
    assert raised.value.hint == "--label clock=cycles or --label clock=seconds"


@pytest.mark.parametrize(("clock", "device"), [("seconds", "board"), ("cycles", "sim")])
def test_it_is_a_label(farm: Farm, clock: str, device: str) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, board=Countless(), sim=FakeRunner())
    with closing(leases_of(farm, tracker, ("clock", clock))) as leases:
        leases.keep_to_one_clock(None)
        assert leases.acquire(60.0).device.name == device
        with pytest.raises(DevicesInUseError):
            leases.acquire(0.1)


@pytest.mark.parametrize(
    ("clock", "device"), [(DeviceClock.SECONDS, "board"), (DeviceClock.CYCLES, "sim")]
)
def test_a_search_goes_on_by_the_clock_of_its_records(
    farm: Farm, clock: DeviceClock, device: str
) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, board=Countless(), sim=FakeRunner())
    with closing(leases_of(farm, tracker)) as leases:
        leases.keep_to_one_clock(clock)
        assert leases.acquire(60.0).device.name == device


def test_many_threads_of_a_run_ask_for_one_list_of_devices(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, **{f"sim{n}": FakeRunner() for n in range(4)})
    asked: list[None] = []
    states = TrackerClient.states

    def counted(client: TrackerClient) -> tuple[DeviceState, ...]:
        asked.append(None)
        return states(client)

    monkeypatch.setattr(TrackerClient, "states", counted)
    with closing(leases_of(farm, tracker, clock=ManualClock())) as leases:
        leases.keep_to_one_clock(None)
        for _ in range(4):
            leases.acquire(60.0)
    assert len(asked) == 1


def test_a_new_search_goes_on_by_the_clock_of_its_first_device(farm: Farm) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, sim=FakeRunner())
    with closing(leases_of(farm, tracker)) as leases:
        leases.keep_to_one_clock(None)
        first = leases.acquire(60.0)
        serve(farm, tracker, board=Countless())
        for _ in range(2):
            with pytest.raises(DevicesInUseError):
                leases.acquire(0.1)
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            owners = {s.device.name: s.owner for s in client.states()}
        assert owners == {"sim": "test", "board": ""}
        leases.release(first)
        assert leases.acquire(60.0).device.name == "sim"


@pytest.mark.parametrize(
    ("clock", "runner", "words"),
    [
        (DeviceClock.CYCLES, Countless, "has times in cycles, and the devices .* count none"),
        (DeviceClock.SECONDS, FakeRunner, "has times by the clock, and the devices .* count cyc"),
    ],
)
def test_devices_of_the_other_kind_alone_are_none_and_it_says_so(
    farm: Farm, clock: DeviceClock, runner: type[FakeRunner], words: str
) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, other=runner())
    with closing(leases_of(farm, tracker)) as leases:
        leases.keep_to_one_clock(clock)
        with pytest.raises(ClockError, match=words) as raised:
            leases.acquire(250.0)  # at once: with this limit the test itself would end first
    assert "--out" in raised.value.hint


def test_a_device_that_left_is_waited_for_beside_one_of_the_other_kind(farm: Farm) -> None:
    tracker = farm.tracker()
    sim = farm.device("sim", tracker=tracker, runner=FakeRunner())
    asked: list[None] = []

    def gone() -> bool:
        asked.append(None)
        return True

    with closing(leases_of(farm, tracker, clock=(clock := ManualClock()))) as leases:
        leases.keep_to_one_clock(DeviceClock.CYCLES)
        leases.release(leases.acquire(30.0))
        sim.close()
        serve(farm, tracker, board=Countless())
        clock.sleep(10.0)  # what the tracker said before is of no interest any more
        with pytest.raises(NoDeviceError, match="nobody waits"):
            leases.acquire(200.0, gone)
    assert asked


def test_who_compares_no_times_has_devices_of_both_kinds(farm: Farm) -> None:
    tracker = farm.tracker()
    serve(farm, tracker, board=Countless(), sim=FakeRunner())
    with closing(leases_of(farm, tracker)) as leases:
        assert {leases.acquire(60.0).device.name for _ in range(2)} == {"board", "sim"}
