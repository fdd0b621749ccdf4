"""The canary: what it takes for right, wrong and drifting, on runners that a test scripts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, InfraError, SelfTestError, TargetError
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob, Status
from tilefarm.target import TARGETS

from device_server.device.canary import Canary, Drift, NotMade, Wrong
from device_server.device.known_kernel import known_kernel

KNOWN = known_kernel(TARGETS["sim"], b"code")
Answer = Measurement | RunFailure | Exception


def right(cycles: int = 1364, *, seconds: float = 1e-5, **counters: int) -> Measurement:
    return Measurement(
        artifact=KNOWN.job.artifact,
        device="d",
        counters=replace(KNOWN.counters, cycles=cycles, **counters),
        sample_cycles=(cycles, cycles),
        seconds=(seconds, 2 * seconds),
    )


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

    def run(self, job: RunJob, blob: Callable[[Digest], Path]) -> Measurement | RunFailure:
        assert all(blob(b.content).is_file() for b in job.buffers if b.content)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        pass


def canary(folder: Path, *answers: Answer) -> Canary:
    return Canary(KNOWN, Scripted(*answers), folder / "known", device="d")


def test_a_device_that_is_right_proves_it(tmp_path: Path) -> None:
    proof = canary(tmp_path, right()).prove()
    assert (proof.cycles, proof.seconds, proof.runtime) == (1364, 1e-5, "scripted")
    assert str(proof) == f"{proof.digest.short} 1364 cycles"


def test_proofs_are_equal_where_runtime_answer_and_cycles_are(tmp_path: Path) -> None:
    one, other = (canary(tmp_path, right(seconds=s)).prove() for s in (1e-5, 2e-5))
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


def test_a_board_that_counts_nothing_is_paced_by_its_seconds(tmp_path: Path) -> None:
    silent = replace(right(), counters=Counters(), sample_cycles=(0, 0))
    slower = replace(silent, seconds=(1.2e-5, 1.3e-5))
    found = canary(tmp_path, silent, silent, slower, slower, slower)
    proof = found.prove()
    assert str(proof).endswith("10.0 us")
    assert found.check() is None
    assert found.check() == Drift(f"the known kernel takes 20.0% more time than at first ({proof})")


def test_times_within_three_percent_are_no_drift(tmp_path: Path) -> None:
    found = canary(tmp_path, right(), right(1400), right(1410), right(1410), right(1410))
    found.prove()
    assert found.check() is None
    drift = found.check()
    assert isinstance(drift, Drift)
    assert "takes 3.4% more time than at first" in drift.why


def test_one_slow_moment_of_the_host_is_no_drift(tmp_path: Path) -> None:
    found = canary(tmp_path, right(), right(2000), right(2000), right())
    found.prove()
    assert found.check() is None


def test_a_wrong_answer_later_is_wrong_at_once(tmp_path: Path) -> None:
    found = canary(tmp_path, right(), WRONG)
    found.prove()
    assert found.check() == Wrong("the known kernel ends as wrong_result: 1 byte differs")


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "known").write_text("a file")
    with pytest.raises(InfraError, match="cannot keep the known kernel: File exists") as refused:
        canary(tmp_path)
    assert "--folder" in refused.value.hint
