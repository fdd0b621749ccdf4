"""Every system call that a kernel may try: the few that compute are let through, no other."""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator

import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.target import TARGETS

from device_server.runner.runner import Runner

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the numbers below are those of x86-64"
)

READS_AND_WRITES = {0: "read", 1: "write", 3: "close", 5: "fstat", 8: "lseek", 17: "pread64"}
VECTORS_AND_MESSAGES = {19: "readv", 20: "writev", 46: "sendmsg", 47: "recvmsg"}
MEMORY = {9: "mmap", 10: "mprotect", 11: "munmap", 12: "brk", 25: "mremap", 28: "madvise"}
WAITING = {24: "sched_yield", 35: "nanosleep", 202: "futex", 230: "clock_nanosleep"}
SIGNALS = {13: "rt_sigaction", 14: "rt_sigprocmask", 15: "rt_sigreturn", 131: "sigaltstack"}
ASKING = {39: "getpid", 96: "gettimeofday", 98: "getrusage", 186: "gettid", 228: "clock_gettime"}
ENDING = {60: "exit", 219: "restart_syscall", 231: "exit_group"}
ALLOWED = {
    **READS_AND_WRITES,
    **VECTORS_AND_MESSAGES,
    **MEMORY,
    **WAITING,
    **SIGNALS,
    **ASKING,
    **ENDING,
    309: "getcpu",
    318: "getrandom",
}
REFUSED = {16: "ioctl", 262: "newfstatat"}
OF_PROBES = {335: "uretprobe", 336: "uprobe"}
"""No filter is asked about them: the kernel answers them at its own addresses only."""
FOREIGN = 0x40000000 + 41
"""A call of the x32 interface."""
LAST = 480


@pytest.fixture
def runner() -> Iterator[Runner]:
    with Runner(target=TARGETS["sim"]) as made:
        yield made


def call(
    number: int, runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> Measurement | RunFailure:
    content = blobs.put(struct.pack("<q", number))
    given = BufferSpec(name="number", role=Role.CONSTANT, nbytes=8, content=content)
    return runner.run(
        RunJob(artifact=compiled["calls"], entry="calls", buffers=(given,)), blobs.path
    )


def test_what_does_not_compute_ends_the_child(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    for number in range(LAST):
        if number in {**ALLOWED, **REFUSED, **OF_PROBES}:
            continue
        outcome = call(number, runner, blobs, compiled)
        assert isinstance(outcome, RunFailure), number
        assert "forbidden system call" in outcome.why, number


@pytest.mark.parametrize("number", [3, 9, 12, 24, 39, 228, 318])
def test_what_computes_is_answered(
    number: int, runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    assert isinstance(call(number, runner, blobs, compiled), Measurement)


def test_a_kernel_that_asks_for_no_more_than_computing_takes_is_measured(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    out = BufferSpec(name="out", role=Role.OUTPUT, nbytes=8)
    job = RunJob(artifact=compiled["everyday"], entry="everyday", buffers=(out,), samples=2)
    assert isinstance(runner.run(job, blobs.path), Measurement)


@pytest.mark.parametrize("number", REFUSED)
def test_what_a_c_library_asks_is_refused_in_words(
    number: int, runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    outcome = call(number, runner, blobs, compiled)
    assert isinstance(outcome, RunFailure)
    assert outcome.why == "calls returned 1"


def test_calls_of_another_interface_end_the_child(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    outcome = call(FOREIGN, runner, blobs, compiled)
    assert isinstance(outcome, RunFailure)
    assert outcome.status is Status.RUN_CRASH
