"""A device's thread: what it does with a device that spoils what it is given."""

from __future__ import annotations

import queue

import pytest
from kit.manual_clock import ManualClock
from kit.search.stand_ins import StandInDevices
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import DeviceLostError, ImplausibleError, SuspectError
from tilefarm.lease import Lease
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob, Status

from driver.farm import device_thread
from driver.farm.device_messages import DeviceBusy, DeviceLost, DeviceUp, Message, Order, RunEnded
from driver.farm.device_thread import DeviceThread, rest_seconds

CODE = b"code"
JOB = RunJob(artifact=Digest.of(CODE), entry="kernel", buffers=(), timeout_seconds=1.0)


def test_a_rest_grows_with_what_was_spoiled_in_a_row_and_has_an_end() -> None:
    assert [rest_seconds(n) for n in (1, 2, 3, 4, 5)] == [0.2, 0.4, 0.8, 1.6, 3.2]
    assert rest_seconds(6) == rest_seconds(100_000) == 5.0


@pytest.mark.parametrize(("status", "ran"), [(Status.INFRA_ERROR, 1), (Status.RUN_CRASH, 3)])
def test_a_device_that_spoils_a_run_rests_before_the_next(
    monkeypatch: pytest.MonkeyPatch, status: Status, ran: int
) -> None:
    for limit in ("_REST_SECONDS", "_LONGEST_REST_SECONDS"):
        monkeypatch.setattr(device_thread, limit, 3600.0)
    runs: list[RunJob] = []

    def fails(code: bytes, job: RunJob) -> RunFailure:
        runs.append(job)
        return RunFailure(artifact=job.artifact, status=status, why="because")

    messages: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
    thread = DeviceThread(
        0, StandInDevices(1, fails), wait_seconds=5.0, report=messages.put, clock=SystemClock()
    )
    up = messages.get()
    assert isinstance(up, DeviceUp)
    for number in (1, 2, 3):
        blobs = {JOB.artifact: CODE}
        thread.put(up.lease, Order(number=number, job=JOB, blobs=blobs, request_id=f"r{number}"))
    for _ in range(ran):
        assert isinstance(messages.get(), RunEnded)
    thread.close()
    thread.join(30.0)
    assert len(runs) == ran


def busy(code: bytes, job: RunJob) -> RunFailure:
    return RunFailure(
        artifact=job.artifact, status=Status.INFRA_ERROR, why="too busy", untimed=True
    )


def test_a_host_too_busy_to_time_a_run_is_said_and_waited_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_thread, "rest_seconds", lambda _: 0.0)
    runs: list[RunJob] = []
    timed_at_last = Measurement(artifact=JOB.artifact, device="", counters=Counters(cycles=9))

    def busy_twice(code: bytes, job: RunJob) -> Measurement | RunFailure:
        runs.append(job)
        return busy(code, job) if len(runs) < 3 else timed_at_last

    messages: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
    thread = DeviceThread(
        0, StandInDevices(1, busy_twice), wait_seconds=5.0, report=messages.put, clock=ManualClock()
    )
    up = messages.get()
    assert isinstance(up, DeviceUp)
    thread.put(up.lease, Order(number=1, job=JOB, blobs={JOB.artifact: CODE}, request_id="r"))
    said = messages.get()
    assert said == DeviceBusy(up.lease.device.name, "too busy", 60.0)
    ended = messages.get()
    assert isinstance(ended, RunEnded)
    assert ended.result == timed_at_last
    thread.close()
    thread.join(30.0)
    assert len(runs) == 3


def test_a_host_that_stays_too_busy_spoils_the_run_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_thread, "rest_seconds", lambda _: 0.0)
    clock = ManualClock()

    def for_ever(code: bytes, job: RunJob) -> RunFailure:
        clock.advance(25.0)
        return busy(code, job)

    messages: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
    thread = DeviceThread(
        0, StandInDevices(1, for_ever), wait_seconds=5.0, report=messages.put, clock=clock
    )
    up = messages.get()
    assert isinstance(up, DeviceUp)
    thread.put(up.lease, Order(number=1, job=JOB, blobs={JOB.artifact: CODE}, request_id="r"))
    assert isinstance(messages.get(), DeviceBusy)
    ended = messages.get()
    assert isinstance(ended, RunEnded)
    assert ended.is_spoiled
    assert clock.seconds() == 100.0
    thread.close()
    thread.join(30.0)


@pytest.mark.parametrize(
    ("fault", "lost"),
    [
        (SuspectError("it drifts", retry_seconds=10.0), False),
        (DeviceLostError("its disk is full", retry_seconds=10.0), False),
        (SuspectError("its answers are wrong"), True),
        (DeviceLostError("it hangs"), True),
        (ImplausibleError("it takes 1 cycle"), True),
    ],
)
def test_a_device_that_rests_is_not_given_back_as_lost(fault: DeviceLostError, lost: bool) -> None:
    class Devices(StandInDevices):
        why = ""

        def release(
            self, lease: Lease, *, device_lost: bool = False, why: str = "", for_good: bool = False
        ) -> None:
            self.why = self.why or why
            super().release(lease, device_lost=device_lost, why=why, for_good=for_good)

    def fails(code: bytes, job: RunJob) -> RunFailure:
        raise fault

    messages: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
    devices = Devices(2, fails)
    thread = DeviceThread(0, devices, wait_seconds=5.0, report=messages.put, clock=SystemClock())
    up = messages.get()
    assert isinstance(up, DeviceUp)
    thread.put(up.lease, Order(number=1, job=JOB, blobs={JOB.artifact: CODE}, request_id="r"))
    gone = messages.get()
    assert isinstance(gone, DeviceLost)
    assert (gone.number, gone.why, gone.rests) == (1, fault.what, not lost)
    assert isinstance(messages.get(), DeviceUp)
    thread.close()
    thread.join(30.0)
    assert (devices.released[0], devices.why) == (("sim0", lost), fault.what)
