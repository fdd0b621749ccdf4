"""How the samples of an evaluation are divided over runs and devices, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kit.manual_clock import ManualClock
from kit.search.stand_ins import StandInClient, StandInDevices
from tilefarm.clock import SystemClock
from tilefarm.errors import InfraError, SettingsError
from tilefarm.lease import Lease
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob, Status
from tilefarm.target import TARGETS

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import RunEnded
from driver.program import evaluate
from driver.program.evaluate import run_program
from driver.program.model import NetworkProgram, Parameter


def program(batch: int = 1, values: int = 3) -> NetworkProgram:
    return NetworkProgram(
        name="copy",
        target=TARGETS["sim"],
        entry="network",
        code=b"code",
        constants=b"constants",
        arena_nbytes=0,
        inputs=(Parameter(name="x", shape=(batch, values)),),
        outputs=(Parameter(name="y", shape=(batch, values)),),
    )


def test_nan_is_nan_whatever_its_bits() -> None:
    ours = np.array([[0x7FC00000], [0xFFC00001], [0x3F800000]], np.uint32).view(np.float32)
    theirs = np.array([[0xFFC00000], [0x3F800000], [0x3F800000]], np.uint32).view(np.float32)
    assert evaluate.differing_samples({"y": ours}, {"y": theirs}) == 1


class Copying(StandInDevices):
    """Devices whose programs give their input back, and take so long for each sample."""

    def __init__(self, count: int, seconds: float) -> None:
        super().__init__(count)
        self.clock = ManualClock()
        self.jobs: list[RunJob] = []
        self._seconds = seconds

    def connect(self, lease: Lease) -> StandInClient:
        client = super().connect(lease)

        def run(code: bytes, job: RunJob) -> Measurement:
            self.jobs.append(job)
            self.clock.advance(self._seconds * job.samples)
            content = job.buffers[2].content
            assert content is not None
            return Measurement(
                artifact=job.artifact,
                device="",
                counters=Counters(cycles=1),
                sample_cycles=(1,) * job.samples,
                outputs=(("y", client.blobs[content]),),
                run_seconds=self._seconds * job.samples,
            )

        client.run_kernel = run
        return client


def runner(devices: StandInDevices, count: int) -> JobRunner:
    clock = devices.clock if isinstance(devices, Copying) else SystemClock()
    return JobRunner(devices, devices=count, wait_seconds=60.0, clock=clock)


def sizes(devices: Copying) -> list[int]:
    return sorted(job.samples for job in devices.jobs)


@pytest.mark.parametrize(
    ("seconds", "batch", "samples", "devices", "runs"),
    [
        (6.0, 1, 16, 2, [1] * 16),
        (4.0, 1, 7, 1, [1, 2, 2, 2]),
        (0.001, 1, 60, 2, [1, 1, 8, 25, 25]),
        (0.001, 4, 30, 2, [1, 1, 6]),
        (100.0, 1, 3, 8, [1, 1, 1]),
        (0.0, 1, 3, 1, [1, 2]),
    ],
)
def test_runs_have_as_many_samples_as_the_first_ones_say(
    seconds: float, batch: int, samples: int, devices: int, runs: list[int]
) -> None:
    x = np.arange(3 * samples, dtype=np.float32).reshape(samples, 3)
    copying = Copying(devices, seconds)
    seen: list[int] = []

    def watch(_done: RunEnded, done_samples: int) -> None:
        seen.append(done_samples)

    answer = run_program(
        program(batch),
        {"x": x},
        runner(copying, devices),
        limit_seconds=50.0,
        run_id="r",
        watch=watch,
    )
    assert np.array_equal(answer.outputs["y"], x)
    assert sizes(copying) == runs
    assert all(job.timeout_seconds == 50.0 * job.samples for job in copying.jobs)
    assert sum(seen) == batch * sum(runs)


def test_large_samples_make_small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MOST_NBYTES", 3 * 400)
    x = np.zeros((9, 100), np.float32)
    copying = Copying(1, 0.001)
    run_program(program(values=100), {"x": x}, runner(copying, 1), limit_seconds=9.0, run_id="r")
    assert sizes(copying) == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("status", "error", "remedy"),
    [
        (Status.RESOURCE_EXCEEDED, SettingsError, "a device with more room"),
        (Status.RUN_TIMEOUT, SettingsError, "--run-timeout"),
        (Status.RUN_CRASH, InfraError, ""),
    ],
)
def test_a_program_that_cannot_run_says_what_to_change(
    status: Status, error: type[Exception], remedy: str
) -> None:
    def fails(code: bytes, job: RunJob) -> RunFailure:
        return RunFailure(artifact=job.artifact, status=status, why="because")

    devices = StandInDevices(1, fails)
    x = {"x": np.zeros((1, 3), np.float32)}
    with pytest.raises(error, match=f"failed on sim0: {status.value}: because") as failed:
        run_program(program(), x, runner(devices, 1), limit_seconds=1.0, run_id="r")
    assert remedy in str(failed.value)
    assert devices.released == [("sim0", False)]


def test_digests_of_large_parts_are_made_once() -> None:
    made = program()
    job = made.run_job({"x": np.zeros((1, 3), np.float32)}, timeout_seconds=1.0)
    assert job.artifact == made.code_digest
    assert job.buffers[1].content == made.constants_digest
    assert replace(made, code=b"other").code_digest != made.code_digest
