"""Runs without a tuner: in order, on all devices, again when a device is lost; and comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from kit.search.stand_ins import (
    StandInClient,
    StandInDevices,
    cycles_of_tile,
    losing_first,
    toy_task,
)
from tilefarm.artifact import Artifact
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import (
    BusyError,
    DeviceLostError,
    InfraError,
    NoDeviceError,
    SuspectError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob, Status
from tilefarm.target import TARGETS

from driver.campaign.job_runner import JobRunner
from driver.farm import device_thread
from driver.farm.device_messages import Order, RunEnded
from driver.program.evaluate import differing_samples, run_program
from driver.program.model import NetworkProgram, Parameter


def order(inner: int) -> Order:
    task = toy_task()
    trace = task.trace({"inner": inner, "outer": 12 // inner})
    artifact = Artifact(job=Digest.of(b""), code=trace.to_json().encode(), symbols=("kernel",))
    return task.order(artifact, "r", timeout_seconds=1.0)


def runner(devices: StandInDevices, count: int = 1, wait: float = 5.0) -> JobRunner:
    return JobRunner(devices, devices=count, wait_seconds=wait, clock=SystemClock())


def cycles(answers: list[RunEnded]) -> list[int]:
    results = [done.result for done in answers]
    return [r.counted.cycles for r in results if isinstance(r, Measurement)]


def test_answers_come_in_the_order_of_the_orders() -> None:
    orders = [order(inner) for inner in (1, 2, 4, 1)]
    answers = runner(StandInDevices(3), 3).run(orders)
    assert cycles(answers) == [1000, 500, 250, 1000]


def test_orders_that_belong_together_run_on_one_device() -> None:
    answers = runner(StandInDevices(3), 3).run([order(1), order(2), order(4)], at_most=1)
    assert cycles(answers) == [1000, 500, 250]
    assert len({done.device for done in answers}) == 1


def test_a_run_on_a_lost_device_is_done_again() -> None:
    devices = StandInDevices(1, losing_first(2))
    assert cycles(runner(devices).run([order(1), order(2)])) == [1000, 500]
    assert devices.released[0] == ("sim0", True)


def test_an_order_that_loses_three_devices_is_an_error_when_the_farm_had_its_time() -> None:
    with pytest.raises(DeviceLostError, match="3 times: pulled"):
        runner(StandInDevices(1, losing_first(9)), wait=0.1).run([order(1)])
    assert cycles(runner(StandInDevices(1, losing_first(4))).run([order(1)])) == [1000]


def spoiling(device: str) -> StandInDevices:
    """Two devices; one of them has a full disk."""
    devices = StandInDevices(2)
    connect = devices.connect

    def connected(lease: Lease) -> StandInClient:
        client = connect(lease)
        if lease.device.name == device:
            client.run_kernel = full
        return client

    def full(code: bytes, job: RunJob) -> RunFailure:
        return RunFailure(artifact=job.artifact, status=Status.INFRA_ERROR, why="disk full")

    setattr(devices, "connect", connected)  # noqa: B010
    return devices


def test_what_the_farm_spoils_is_done_again_on_another_device() -> None:
    answers = runner(spoiling("sim0"), 2).run([order(1), order(2), order(4)])
    assert cycles(answers) == [1000, 500, 250]
    assert {done.device for done in answers} == {"sim1"}


class Wrong(StandInDevices):
    """Their first device is wrong until it is asked to confirm."""

    def __init__(self, count: int) -> None:
        super().__init__(count, self._cycles, unchecked=1)
        self.wrong = True

    def _cycles(self, code: bytes, job: RunJob) -> Measurement:
        right = cycles_of_tile(code, job)
        return replace(right, counters=Counters(cycles=right.counted.cycles - 7 * self.wrong))

    def connect(self, lease: Lease) -> StandInClient:
        devices = self

        class Confirming(StandInClient):
            def confirm(self) -> None:
                if devices.wrong:
                    devices.wrong = False
                    raise SuspectError(f"{self.name} is not right any more")
                devices.confirmed.append(self.name)

        return Confirming(lease.device.name, self._cycles, unchecked=1)


@pytest.mark.parametrize("count", [1, 2])
def test_what_a_device_cannot_confirm_in_the_end_is_done_again(count: int) -> None:
    devices = Wrong(1)
    answers = runner(devices, count).run([order(inner) for inner in (1, 2, 4)])
    assert cycles(answers) == [1000, 500, 250]
    assert devices.confirmed == ["sim0"]
    assert devices.released[0] == ("sim0", True)


def test_what_a_lost_device_had_not_confirmed_is_done_again() -> None:
    runs = 0

    def lost_at_the_second(code: bytes, job: RunJob) -> Measurement:
        nonlocal runs
        runs += 1
        if runs == 2:
            raise DeviceLostError("pulled")
        return cycles_of_tile(code, job)

    seen: list[int] = []
    devices = StandInDevices(1, lost_at_the_second, unchecked=1)
    answers = runner(devices).run([order(1), order(2)], lambda done: seen.append(done.number))
    assert cycles(answers) == [1000, 500]
    assert [done.number for done in answers] == [1, 2]
    assert sorted(seen) == [1, 1, 2], "the first one came twice"


@pytest.mark.parametrize("times", [1, 2])
def test_a_run_that_had_no_end_in_time_is_done_once_more(times: int) -> None:
    runs: list[Digest] = []

    def late(code: bytes, job: RunJob) -> Measurement | RunFailure:
        runs.append(job.artifact)
        if len(runs) <= times:
            return RunFailure(artifact=job.artifact, status=Status.RUN_TIMEOUT, why="late")
        return cycles_of_tile(code, job)

    (done,) = runner(StandInDevices(1, late)).run([order(1)])
    assert len(runs) == 2
    assert isinstance(done.result, Measurement if times == 1 else RunFailure)


def test_a_run_that_is_tried_again_after_a_pause_keeps_its_number_and_place() -> None:
    devices = StandInDevices(1, losing_first(4))
    seen: list[int] = []
    answers = runner(devices).run([order(1), order(2)], lambda done: seen.append(done.number))
    assert cycles(answers) == [1000, 500]
    assert sorted(seen) == [1, 2]


def test_answers_that_are_confirmed_with_the_last_run_need_no_more() -> None:
    devices = StandInDevices(1)
    runner(devices).run([order(1), order(2)])
    assert devices.confirmed == []
    devices = StandInDevices(1, unchecked=1)
    runner(devices).run([order(1), order(2)])
    assert devices.confirmed == ["sim0"]


def test_what_the_farm_spoils_for_too_long_is_the_answer() -> None:
    (done,) = runner(spoiling("sim0"), 1, wait=0.1).run([order(1)])
    assert isinstance(done.result, RunFailure)
    assert done.result.why == "disk full"


def test_a_lease_that_ends_before_an_order_begins_strikes_nobody() -> None:
    class Ending(StandInDevices):
        def lost(self, lease: Lease) -> str:
            return "it has run out" if lease.fence < 6 else ""

    devices = Ending(1)
    assert cycles(runner(devices, wait=0.0).run([order(1)])) == [1000]
    assert len(devices.released) == 6


def test_who_is_told_when_to_come_again_comes_then(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(StandInDevices):
        told = False

        def acquire(self, wait_seconds: float, gone: Callable[[], bool] = bool) -> Lease:
            if not self.told:
                self.told = True
                raise BusyError("full", "wait", 0.01)
            return super().acquire(wait_seconds, gone)

    monkeypatch.setattr(device_thread, "RETRY_SECONDS", 60.0)
    assert cycles(runner(Busy(1), wait=30.0).run([order(1)])) == [1000]


def test_an_order_whose_device_others_want_before_it_begins_is_done_later() -> None:
    devices = StandInDevices(1)
    devices.wanted_devices.add("sim0")
    assert cycles(runner(devices).run([order(1), order(2)])) == [1000, 500]
    assert devices.released == [("sim0", False)] * 2


def test_a_device_that_others_want_is_given_back_after_the_run_under_way() -> None:
    ran = []

    def wanting(code: bytes, job: RunJob) -> Measurement | RunFailure:
        ran.append(len(devices.released))
        devices.wanted_devices |= {"sim0"} if len(ran) < 3 else set()
        return cycles_of_tile(code, job)

    devices = StandInDevices(1, wanting, unchecked=1)
    assert cycles(runner(devices).run([order(1)] * 5)) == [1000] * 5
    assert ran == [0, 1, 2, 2, 2]
    assert devices.confirmed == ["sim0"] * 3, "before somebody else runs, and in the end"


def test_no_device_is_an_error() -> None:
    with pytest.raises(NoDeviceError):
        runner(StandInDevices(0), wait=0.05).run([order(1)])


def test_devices_are_given_back_in_any_case() -> None:
    devices = StandInDevices(2)
    runner(devices, 2).run([order(1)] * 4)
    assert sorted(devices.released) == [("sim0", False), ("sim1", False)]


def doubling(batch: int = 1) -> NetworkProgram:
    return NetworkProgram(
        name="double",
        target=TARGETS["sim"],
        entry="network",
        code=b"code",
        constants=b"constants",
        arena_nbytes=256,
        inputs=(Parameter(name="x", shape=(batch, 3)),),
        outputs=(Parameter(name="y", shape=(batch, 3)),),
    )


class DoublingDevices(StandInDevices):
    """Devices whose program doubles its input; they look into the blobs that they were sent."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.samples: list[int] = []

    def connect(self, lease: Lease) -> StandInClient:
        client = super().connect(lease)

        def run(code: bytes, job: RunJob) -> Measurement:
            content = job.buffers[2].content
            assert content is not None
            values = np.frombuffer(client.blobs[content], np.float32)
            self.samples.append(job.samples)
            return Measurement(
                artifact=job.artifact,
                device="",
                counters=Counters(cycles=7),
                sample_cycles=(7,) * job.samples,
                outputs=(("y", (2 * values).tobytes()),),
            )

        client.run_kernel = run
        return client


@pytest.mark.parametrize(("samples", "batch"), [(1, 1), (60, 1), (7, 4), (50, 8)])
def test_a_program_runs_all_samples_in_parts(samples: int, batch: int) -> None:
    x = np.arange(3 * samples, dtype=np.float32).reshape(samples, 3)
    devices = DoublingDevices(2)
    answer = run_program(
        doubling(batch), {"x": x}, runner(devices, 2), limit_seconds=10.0, run_id="r"
    )
    assert np.array_equal(answer.outputs["y"], 2 * x)
    assert sum(devices.samples) * batch >= samples
    assert set(answer.cycles) == {7}


def test_a_program_that_fails_is_a_fault_and_says_where() -> None:
    def crash(code: bytes, job: RunJob) -> RunFailure:
        return RunFailure(artifact=job.artifact, status=Status.RUN_CRASH, why="signal 11")

    x = {"x": np.zeros((1, 3), np.float32)}
    with pytest.raises(InfraError, match="failed on sim0: run_crash: signal 11"):
        run_program(doubling(), x, runner(StandInDevices(1, crash)), limit_seconds=10.0, run_id="r")


def test_samples_differ_by_their_bits() -> None:
    reference = {"y": np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], np.float32)}
    same = {"y": reference["y"].copy()}
    assert differing_samples(same, reference) == 0
    same["y"][0, 0] = -0.0
    same["y"][2, 1] = np.nextafter(np.float32(5), np.float32(6))
    assert differing_samples(same, reference) == 2


def test_the_stand_in_is_what_it_says() -> None:
    done = runner(StandInDevices(1, cycles_of_tile)).run([order(4)])[0]
    assert done.device == "sim0"
