"""Parallel kernels: what they export, and that parts in any order make the whole."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from kit.golden import Golden
from kit.kernels.nests import EXAMPLES, SIM, inputs_of
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from tilefarm.artifact import Artifact, Call, CompileJob, ProgramJob
from tilefarm.trace import Step, Trace

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.parallel import SETTER, parallel_loop
from compile_worker.compiler import compile_kernel, compile_program, lowered
from compile_worker.emit import kernel_text
from compile_worker.ir.interpret import interpret
from compile_worker.machines.vta.codegen.runtime_abi import FUNCTIONS
from compile_worker.te import nest_of

ROWS = Trace((Step("reorder", ("out_h", "out_co")), Step("parallel", ("out_h",))))
WORK = EXAMPLES["add"]

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code")


def job(trace: Trace = ROWS) -> CompileJob:
    return CompileJob(workload=WORK, trace=trace, target=SIM)


def artifact() -> Artifact:
    made = compile_kernel(job())
    assert isinstance(made, Artifact), made
    return made


PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
SHARE = ctypes.CFUNCTYPE(None, PART, ctypes.c_void_p)


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_in_any_order_are_the_whole(parts: int, tmp_path: Path) -> None:
    kernel, double = tmp_path / "kernel.so", runtime_double(tmp_path)
    kernel.write_bytes(artifact().code)
    both = kernel.with_suffix(".both.so")
    subprocess.run(
        ["ld", "-shared", "--no-as-needed", "-o", str(both), str(kernel), str(double)], check=True
    )
    library = ctypes.CDLL(str(both))
    done: list[int] = []

    def share(part: ctypes._CFunctionType, state: int) -> None:
        for number in reversed(range(parts)):
            part(state, number, parts)
            done.append(number)

    given = SHARE(share)
    getattr(library, SETTER)(given)
    arrays = inputs_of(WORK)
    out = np.full(WORK.outputs[0].shape, 77, np.int8)
    handles = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in (*arrays.values(), out)))
    assert library.kernel(handles, (ctypes.c_int64 * 3)()) == 0
    np.testing.assert_array_equal(out, interpret(nest_of(WORK, SIM), arrays)["out"])
    assert done == list(reversed(range(parts)))


def test_without_threads_it_is_a_kernel_like_any_other(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.so"
    kernel.write_bytes(artifact().code)
    arrays = inputs_of(WORK)
    made = outputs_like({"out": (WORK.outputs[0].shape, np.int8)})
    answer = call(runtime_double(tmp_path), kernel, "kernel", [*arrays.values(), made["out"]])
    assert answer == 0
    np.testing.assert_array_equal(made["out"], interpret(nest_of(WORK, SIM), arrays)["out"])
    assert undefined_symbols(artifact().code) <= FUNCTIONS.keys()


def test_only_objects_with_parallel_kernels_export_the_setter() -> None:
    plain = compile_kernel(job(Trace()))
    assert isinstance(plain, Artifact)
    assert SETTER.encode() in artifact().code
    assert SETTER.encode() not in plain.code
    program = ProgramJob(
        kernels=(job(), CompileJob(workload=WORK, trace=Trace(), target=SIM, symbol="other")),
        calls=(Call(kernel="kernel", arguments=((0, 0), (1, 0), (2, 0))),),
        buffers=3,
        target=SIM,
    )
    made = compile_program(program)
    assert isinstance(made, Artifact), made
    assert SETTER.encode() in made.code


def test_a_parallel_loop_inside_of_another_runs_alone() -> None:
    inner = Trace((Step("parallel", ("out_h",)),))
    assert parallel_loop(lowered(job())) is not None
    assert parallel_loop(lowered(job(inner))) is None
    assert isinstance(compile_kernel(job(inner)), Artifact)


def test_a_parallel_kernel_as_text(golden: Golden) -> None:
    golden(kernel_text(lowered(job()), "entry", SIM))
