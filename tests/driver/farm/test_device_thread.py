"""A device's thread: what it does with a device that spoils what it is given."""

from __future__ import annotations

import queue

import pytest
from kit.search.stand_ins import StandInDevices
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.measurement import RunFailure, RunJob, Status

from driver.farm import device_thread
from driver.farm.device_messages import DeviceUp, Message, Order, RunEnded
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
