"""The canary: what it takes for right, wrong and drifting, on runners that a test scripts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, InfraError, SelfTestError, TargetError
from tilefarm.measurement import (
    Counters,
    DeviceClock,
    Measurement,
    RunFailure,
    RunJob,
    Status,
    WallTime,
)
from tilefarm.target import TARGETS, load_target

from device_server.device.canary import Canary, Drift, NotMade, Wrong
from device_server.device.known_kernel import known_kernel
from device_server.tenancy import OWN, Tenancy

KNOWN = known_kernel(TARGETS["sim"], b"code")
Answer = Measurement | RunFailure | Exception


def right(cycles: int = 1364, **counters: int) -> Measurement:
    return Measurement(
        artifact=KNOWN.job.artifact,
        device="d",
        counters=KNOWN.counters.but(cycles=cycles, **counters),
        sample_cycles=(cycles, cycles),
    )


def timed(shortest: float, *, spread: float = 0.02) -> Measurement:
    """The right answer on a board, in so many microseconds at least."""
    seconds = shortest * 1e-6
    return Measurement(
        artifact=KNOWN.job.artifact,
        device="d",
        counters=None,
        wall_time=WallTime(
            minimum_seconds=seconds,
            p10_seconds=seconds,
            median_seconds=seconds,
            p90_seconds=seconds * (1 + spread),
            calls=100,
            regions=9,
        ),
    )


SILENT = Measurement(artifact=KNOWN.job.artifact, device="d", counters=None)


WRONG = RunFailure(artifact=KNOWN.job.artifact, status=Status.WRONG_RESULT, why="1 byte differs")
INFRA = RunFailure(artifact=KNOWN.job.artifact, status=Status.INFRA_ERROR, why="no new process")
KILLED = RunFailure(
    artifact=KNOWN.job.artifact, status=Status.RESOURCE_EXCEEDED, why="SIGKILL", signal=9
)


def failed(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class Scripted:
    """A runner that gives these answers, one after the other."""

    sandbox = runtime_id = "scripted"

    def __init__(self, *answers: Answer) -> None:
        self._answers: Iterator[Answer] = iter(answers)
        self.jobs: list[RunJob] = []

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        assert all(blob(b.content).is_file() for b in job.buffers if b.content)
        self.jobs.append(job)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        pass


def canary(folder: Path, *answers: Answer) -> Canary:
    return Canary(KNOWN, Scripted(*answers), folder / "known", clock=ManualClock(), device="d")


def test_a_device_that_is_right_proves_it(tmp_path: Path) -> None:
    proof = canary(tmp_path, right()).prove()
    assert (proof.cycles, proof.wall_time, proof.runtime) == (1364, None, "scripted")
    assert proof.clock is DeviceClock.CYCLES
    assert str(proof) == f"{proof.digest.short} 1364 cycles"


def test_proofs_are_equal_where_runtime_answer_and_cycles_are(tmp_path: Path) -> None:
    one, other = (canary(tmp_path, right()).prove() for _ in range(2))
    assert one.digest == other.digest
    assert replace(one, runtime="another").digest != one.digest
    assert replace(one, cycles=1).digest != one.digest


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (WRONG, "the known kernel ends as wrong_result: 1 byte differs"),
        (right(1365), "takes 1365 cycles, not 1364"),
        (right(gemm_uops=63), "counts gemm_uops 63, not 64"),
        (replace(right(), sample_cycles=(1364, 1366)), r"cycles \(1364, 1366\) of calls that are"),
        (right(7), "counts cycles 7 for 256 micro-ops"),
        (right(0xDEADBEEF, gemm_uops=0xDEADBEEF), "counts gemm_uops 3735928559, not 64"),
        (TargetError("sim: no such hardware"), "sim: no such hardware"),
    ],
)
def test_a_device_that_is_not_right_says_what_differs(
    tmp_path: Path, answer: Answer, why: str
) -> None:
    with pytest.raises(SelfTestError, match=f"device d fails its self-test: .*{why}") as refused:
        canary(tmp_path, answer).prove()
    assert refused.value.hint


@pytest.mark.parametrize(
    ("answer", "why", "remedy"),
    [
        (failed(errno.ENOSPC), "the runner failed: No space left on device", "free some space"),
        (failed(errno.EDQUOT), "the runner failed: Disk quota exceeded", "free some space"),
        (failed(errno.EFBIG), "the runner failed: File too large", "free some space"),
        (failed(errno.EMFILE), "the runner failed: Too many open files", "files to spare"),
        (OSError("odd"), "the runner failed: odd", "memory, processes and files to spare"),
        (CapacityError("it is full", "make room"), "it is full", "make room"),
        (InfraError("vta-runner does not start"), "vta-runner does not start", "to spare"),
        (INFRA, "the known kernel ends as infra_error: no new process", "to spare"),
        (KILLED, "the known kernel ends as resource_exceeded: SIGKILL", "memory, processes"),
    ],
)
def test_a_check_that_cannot_be_made_says_nothing_about_the_device(
    tmp_path: Path, answer: Answer, why: str, remedy: str
) -> None:
    found = canary(tmp_path, right(), answer, right())
    found.prove()
    unmade = found.check()
    assert isinstance(unmade, NotMade)
    assert unmade.why == why
    assert remedy in unmade.remedy
    assert found.check() is None
    with pytest.raises(InfraError, match=f"device d cannot make its self-test: {why}") as refused:
        canary(tmp_path, answer).prove()
    assert refused.value.hint == unmade.remedy


def test_any_other_count_is_a_drift(tmp_path: Path) -> None:
    found = canary(tmp_path, right(), right(), right(1365), right())
    found.prove()
    assert found.check() is None
    drift = found.check()
    assert isinstance(drift, Drift)
    assert "takes 0.1% more time than before" in drift.why
    assert found.check() is None


def test_what_counted_once_counts_for_ever(tmp_path: Path) -> None:
    found = canary(tmp_path, right(), SILENT)
    found.prove()
    assert found.check() == Wrong("the known kernel counts no cycles any more")


def board(folder: Path, *answers: Answer) -> Canary:
    """One that took 10 us at the self-test."""
    found = canary(folder, SILENT, timed(10.2), timed(10), timed(10.1), timed(10.3), *answers)
    found.prove()
    return found


@pytest.mark.parametrize(
    "counters", [None, Counters(), Counters(gemm_uops=7)], ids=["none", "zeros", "no cycles"]
)
def test_a_board_that_counts_nothing_is_timed_by_the_clock(
    tmp_path: Path, counters: Counters | None
) -> None:
    answers = [
        replace(a, counters=counters)
        for a in (SILENT, timed(10.2), timed(10), timed(11), timed(12))
    ]
    proof = canary(tmp_path, *answers).prove()
    assert (proof.clock, proof.cycles) == (DeviceClock.SECONDS, None)
    assert proof.wall_time == timed(10).wall_time
    assert str(proof) == f"{proof.digest.short} 10.0 us by the host's clock"


def test_a_board_is_asked_for_a_finer_time_at_the_self_test(tmp_path: Path) -> None:
    runner = Scripted(SILENT, *[timed(10)] * 5)
    found = Canary(KNOWN, runner, tmp_path / "known", clock=ManualClock(), device="d")
    found.prove()
    found.check()
    first, *proof, check = (job.precision for job in runner.jobs)
    assert first is None
    assert all(each and check and each.error < check.error for each in proof)


def test_noise_is_no_drift(tmp_path: Path) -> None:
    noisy = [timed(10 + k % 7 / 10) for k in range(100)]
    found = board(tmp_path, *noisy)
    assert [found.check() for _ in noisy] == [None] * 100


def test_a_board_whose_times_spread_more_is_held_to_less(tmp_path: Path) -> None:
    wide = [timed(t, spread=0.4) for t in (10, 10, 10, 10, 13, 13, 13, 13)]
    found = canary(tmp_path, SILENT, *wide, *[timed(15, spread=0.4)] * 4)
    found.prove()
    assert [found.check() for _ in range(4)] == [None] * 4
    assert isinstance(found.check(), Drift)


def test_a_board_that_is_throttled_rests_until_it_is_not(tmp_path: Path) -> None:
    found = board(tmp_path, timed(10.3), *[timed(15)] * 8, timed(10.2))
    assert found.check() is None
    for _ in range(2):
        drift = found.check()
        assert isinstance(drift, Drift)
        assert drift.why.startswith("the known kernel takes 50.0% more time than before")
    assert found.check() is None


def test_a_processor_goes_on_at_the_pace_that_it_has_after_a_rest(tmp_path: Path) -> None:
    """A board's clock is its own; a processor gets hot, and others are busy beside it."""
    times = (15, 15, 15, 15.3, 15.1, 12.9, 12.8, 20, 13, 20, 21)
    looks = [timed(each) for each in times for _ in range(4 if each in (15, 12.9, 20, 21) else 1)]
    runner = Scripted(SILENT, *[timed(10)] * 4, *looks)
    known = replace(KNOWN, keeps_pace=False)
    clock = ManualClock()
    found = Canary(known, runner, tmp_path / "known", clock=clock, device="cpu0")
    found.prove()
    first = found.check()
    assert isinstance(first, Drift)  # What it measured meanwhile is measured again.
    assert first.why.startswith("its machine is busy, or hot: the known kernel takes 50.0% more")
    assert isinstance(found.check(), Drift)  # 15 so soon after it may be a spell.
    clock.advance(8.0)
    assert [found.check() for _ in range(3)] == [None] * 3  # 15 it is, then, and so it stays.
    faster = found.check()
    assert isinstance(faster, Drift)
    assert "14.0% less" in faster.why
    assert found.check() is None
    assert found.proof.wall_time == timed(12.8).wall_time
    slower = found.check()  # 20, and it is said what it is compared with.
    assert isinstance(slower, Drift)
    assert "takes 56.2% more time than before" in slower.why
    assert "12.8 us by the host's clock" in slower.why
    assert found.check() is None  # 13: it has come back by itself.
    assert isinstance(found.check(), Drift)  # 20 again is another drift, and the rest begins anew.
    clock.advance(8.0)
    assert found.check() is None  # 21
    assert KNOWN.keeps_pace
    assert not known_kernel(load_target("cpu:x86-64-v3"), b"code").keeps_pace


def test_a_board_that_gets_slower_little_by_little_is_found_out(tmp_path: Path) -> None:
    found = board(tmp_path, timed(10.3), timed(10.6), timed(10.9), *[timed(11.2)] * 4)
    assert [found.check() for _ in range(3)] == [None] * 3
    drift = found.check()
    assert isinstance(drift, Drift)
    assert drift.why.startswith("the known kernel takes 12.0% more time than before")


def test_a_busy_moment_is_no_drift(tmp_path: Path) -> None:
    found = board(tmp_path, timed(20), timed(30), timed(20), timed(10))
    assert found.check() is None


class Spells(Scripted):
    """A board whose host is a tenth slower for some seconds, from when somebody says so."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(SILENT)
        self._clock = clock
        self._until = 0.0

    def slow_for(self, seconds: float) -> None:
        self._until = self._clock.seconds() + seconds

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        if job.precision is None:
            return super().run(job, blob, tenancy)
        return timed(11.2 if self._clock.seconds() < self._until else 10.0)


def test_a_spell_of_a_neighbour_is_no_drift_and_one_that_lasts_is(tmp_path: Path) -> None:
    clock = ManualClock()
    runner = Spells(clock)
    found = Canary(KNOWN, runner, tmp_path / "known", clock=clock, device="d")
    runner.slow_for(1.0)  # At the self-test too.
    found.prove()
    for _ in range(3):
        runner.slow_for(1.0)
        assert found.check() is None
    runner.slow_for(10.0)
    assert isinstance(found.check(), Drift)


def test_a_board_that_was_slow_at_first_is_found_out_once(tmp_path: Path) -> None:
    found = board(tmp_path, *[timed(6)] * 6)
    drift = found.check()
    assert isinstance(drift, Drift)
    assert "takes 40.0% less time than before" in drift.why
    assert found.check() is None
    assert found.check() is None


def test_a_host_too_busy_to_time_anything_does_not_stop_a_board(tmp_path: Path) -> None:
    busy = RunFailure(artifact=KNOWN.job.artifact, status=Status.INFRA_ERROR, why="too busy")
    found = board(tmp_path, busy, SILENT, busy, WRONG, busy, INFRA)
    assert found.check() is None
    assert isinstance(found.check(), Wrong)
    assert isinstance(found.check(), NotMade)


def test_a_host_too_busy_for_a_self_test_says_so(tmp_path: Path) -> None:
    busy = RunFailure(artifact=KNOWN.job.artifact, status=Status.INFRA_ERROR, why="too busy")
    with pytest.raises(InfraError, match=r"cannot make its self-test: .* too busy"):
        canary(tmp_path, SILENT, busy).prove()


def test_a_wrong_answer_later_is_wrong_at_once(tmp_path: Path) -> None:
    found = canary(tmp_path, right(), WRONG)
    found.prove()
    assert found.check() == Wrong("the known kernel ends as wrong_result: 1 byte differs")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "known").write_text("a file")
    with pytest.raises(InfraError, match="cannot keep the known kernel: File exists") as refused:
        canary(tmp_path)
    assert "--folder" in refused.value.hint
