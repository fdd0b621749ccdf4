"""The pool of a program: threads that come early, late or never, and the same bytes."""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from kit.kernels.nests import EXAMPLES, inputs_of
from tilefarm.artifact import Artifact, Call, CompileJob, ProgramJob
from tilefarm.processors import AARCH64, ARMV7, this_processor
from tilefarm.target import Host
from tilefarm.trace import Step, Trace

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.parallel import sharing_text
from compile_worker.codegen.pool import CLOSE, HELP, OPEN, pool_text
from compile_worker.compiler import compile_program, lowered
from device_server.device.elf import Machine, rejection
from driver.network.integer.reference import run_workload

WORK = EXAMPLES["add"]
SHARED = Trace((Step("reorder", ("out_h", "out_co")), Step("parallel", ("out_h",))))
CPU = this_processor()

here = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code")


def kernel(trace: Trace) -> CompileJob:
    return CompileJob(workload=WORK, trace=trace, target=CPU)


def program(trace: Trace, calls: int = 1) -> bytes:
    call = Call(kernel="kernel", arguments=((0, 0), (1, 0), (2, 0)))
    job = ProgramJob(kernels=(kernel(trace),), calls=(call,) * calls, buffers=3, target=CPU)
    made = compile_program(job)
    assert isinstance(made, Artifact), made
    return made.code


def loaded(folder: Path, calls: int) -> ctypes.CDLL:
    file = folder / "network.so"
    file.write_bytes(program(SHARED, calls=calls))
    return ctypes.CDLL(str(file))


@pytest.fixture
def library(tmp_path: Path) -> ctypes.CDLL:
    return loaded(tmp_path, calls=5)


@contextmanager
def opened(library: ctypes.CDLL, threads: int) -> Iterator[None]:
    library[OPEN](ctypes.c_int64(threads))
    try:
        yield
    finally:
        library[CLOSE]()


def assert_right(library: ctypes.CDLL) -> None:
    arrays = inputs_of(WORK)
    out = np.full(WORK.outputs[0].shape, 77, np.int8)
    handles = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in (*arrays.values(), out)))
    assert library.network(handles, (ctypes.c_int64 * 3)()) == 0
    np.testing.assert_array_equal(out, run_workload(WORK, arrays)["out"])


@here
def test_helpers_share_every_call_of_every_run(library: ctypes.CDLL) -> None:
    for threads in (2, 3, 2, 1, 4):
        helpers = [threading.Thread(target=library[HELP]) for _ in range(threads - 1)]
        with opened(library, threads):
            for helper in helpers:
                helper.start()
            for _ in range(200):
                assert_right(library)
        for helper in helpers:
            helper.join()


@here
def test_nobody_waits_for_helpers_that_never_come(library: ctypes.CDLL) -> None:
    with opened(library, 8):
        assert_right(library)
    assert_right(library)


@here
def test_a_helper_that_comes_too_late_returns_at_once(library: ctypes.CDLL) -> None:
    library[HELP]()
    with opened(library, 2):
        assert_right(library)
    library[HELP]()
    assert_right(library)


@here
def test_several_threads_call_open_and_close_at_once(tmp_path: Path) -> None:
    """Whoever finds the pool busy computes alone: nobody takes another's parts, nor waits."""
    library = loaded(tmp_path, calls=1000)
    wrong: list[AssertionError] = []

    def run(opens: bool) -> None:
        try:
            for _ in range(10):
                if opens:
                    library[OPEN](ctypes.c_int64(3))
                assert_right(library)
                if opens:
                    library[CLOSE]()
        except AssertionError as error:
            wrong.append(error)

    helper = threading.Thread(target=library[HELP])
    callers = [threading.Thread(target=run, args=(opens,)) for opens in (False, False, True, True)]
    with opened(library, 2):
        for each in (helper, *callers):
            each.start()
        for each in callers:
            each.join()
    helper.join()
    assert not wrong


def test_a_program_asks_for_nothing_and_may_be_loaded_on_a_device() -> None:
    code = program(SHARED)
    assert not undefined_symbols(code)
    assert rejection(code, Machine.of_triple(CPU.host.triple)) is None


def test_a_program_without_shared_kernels_has_no_pool() -> None:
    assert OPEN.encode() in program(SHARED)
    assert OPEN.encode() not in program(Trace())


@pytest.mark.parametrize(
    "host", [Host(triple=AARCH64, cpu="generic"), Host(triple=ARMV7, cpu="generic")]
)
def test_other_processors_have_one_that_calls_no_library_either(host: Host) -> None:
    func = lowered(kernel(SHARED))
    text = f"{sharing_text([func])}{pool_text([func], host)}"
    assert not undefined_symbols(object_code(text, host, fast_code=True))
