"""Row 4: a device that turns wrong is found out within 50 kernels; what it said is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.doubtful_search import (
    CANDIDATES,
    KERNEL,
    RIGHT_CYCLES,
    CountingRunner,
    Killed,
    KilledAfter,
    searched,
)
from kit.farm import CREDENTIALS, Farm, Server, eventually
from tilefarm.errors import SuspectError
from tilefarm.measurement import Status

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from tuner.store import Store


def test_nothing_that_a_flaky_device_gave_is_kept(tmp_path: Path) -> None:
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        flaky = CountingRunner(kernel=KERNEL, flips_after=12)
        farm.device("flaky", tracker=tracker, runner=flaky)
        farm.device("sound", tracker=tracker, runner=CountingRunner(kernel=KERNEL))
        with searched(farm, tracker, tmp_path, devices=2) as search:
            kept, suspects = search.store.trials(), search.store.suspects()
            assert search.result.why == "exhausted"
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            eventually(lambda: any("wrong_result" in s.quarantine for s in client.states()))
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == search.result.trials == CANDIDATES
    assert {t.device for t in kept} == {"fake"}
    assert any(t.cycles == RIGHT_CYCLES - 1 for t, _ in suspects)
    assert len(suspects) < 50
    assert all("is not right any more" in why for _, why in suspects)


def test_what_was_taken_back_right_before_a_driver_was_killed_is_measured_by_the_next(
    tmp_path: Path,
) -> None:
    """Of 120 candidates ten are measured: nobody would propose those again by chance."""
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        farm.device("sound", tracker=tracker, runner=CountingRunner(kernel=KERNEL))
        with searched(farm, tracker, tmp_path, devices=1, budget=10) as search:
            kept = search.store.trials()
            for trial in kept[-3:]:
                search.store.doubt(trial, "device flaky is not right any more")
        with searched(farm, tracker, tmp_path, devices=1, run="again", budget=10) as search:
            anew = search.store.trials()
            assert search.result.trials == 3
    assert len(kept) == len(anew) == 10
    assert {(t.workload, t.trace) for t in anew} == {(t.workload, t.trace) for t in kept}


@pytest.mark.parametrize("serves_again", [True, False])
def test_what_it_gave_to_a_driver_that_was_killed_is_taken_back_too(
    tmp_path: Path, serves_again: bool
) -> None:
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        flaky = CountingRunner(kernel=KERNEL, flips_after=12)
        farm.device("flaky", tracker=tracker, runner=flaky)
        with (
            pytest.raises(Killed),
            searched(farm, tracker, tmp_path, devices=1, listen=KilledAfter(20)),
        ):
            pass
        with Store(tmp_path / "records.sqlite") as store:
            wrong = {t.trace for t in store.trials() if t.cycles != RIGHT_CYCLES}
            assert wrong
            assert wrong <= {trial.trace for trial, _ in store.unconfirmed()}
        found_wrong_by_somebody_else(farm, tracker)
        if serves_again:
            flaky.flips_after = 1 << 30
            with TrackerClient(tracker.address, CREDENTIALS) as client:
                client.readmit("flaky")
            eventually(lambda: any(event == "recovered" for event, _ in farm.events))
        farm.device("sound", tracker=tracker, runner=CountingRunner(kernel=KERNEL))
        with searched(farm, tracker, tmp_path, devices=1 + serves_again, run="again") as search:
            kept, suspects = search.store.trials(), search.store.suspects()
            assert search.store.unconfirmed() == []
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == CANDIDATES
    assert wrong <= {trial.trace for trial, _ in suspects}


def found_wrong_by_somebody_else(farm: Farm, tracker: Server) -> None:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=30.0, owner="somebody else")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as device, pytest.raises(SuspectError):
            device.confirm()
        client.release(lease)
        eventually(lambda: any("wrong_result" in s.quarantine for s in client.states()))
