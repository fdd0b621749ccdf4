"""Boards that count nothing, or count nonsense: timed by the clock, or refused with a reason."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.errors import SelfTestError
from tilefarm.measurement import (
    BufferSpec,
    DeviceClock,
    Measurement,
    Precision,
    Role,
    RunFailure,
    RunJob,
    Status,
)
from tilefarm.target import TARGETS

from device_server.device.self_test import self_test
from device_server.runner.runner import Runner
from device_server.vta.library.native import find_library, find_stand_in

from .test_runner import bad_job, dense_job, failed, measured

SIM = TARGETS["sim"]
RUNTIME = Path(__file__).parents[3] / "device_server" / "vta" / "runtime"
PRECISION = Precision(error=0.05, seconds=2.0)
MHZ = 10


@pytest.fixture
def board() -> Iterator[Runner]:
    clock = {"TILEFARM_BOARD_MHZ": str(MHZ)}
    with Runner(target=SIM, library=find_stand_in(), environment=clock, device="board") as runner:
        yield runner


def test_nothing_is_counted_and_cycles_pass_as_real_time(
    board: Runner, runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = replace(dense_job(blobs, compiled["good"]), precision=PRECISION)
    cycles = measured(runner.run(job, blobs.path)).counted.cycles
    found = measured(board.run(job, blobs.path))
    assert (found.counters, found.sample_cycles) == (None, ())
    assert found.wall_time
    assert found.wall_time.minimum_seconds >= cycles / MHZ / 1e6
    assert found.wall_time.minimum_seconds * found.wall_time.calls >= 1e-3
    assert found.outputs == measured(runner.run(job, blobs.path)).outputs


def test_no_time_is_taken_unless_it_is_asked_for(
    board: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    found = measured(board.run(dense_job(blobs, compiled["good"]), blobs.path))
    assert (found.counters, found.wall_time, found.profile) == (None, None, ())


@pytest.mark.parametrize("entry", ["works_once", "counts_its_calls"])
def test_what_works_once_alone_is_wrong(
    board: Runner, runner: Runner, blobs: Blobs, compiled: dict[str, Digest], entry: str
) -> None:
    for each in (board, runner):
        job = bad_job(compiled["bad"], entry, precision=PRECISION)
        failure = failed(each.run(job, blobs.path))
        assert failure.status is Status.WRONG_RESULT
        assert "differs between two calls" in failure.why


def test_the_seconds_of_a_precision_come_on_top_of_the_timeout(
    board: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    slow = bad_job(
        compiled["bad"],
        "takes_a_tenth_of_a_second",
        precision=Precision(error=1e-9, seconds=2.5),
        timeout_seconds=2.0,
    )
    time = measured(board.run(slow, blobs.path)).wall_time
    assert time
    assert time.regions + time.rejected > 4


def test_the_timeout_holds_for_what_never_ends(
    board: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    precision = Precision(error=0.01, seconds=0.1)
    for profile in ((), ("endless",)):
        job = bad_job(
            compiled["bad"], "endless", precision=precision, profile=profile, timeout_seconds=0.1
        )
        failure = failed(board.run(job, blobs.path))
        assert failure.status is Status.RUN_TIMEOUT
        assert failure.why == f"no result after {job.limit_seconds:g} s"


def test_who_waits_asleep_is_timed_and_a_call_that_is_long_enough_is_not_repeated(
    board: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    for seconds, most in ((0.05, 1), (0.3, 4)):
        precision = Precision(error=1e-9, seconds=seconds)
        job = bad_job(compiled["bad"], "takes_a_tenth_of_a_second", precision=precision)
        time = measured(board.run(job, blobs.path)).wall_time
        assert time
        assert time.minimum_seconds >= 0.1
        assert time.calls == 1
        assert 1 <= time.regions <= most


def test_a_profile_has_every_call_by_the_device_s_clock(
    board: Runner, runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    dense = dense_job(blobs, compiled["good"])
    job = replace(dense, profile=("no_work", "dense"))
    empty, whole = measured(runner.run(job, blobs.path)).profile
    assert (empty.cycles, empty.wall_time) == (36, None)
    assert whole.cycles == measured(runner.run(dense, blobs.path)).counted.cycles
    timed = replace(job, precision=Precision(error=0.05, seconds=0.2))
    on_board = measured(board.run(timed, blobs.path)).profile
    assert [call.cycles for call in on_board] == [None, None]
    for call, cycles in zip(on_board, (36, whole.cycles), strict=True):
        assert call.wall_time
        assert call.wall_time.minimum_seconds >= cycles / MHZ / 1e6


def test_a_program_is_timed_in_turns_with_its_parts(
    board: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = bad_job(
        compiled["bad"],
        "is_slow_until_its_part_ran",
        precision=Precision(error=1e-9, seconds=0.3),
        profile=("a_part",),
    )
    time = measured(board.run(job, blobs.path)).wall_time
    assert time
    assert 0.01 <= time.median_seconds < 0.1


def test_a_profile_that_gives_another_answer_is_wrong(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = replace(dense_job(blobs, compiled["good"]), profile=("no_work",))
    assert failed(runner.run(job, blobs.path)).status is Status.WRONG_RESULT


def test_a_profile_of_an_entry_that_is_not_there_is_told(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = replace(dense_job(blobs, compiled["good"]), profile=("dense", "not_there"))
    failure = failed(runner.run(job, blobs.path))
    assert (failure.status, failure.why) == (
        Status.LOAD_ERROR,
        "the artifact has no entry not_there",
    )


def test_a_profile_without_a_counter_needs_a_precision(
    board: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = replace(dense_job(blobs, compiled["good"]), profile=("dense",))
    failure = failed(board.run(job, blobs.path))
    assert (failure.status, failure.untimed) == (Status.INFRA_ERROR, True)
    assert "with a precision alone" in failure.why


def test_the_self_test_finds_the_clock() -> None:
    proof = self_test(SIM, runtime=find_stand_in(), device="d")
    assert (proof.clock, proof.cycles) == (DeviceClock.SECONDS, None)
    assert proof.wall_time
    assert "us by the host's clock" in str(proof)


@pytest.fixture
def lying(tmp_path: Path) -> Callable[[str], Path]:
    """The stand-in with counters that lie."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")

    def made(lie: str) -> Path:
        (tmp_path / find_library().name).symlink_to(find_library())
        library = tmp_path / "libvta.so"
        sources = [str(RUNTIME / "board" / "board.cc"), str(Path(__file__).with_name("liar.c"))]
        flags = ["-shared", "-fPIC", "-O1", "-std=c++17", "-x", "c++", f"-DLIE={lie}"]
        include = f"-I{RUNTIME / 'include'}"
        command = ["c++", *flags, include, "-o", str(library), *sources, "-ldl"]
        subprocess.run(command, check=True)
        return library

    return made


def test_a_counter_that_stands_still_is_none(lying: Callable[[str], Path]) -> None:
    proof = self_test(SIM, runtime=lying("ZEROS"), device="d")
    assert (proof.clock, proof.cycles) == (DeviceClock.SECONDS, None)


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ("CONSTANTS", "the known kernel counts acc_load_nbytes 6510615555426900570, not 4096"),
        ("CRASH", "the known kernel ends as run_crash: SIGSEGV at address 0x10"),
    ],
)
def test_counters_that_cannot_be_are_told_before_the_device_serves(
    lying: Callable[[str], Path], lie: str, why: str
) -> None:
    with pytest.raises(SelfTestError, match="fails its self-test") as refused:
        self_test(SIM, runtime=lying(lie), device="d")
    assert why in refused.value.what


def test_a_library_sees_the_variables_that_are_for_it_and_no_others(
    monkeypatch: pytest.MonkeyPatch, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    monkeypatch.setenv("TILEFARM_BOARD_MHZ", "fast")
    with Runner(target=SIM, library=find_stand_in()) as runner:
        measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path))


def test_a_library_that_dies_as_it_is_loaded_says_why(
    blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    clock = {"TILEFARM_BOARD_MHZ": "fast"}
    output = BufferSpec(name="out", role=Role.OUTPUT, nbytes=64)
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(output,))
    with Runner(target=SIM, library=find_stand_in(), environment=clock) as runner:
        outcome: Measurement | RunFailure = runner.run(job, blobs.path)
    failure = failed(outcome)
    assert failure.status is Status.LOAD_ERROR
    assert "libtilefarm_board.so cannot be loaded: SIGABRT" in failure.why
    assert "TILEFARM_BOARD_MHZ=fast is no number that it can be" in failure.why
