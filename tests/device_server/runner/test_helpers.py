"""Helper threads of the child: they do their parts, and may do no more than the child."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.target import TARGETS

from device_server.runner.runner import Runner, RunnerLimits

SIGSEGV, SIGSYS = 11, 31


@pytest.fixture
def runner() -> Iterator[Runner]:
    with Runner(target=TARGETS["sim"], limits=RunnerLimits(threads=3)) as made:
        yield made


def job(artifact: Digest, entry: str, repeats: int = 0) -> RunJob:
    out = BufferSpec(name="out", role=Role.OUTPUT, nbytes=32, fetch=True)
    return RunJob(artifact=artifact, entry=entry, buffers=(out,), repeats=repeats)


def test_every_part_is_done_in_every_call(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    result = runner.run(job(compiled["shared"], "numbers", repeats=500), blobs.path)
    assert isinstance(result, Measurement), result
    ((_, content),) = result.outputs
    parts = 3 * 4
    assert content[: parts + 2] == bytes([parts, *range(parts), 0])


def test_one_thread_does_all_of_it(blobs: Blobs, compiled: dict[str, Digest]) -> None:
    with Runner(target=TARGETS["sim"]) as runner:
        result = runner.run(job(compiled["shared"], "numbers"), blobs.path)
    assert isinstance(result, Measurement), result
    assert result.outputs[0][1][:3] == bytes([1, 0, 0])


@pytest.mark.parametrize(("entry", "signal"), [("stray", SIGSEGV), ("deep", SIGSEGV)])
def test_a_helper_that_crashes_is_a_crash_of_the_child(
    entry: str, signal: int, runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    result = runner.run(job(compiled["shared"], entry), blobs.path)
    assert isinstance(result, RunFailure), result
    assert (result.status, result.signal) == (Status.RUN_CRASH, signal)


def test_helpers_that_crash_together_are_told_of_as_one(
    blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    """Four of them store to nowhere, often before the first one has said so."""
    with Runner(target=TARGETS["sim"], limits=RunnerLimits(threads=5)) as runner:
        for _ in range(60):
            result = runner.run(job(compiled["shared"], "stray"), blobs.path)
            assert isinstance(result, RunFailure), result
            assert "SIGSEGV at address 0x8 " in result.why


@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls the system as x86-64 does")
@pytest.mark.parametrize("entry", ["fork_", "clone_", "open_"])
def test_a_helper_may_do_no_more_than_its_child(
    entry: str, runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    result = runner.run(job(compiled["shared"], entry), blobs.path)
    assert isinstance(result, RunFailure), result
    assert result.signal == SIGSYS, result


def test_the_next_job_gets_a_child_of_its_own(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    assert isinstance(runner.run(job(compiled["shared"], "stray"), blobs.path), RunFailure)
    assert isinstance(runner.run(job(compiled["shared"], "numbers"), blobs.path), Measurement)
