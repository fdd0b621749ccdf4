"""The loop with stand-ins for workers and devices: what it records, and how it ends."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from kit.search.scene import Scene
from kit.search.stand_ins import (
    StandInClient,
    StandInDevices,
    StandInExecutor,
    cycles_of_tile,
    losing_first,
    seconds_of_tile,
)
from tilefarm.clock import SystemClock
from tilefarm.errors import ClockError, DeviceLostError, DeviceSilentError, SuspectError
from tilefarm.lease import Lease
from tilefarm.measurement import (
    Counters,
    DeviceClock,
    Measurement,
    RunFailure,
    RunJob,
    Status,
)
from tilefarm.trace import Trace

from driver.campaign import loop
from driver.campaign.campaign import WorkLimits
from driver.campaign.device_slots import DeviceSlots
from driver.run_events import DeviceLeft, Notice


def test_every_point_of_every_space_is_measured_once() -> None:
    scene = Scene(StandInDevices(2), count=2)
    result = scene.play()
    assert result.why == "exhausted"
    assert result.trials == len(scene.kept) == 12
    assert len({(t.workload, t.trace) for t in scene.kept}) == 12
    assert {t.status for t in scene.kept} == {Status.OK}


class HastyClock(SystemClock):
    """A thousand times as fast as others."""

    def seconds(self) -> float:
        return 1000 * super().seconds()


def test_who_starves_because_few_may_be_out_is_told_so_once() -> None:
    scene = Scene(StandInDevices(3), count=3, lookahead=1, clock=HastyClock())
    scene.on_trial = lambda: time.sleep(0.01)
    scene.play()
    notes = [e.text for e in scene.events if isinstance(e, Notice) and "--lookahead" in e.text]
    assert len(notes) == 1
    assert "no more than 1 candidate may be out" in notes[0]


def test_neither_workers_nor_devices_decide_what_is_searched() -> None:
    """With ends that decide what comes next: the search minimises, and few are out at a time."""

    def asked(workers: int, devices: int) -> dict[int, tuple[object, ...]]:
        scene = Scene(StandInDevices(devices), count=devices, trials=60, extent=720, lookahead=6)
        scene.limits = WorkLimits(workers=workers)
        assert scene.play().trials == 60
        ended = zip(scene.places, scene.kept, strict=True)
        return {number: (trial.workload, trial.trace) for number, trial in ended}

    alone = asked(1, 1)
    assert asked(8, 3) == alone
    assert asked(64, 1) == alone


def test_a_record_tells_what_was_chosen_and_not_what_follows() -> None:
    scene = Scene(StandInDevices())
    scene.play()
    assert {tuple(name for name, _ in trial.point) for trial in scene.kept} == {("inner",)}
    assert [e.default_cycles for e in scene.ended()][-1] == 1000


def test_devices_without_counters_are_timed_and_the_search_minimises_seconds() -> None:
    scene = Scene(StandInDevices(run_kernel=seconds_of_tile, clock=DeviceClock.SECONDS))
    assert scene.play().why == "exhausted"
    assert {(t.status, t.clock, t.cycles) for t in scene.kept} == {
        (Status.OK, DeviceClock.SECONDS, None)
    }
    last = {e.workload: e for e in scene.ended()}
    assert {(e.default_seconds, e.best_seconds) for e in last.values()} == {(1e-3, 83e-6)}
    assert {(e.default_cycles, e.best_cycles) for e in last.values()} == {(None, None)}


class Slowing(StandInDevices):
    """Takes twice as long from its second lease on, and says so; as a processor that gets hot."""

    slower = False

    def acquire(self, wait_seconds: float, gone: Callable[[], bool] = bool) -> Lease:
        lease = super().acquire(wait_seconds, gone)
        self.slower = lease.fence > 1
        device = replace(lease.device, known_seconds=2e-5 if self.slower else 1e-5)
        return replace(lease, device=device)

    def run(self, code: bytes, job: RunJob) -> Measurement:
        measured = seconds_of_tile(code, job)
        assert measured.wall_time is not None
        times = measured.wall_time.scaled(2.0 if self.slower else 1.0)
        return replace(measured, wall_time=times)


def test_times_are_told_at_the_pace_that_a_device_had_at_first() -> None:
    runs: list[RunJob] = []

    def once(code: bytes, job: RunJob) -> Measurement:
        runs.append(job)
        if len(runs) == 4:
            raise SuspectError("it takes longer", retry_seconds=1.0)
        return devices.run(code, job)

    devices = Slowing(run_kernel=once, clock=DeviceClock.SECONDS)
    scene = Scene(devices)
    assert scene.play().why == "exhausted"
    assert devices.slower
    steady = Scene(StandInDevices(run_kernel=seconds_of_tile, clock=DeviceClock.SECONDS))
    steady.play()
    assert {(t.trace, t.cost_seconds) for t in scene.kept} == {
        (t.trace, t.cost_seconds) for t in steady.kept
    }
    assert set(scene.paces) == {("sim0", 1e-5)}
    assert any(
        isinstance(e, Notice) and "takes 20.00 us, not 10.00 us" in e.text for e in scene.events
    )


@pytest.mark.parametrize("clock", DeviceClock)
def test_a_device_that_tells_no_time_ends_a_search_that_has_no_other(clock: DeviceClock) -> None:
    """Before, its zeros were the best that there was."""

    def zeros(code: bytes, job: RunJob) -> Measurement:
        return replace(cycles_of_tile(code, job), counters=Counters())

    scene = Scene(StandInDevices(run_kernel=zeros, clock=clock))
    result = scene.play()
    assert result.why == "no device"
    assert isinstance(result.error, ClockError)
    assert "device sim0 does not say how long kernels take" in result.error.what
    assert result.error.hint
    assert not [t for t in scene.kept if t.status is Status.OK]


def test_the_default_schedules_come_behind_the_first_ones() -> None:
    scene = Scene(StandInDevices())
    scene.play()
    defaults = [at for at, trial in enumerate(scene.kept) if trial.cycles == 1000]
    assert {scene.kept[at].workload for at in defaults} == {t.workload for t in scene.kept}
    assert len(defaults) == 2
    assert max(defaults) <= 3, "behind the first of each, unless that is one"


def test_the_budget_holds() -> None:
    assert Scene(StandInDevices(), trials=5).play().trials == 5


def test_events_carry_the_best_and_the_default() -> None:
    scene = Scene(StandInDevices())
    scene.play()
    last = {e.workload: e for e in scene.ended()}
    assert {(e.default_cycles, e.best_cycles) for e in last.values()} == {(1000, 83)}
    assert scene.ended()[-1].number == 12


def test_what_a_device_gave_since_it_was_last_right_is_measured_on_another() -> None:
    turns = itertools.count(1)

    def flips_at_the_fourth(code: bytes, job: RunJob) -> Measurement | RunFailure:
        if next(turns) == 4:
            raise SuspectError("sim0 is not right any more")
        return cycles_of_tile(code, job)

    devices = StandInDevices(2, flips_at_the_fourth, unchecked=1)
    scene = Scene(devices)
    result = scene.play()
    assert result.why == "exhausted"
    assert result.trials == len(scene.kept) == 12
    assert len({(t.workload, t.trace) for t in scene.kept}) == 12
    assert scene.ended()[-1].number == 12
    assert "sim1" in devices.confirmed


def test_a_device_that_rests_is_not_said_to_be_lost() -> None:
    turns = itertools.count(1)

    def is_busy_at_the_fourth(code: bytes, job: RunJob) -> Measurement | RunFailure:
        if next(turns) == 4:
            raise SuspectError("sim0 has another pace", retry_seconds=0.01)
        return cycles_of_tile(code, job)

    scene = Scene(StandInDevices(1, is_busy_at_the_fourth, unchecked=1))
    assert scene.play().why == "exhausted"
    assert len(scene.kept) == 12
    (left,) = [e for e in scene.events if isinstance(e, DeviceLeft)]
    assert (left.how, left.why) == ("rests", "sim0 has another pace")


def test_nothing_is_kept_before_its_device_was_right() -> None:
    devices = StandInDevices(unchecked=1)
    scene = Scene(devices, trials=5)
    confirmed: list[int] = []
    scene.on_trial = lambda: confirmed.append(len(devices.confirmed))
    scene.play()
    assert len(confirmed) == 5
    assert min(confirmed) >= 1


def test_what_one_session_has_not_confirmed_counts_for_nothing() -> None:
    """A device that turns wrong before it confirms: all it gave is measured again, and told."""

    class Wrong(StandInClient):
        def confirm(self) -> None:
            if not wrong:
                wrong.append(self.name)
                self.faults[:] = [SuspectError(f"{self.name} is not right any more")]
                raise self.faults[0]
            super().confirm()

    wrong: list[str] = []
    scene = Scene(StandInDevices(unchecked=1, client=Wrong))
    assert scene.play().why == "exhausted"
    assert len(scene.kept) == 12
    notices = [e.text for e in scene.events if isinstance(e, Notice)]
    (said,) = notices
    assert said.startswith("measured again, as it was not confirmed: ")
    assert said.endswith("(sim0 is not right any more)")


def test_what_is_told_carries_its_place_in_the_order_of_asking() -> None:
    scene = Scene(StandInDevices(3), count=3)
    scene.play()
    assert sorted(scene.places) == [*range(1, 13)]


def test_spans_say_who_did_what() -> None:
    scene = Scene(StandInDevices())
    scene.play()
    assert {(s.lane, s.kind) for s in scene.loop.spans} == {
        ("driver", "propose"),
        ("compile 1", "compile"),
        ("sim0", "transfer"),
        ("sim0", "run"),
    }
    assert [kind for kind, _, _ in scene.kept[0].spans] == ["propose", "compile", "transfer", "run"]


def test_a_failed_build_is_a_record_without_a_time() -> None:
    executor = StandInExecutor(refuse=lambda job: Status.COMPILE_TIMEOUT)
    scene = Scene(StandInDevices(), executor)
    result = scene.play()
    assert result.why == "exhausted"
    assert {(t.status, t.cycles, t.why) for t in scene.kept} == {
        (Status.COMPILE_TIMEOUT, None, "refused")
    }


def test_a_workload_that_only_fails_alike_is_given_up_with_the_reason() -> None:
    executor = StandInExecutor(refuse=lambda job: Status.COMPILE_ERROR)
    scene = Scene(StandInDevices(), executor, trials=200, extent=720, lookahead=4)
    result = scene.play()
    assert result.why == "exhausted"
    assert {t.status for t in scene.kept} == {Status.COMPILE_ERROR}
    notices = [e.text for e in scene.events if isinstance(e, Notice)]
    assert len(notices) == 2
    assert all("is given up: 20 candidates and no other failed alike" in n for n in notices)
    assert len(scene.kept) < 50


def test_a_crashing_kernel_costs_one_trial() -> None:
    def run(code: bytes, job: RunJob) -> Measurement | RunFailure:
        if b"12" in code:
            return RunFailure(artifact=job.artifact, status=Status.RUN_CRASH, why="signal 11")
        return cycles_of_tile(code, job)

    scene = Scene(StandInDevices(1, run))
    scene.play()
    crashed = [t for t in scene.kept if t.status is Status.RUN_CRASH]
    assert len(crashed) == 2
    assert len(scene.kept) == 12


def test_a_lost_device_is_leased_again_and_nothing_is_lost() -> None:
    devices = StandInDevices(1, losing_first(2))
    scene = Scene(devices)
    result = scene.play()
    assert result.why == "exhausted"
    assert {t.status for t in scene.kept} == {Status.OK}
    assert len(scene.kept) == 12
    assert devices.released[:2] == [("sim0", True), ("sim0", True)]
    assert sum(isinstance(e, DeviceLeft) for e in scene.events) == 2


def test_a_device_that_is_lent_costs_no_candidate_a_run() -> None:
    runs = itertools.count(1)

    def wanting(code: bytes, job: RunJob) -> Measurement:
        if next(runs) % 3 == 0:
            devices.wanted_devices.add("sim0")
        return cycles_of_tile(code, job)

    devices = StandInDevices(1, wanting, unchecked=1)
    scene = Scene(devices)
    assert scene.play().why == "exhausted"
    assert next(runs) == 13, "nothing ran twice"
    assert {t.status for t in scene.kept} == {Status.OK}
    assert len(scene.kept) == 12
    left = [e for e in scene.events if isinstance(e, DeviceLeft)]
    assert left
    assert all(e.how == "lent" for e in left)
    assert len(devices.confirmed) >= len(left), "what a device ran is confirmed before it goes"


class Forgetful(StandInDevices):
    """A tracker that forgets a lease under its first run, and gives the device to the next."""

    def __init__(self) -> None:
        super().__init__(1, self._run)
        self._leases: list[Lease] = []
        self._leased_anew = threading.Event()

    def acquire(self, wait_seconds: float, gone: Callable[[], bool] = bool) -> Lease:
        lease = super().acquire(wait_seconds, gone)
        self._leases.append(lease)
        if len(self._leases) > 1:
            self._leased_anew.set()
        return lease

    def release(
        self, lease: Lease, *, device_lost: bool = False, why: str = "", for_good: bool = False
    ) -> None:
        if not device_lost:
            super().release(lease)

    def _run(self, code: bytes, job: RunJob) -> Measurement:
        if len(self._leases) == 1:
            super().release(self._leases[0])
            assert self._leased_anew.wait(60)
            raise DeviceLostError("the lease is unknown")
        return cycles_of_tile(code, job)


def test_a_device_that_another_slot_has_leased_anew_is_not_lost_twice() -> None:
    scene = Scene(Forgetful(), count=2)
    patience = threading.Timer(20.0, scene.stop.request_stop)
    patience.start()
    result = scene.play()
    patience.cancel()
    assert result.why == "exhausted"
    assert len(scene.kept) == 12
    assert [e.device for e in scene.events if isinstance(e, DeviceLeft)] == ["sim0"]


def test_a_candidate_that_loses_three_devices_is_given_up() -> None:
    scene = Scene(StandInDevices(1, losing_first(3)), trials=1)
    scene.play()
    lost = [t for t in scene.kept if t.status is Status.DEVICE_LOST]
    assert len(lost) <= 1
    assert len({(t.workload, t.trace) for t in scene.kept}) == len(scene.kept)


class Expiring(StandInDevices):
    """Devices whose leases are void as soon as they are silent."""

    def void(self, lease: Lease) -> str:
        return "the lease has expired"


def test_one_that_costs_every_device_is_found_though_it_came_with_others() -> None:
    """Of a silent device nobody knows which run it was; from then on each comes by itself."""

    def silenced(code: bytes, job: RunJob) -> Measurement:
        if Trace.from_json(code.decode()).steps[0].args[0] == 12:
            raise DeviceSilentError("nobody answers")
        return cycles_of_tile(code, job)

    devices = Expiring(1, silenced)
    scene = Scene(devices)
    assert scene.play().why == "exhausted"
    assert len(scene.kept) == 12
    lost = [t for t in scene.kept if t.status is Status.DEVICE_LOST]
    assert [dict(t.point)["inner"] for t in lost] == [12, 12], "one of each task"
    assert {t.status for t in scene.kept} - {Status.OK} == {Status.DEVICE_LOST}
    # A call of several without an answer is followed by one for its first, under the same id.
    calls = [[one.split("-")[2] for one in call] for call in devices.calls]
    silent = [n for n, (one, following) in enumerate(pairwise(calls)) if following == one[:1]]
    blamed = {number: n for n in silent[::-1] if len(calls[n]) > 1 for number in calls[n]}
    assert len(blamed) > len(lost), "some were innocent"
    for number, at in blamed.items():
        assert all(call == [number] for call in calls[at + 1 :] if number in call)


def test_stopping_keeps_what_was_measured_and_drops_the_rest() -> None:
    scene = Scene(StandInDevices(), lookahead=4)

    def stop_at_three() -> None:
        if len(scene.kept) == 3:
            scene.stop.request_stop()

    scene.on_trial = stop_at_three
    result = scene.play()
    assert result.why == "stopped"
    assert 3 <= result.trials < 12


def test_a_search_ends_with_its_seconds_on_devices() -> None:
    scene = Scene(StandInDevices(), lookahead=4, most_device_seconds=1e-9)
    result = scene.play()
    assert (result.why, result.ended) == ("stopped", "its 1e-09 s on devices were over")
    assert 1 <= result.trials < 12


def test_without_a_device_the_search_ends_and_says_why() -> None:
    scene = Scene(StandInDevices(0), device_wait=0.05)
    result = scene.play()
    assert result.why == "no device"
    assert result.error is not None
    assert result.error.what == "no device"


def test_a_search_in_which_nothing_is_under_way_any_more_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(DeviceSlots, "put", lambda *forgotten: None)
    with pytest.raises(RuntimeError, match=r"nothing is under way.*running"):
        Scene(StandInDevices(1)).play()


def test_a_search_that_waits_for_a_device_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOOK_SECONDS", 0.001)

    class Late(StandInDevices):
        def acquire(self, wait_seconds: float, gone: Callable[[], bool] = lambda: False) -> Lease:
            time.sleep(0.1)
            return super().acquire(wait_seconds, gone)

    assert Scene(Late(1), trials=4).play().trials == 4


def test_leases_are_given_back() -> None:
    devices = StandInDevices(2)
    Scene(devices, count=2).play()
    assert sorted(devices.released) == [("sim0", False), ("sim1", False)]


class Lying(StandInDevices):
    """The first of so many devices answers every run with one cycle, and every check well."""

    def __init__(self, count: int) -> None:
        super().__init__(count, unchecked=1)

    def connect(self, lease: Lease) -> StandInClient:
        client = super().connect(lease)
        if lease.device.name == "sim0":
            client.run_kernel = one_cycle
        return client


def one_cycle(code: bytes, job: RunJob) -> Measurement:
    return replace(cycles_of_tile(code, job), counters=Counters(cycles=1))


def test_a_device_that_says_what_cannot_be_is_used_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.farm.device_thread.rest_seconds", lambda _: 0.0)
    honest = Scene(StandInDevices(), least_cycles=50)
    scene = Scene(Lying(2), count=2, together=True, least_cycles=50)
    honest.play()
    assert scene.play().why == "exhausted"
    assert ends(scene) == ends(honest), "the same as without it"
    (left,) = (e for e in scene.events if isinstance(e, DeviceLeft))
    assert left.device == "sim0"
    assert "device sim0 says 1 cycle" in left.why
    assert "of another kernel too" in left.why
    assert ("sim0", True) in scene.devices.released
    notices = [e.text for e in scene.events if isinstance(e, Notice)]
    assert any(text.startswith("not believed: device sim0 says 1 cycle") for text in notices)


def ends(scene: Scene) -> set[tuple[str, str, int | None]]:
    return {(t.workload.hex + t.trace.hex, t.status.value, t.cycles) for t in scene.kept}


def test_a_search_whose_only_device_lies_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.farm.device_thread.rest_seconds", lambda _: 0.0)
    scene = Scene(Lying(1), device_wait=0.3, least_cycles=50)
    result = scene.play()
    assert result.why == "no device"
    assert result.error is not None
    assert [t for t in scene.kept if t.status is Status.OK] == []


def test_a_kernel_of_which_no_device_says_what_can_be_is_to_blame_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("driver.farm.device_thread.rest_seconds", lambda _: 0.0)

    def forged(code: bytes, job: RunJob) -> Measurement:
        right = cycles_of_tile(code, job)
        return one_cycle(code, job) if right.cycles == 250 else right

    scene = Scene(StandInDevices(2, forged), count=2, least_cycles=50, trials=40)
    assert scene.play().why == "exhausted"
    failed = [t for t in scene.kept if t.status is not Status.OK]
    assert {t.status for t in failed} == {Status.IMPLAUSIBLE}
    assert all("given up after 3 tries: device sim" in t.why for t in failed)
    assert all("where no schedule takes fewer than 50" in t.why for t in failed)
    assert len(failed) == 2, "one of each workload"
    assert not [e for e in scene.events if isinstance(e, DeviceLeft)], "the devices are right"
