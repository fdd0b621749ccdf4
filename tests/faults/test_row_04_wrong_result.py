"""Row 4: a device that turns wrong is found out within 50 kernels; what it said is not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, Farm, eventually
from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob, Status

from device_server.device.known_kernel import ENTRY
from device_server.tenancy import OWN, Tenancy
from device_server.tracker.client import TrackerClient
from driver.run_events import DeviceLeft, Notice
from tuner.trial_store import TrialStore

from .wrong_device_search import (
    CANDIDATES,
    KERNEL,
    RIGHT_CYCLES,
    CountingRunner,
    Killed,
    KilledAfter,
    searched,
)


def test_nothing_that_a_flaky_device_gave_is_kept(tmp_path: Path) -> None:
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        flaky = CountingRunner(kernel=KERNEL, flips_after=12)
        farm.device("flaky", tracker=tracker, runner=flaky)
        sound = CountingRunner(kernel=KERNEL)
        farm.device("sound", tracker=tracker, runner=sound)
        with searched(farm, tracker, tmp_path, devices=2) as search:
            kept = search.store.trials()
            assert search.result.why == "exhausted"
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            eventually(lambda: any("wrong_result" in s.quarantine for s in client.states()))
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == search.result.trials == CANDIDATES
    assert {t.device for t in kept} == {"fake"}
    assert len(flaky.seen) > 12, "it was wrong"
    assert len(flaky.seen) + len(sound.seen) - CANDIDATES < 50
    (said,) = [e.text for e in search.events if isinstance(e, Notice)]
    assert "is not right any more" in said


def test_what_it_gave_to_a_driver_that_was_killed_is_not_kept_either(tmp_path: Path) -> None:
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        flaky = CountingRunner(kernel=KERNEL, flips_after=30)
        farm.device("flaky", tracker=tracker, runner=flaky)
        with (
            pytest.raises(Killed),
            searched(farm, tracker, tmp_path, devices=1, listen=KilledAfter(12)),
        ):
            pass
        with TrialStore(tmp_path / "records.sqlite") as store:
            assert {trial.cycles for trial in store.trials()} == {RIGHT_CYCLES}
        flaky.flips_after = 0
        farm.device("sound", tracker=tracker, runner=CountingRunner(kernel=KERNEL))
        with searched(farm, tracker, tmp_path, devices=2, run="again") as search:
            kept = search.store.trials()
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == CANDIDATES


class Boasting(CountingRunner):
    """Says of every kernel but the known one that it took a cycle, for several micro-ops."""

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        outcome = CountingRunner.run(self, job, blob, tenancy)
        if job.entry == ENTRY or not isinstance(outcome, Measurement):
            return outcome
        return replace(outcome, counters=Counters(cycles=1, gemm_uops=5))


def test_nothing_that_cannot_be_is_kept_though_the_known_kernel_is_right(tmp_path: Path) -> None:
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        boasting, sound = Boasting(kernel=KERNEL), CountingRunner(kernel=KERNEL)
        farm.device("boasting", tracker=tracker, runner=boasting)
        farm.device("sound", tracker=tracker, runner=sound)
        with searched(farm, tracker, tmp_path, devices=2) as search:
            kept = search.store.trials()
    assert search.result.why == "exhausted"
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == CANDIDATES
    assert len(boasting.seen) <= 16, "a few, and what it was asked for together with them"
    (left,) = {e.why for e in search.events if isinstance(e, DeviceLeft)}
    assert left == (
        "device boasting says 1 cycle for 5 micro-ops; and what cannot be of another kernel too"
    )
