"""Kernels that lie about what they did: nothing that they can write or say is believed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.machine import VTA_COUNTERS
from tilefarm.measurement import BufferSpec, Measurement, Precision, Role, RunJob, Status
from tilefarm.target import TARGETS

from device_server.runner.frames import FailureKind
from device_server.runner.runner import Runner
from device_server.vta.library.native import find_stand_in

from .test_runner import dense_job, failed, measured

READY, DONE, FAILED, STARTED, CALLS = 1, 2, 3, 5, 6
ONE_CYCLE = (1, *[0] * (len(VTA_COUNTERS) - 1))


def framed(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def done_frame(
    *, run_seconds: float = 1e-6, counts: bool = True, seconds: tuple[float, ...] = ()
) -> bytes:
    """The answer of a child whose only sample took one cycle."""
    return framed(
        struct.pack("<BdB", DONE, run_seconds, counts)
        + struct.pack(f"<{len(ONE_CYCLE)}Q", *ONE_CYCLE)
        + (struct.pack("<IQ", 1, 1) if counts else struct.pack("<I", 0))
        + struct.pack(f"<I{len(seconds)}d", len(seconds), *seconds)
        + struct.pack("<BII", 0, 0, 0)
    )


def text(words: str) -> bytes:
    return struct.pack("<I", len(words)) + words.encode()


def lying_job(blobs: Blobs, artifact: Digest, entry: str, **more: Any) -> RunJob:
    """The work of `dense`, done by another entry."""
    return replace(dense_job(blobs, artifact, samples=1), entry=entry, **more)


def speaking_job(blobs: Blobs, artifact: Digest, entry: str, frame: bytes) -> RunJob:
    """One that says this frame to whoever hears it; what it computes is not looked at."""
    job = lying_job(blobs, artifact, entry, timeout_seconds=60.0)
    content = blobs.put(struct.pack("<Q", len(frame)) + frame)
    spoken = BufferSpec(name="frame", role=Role.CONSTANT, nbytes=len(frame) + 8, content=content)
    x, w, y = job.buffers
    return replace(job, buffers=(x, w, replace(y, expected=None), spoken))


@pytest.fixture
def board() -> Iterator[Runner]:
    with Runner(target=TARGETS["sim"], library=find_stand_in(), device="board") as runner:
        yield runner


@pytest.fixture
def honest(runner: Runner, blobs: Blobs, compiled: dict[str, Digest]) -> Measurement:
    return measured(runner.run(dense_job(blobs, compiled["good"], samples=1), blobs.path))


@pytest.mark.parametrize("repeats", [0, 2])
@pytest.mark.parametrize(
    "entry", ["clears_the_counters", "forgets_its_calls", "writes_over_the_counters"]
)
def test_what_the_accelerator_did_is_told(
    runner: Runner,
    blobs: Blobs,
    compiled: dict[str, Digest],
    honest: Measurement,
    entry: str,
    repeats: int,
) -> None:
    job = lying_job(blobs, compiled["forger"], entry, repeats=repeats)
    found = measured(runner.run(job, blobs.path))
    assert (found.counters, found.sample_cycles) == (honest.counters, honest.sample_cycles)


@pytest.mark.parametrize("precision", [None, Precision(error=0.5, seconds=0.01)])
def test_a_kernel_has_no_calls_of_its_own(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest], precision: Precision | None
) -> None:
    job = lying_job(blobs, compiled["forger"], "begins_another_call", precision=precision)
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is Status.RUN_CRASH
    assert "was told of 2 calls, but 1 were made" in failure.why
    measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("fails_and_speaks", "do not lie in one buffer"),
        ("leaves_a_token_and_speaks", "tokens left over: 1 compute->load"),
    ],
)
def test_what_the_accelerator_did_not_do_is_told_by_itself(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest], entry: str, why: str
) -> None:
    job = speaking_job(blobs, compiled["forger"], entry, done_frame(counts=False))
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is Status.RUN_CRASH
    assert why in failure.why


def test_a_call_that_is_repeated_without_work_is_wrong(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest], honest: Measurement
) -> None:
    """What lies in the output of the call before would be right."""
    job = lying_job(blobs, compiled["forger"], "works_the_first_time")
    assert measured(runner.run(job, blobs.path)).counters == honest.counters
    runner.run(dense_job(blobs, compiled["good"]), blobs.path)
    failure = failed(runner.run(replace(job, repeats=2), blobs.path))
    assert failure.status is Status.WRONG_RESULT
    assert failure.why == "buffer 2 differs between two calls with the same inputs"


@pytest.mark.parametrize("counts", [True, False])
def test_a_forged_answer_has_the_counters_of_what_was_done(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest], honest: Measurement, counts: bool
) -> None:
    frame = done_frame(counts=counts)
    job = speaking_job(blobs, compiled["forger"], "works_and_speaks", frame)
    assert measured(runner.run(job, blobs.path)).counters == honest.counters


def test_who_answers_before_it_works_has_not_been_called(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = speaking_job(blobs, compiled["forger"], "speaks", done_frame(counts=False))
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is Status.RUN_CRASH
    assert "was told of 0 calls, but 1 were made" in failure.why


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (framed(bytes([READY]) + text("") + text("") + b"\1"), "it answers with Ready"),
        (framed(struct.pack("<Bii", STARTED, 1, 1)), "it answers with Started"),
        (framed(struct.pack("<BBII", CALLS, 0, 0, 0)), "it answers with Account"),
        (
            framed(struct.pack("<BB", FAILED, FailureKind.PROTOCOL) + text("the disk is full")),
            "the disk is full",
        ),
        (done_frame(counts=False, run_seconds=3600.0), "a run of 3600 s within"),
        (done_frame(counts=False, run_seconds=float("nan")), "a run of nan s within"),
        (done_frame(counts=False, run_seconds=-1.0), "a run of -1 s within"),
        (done_frame(counts=False, seconds=(1e-9,)), "1 times for 0 repeats"),
        (framed(bytes([DONE])), "a malformed reply"),
    ],
)
def test_words_that_no_child_says_are_the_kernel_s_fault(
    runner: Runner,
    board: Runner,
    blobs: Blobs,
    compiled: dict[str, Digest],
    frame: bytes,
    why: str,
) -> None:
    for each in (runner, board):
        failure = failed(
            each.run(speaking_job(blobs, compiled["forger"], "speaks", frame), blobs.path)
        )
        assert failure.status is Status.RUN_CRASH
        assert failure.why.startswith("the kernel broke the connection: ")
        assert why in failure.why


@pytest.mark.parametrize("seconds", [3600.0, 0.0, -1.0, float("inf"), float("nan")])
def test_times_are_within_those_of_the_parent_s_clock(
    board: Runner, blobs: Blobs, compiled: dict[str, Digest], seconds: float
) -> None:
    job = replace(
        speaking_job(
            blobs, compiled["forger"], "speaks", done_frame(counts=False, seconds=(seconds,))
        ),
        repeats=1,
    )
    failure = failed(board.run(job, blobs.path))
    assert failure.status is Status.RUN_CRASH
    assert "within" in failure.why or "takes no time, or for ever" in failure.why
