"""Whatever primitives accept on a function of the CPU compiles, and runs to the same bits."""

from __future__ import annotations

import platform
from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kit.kernels.nests import EXAMPLES, SIM, inputs_of
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from kit.kernels.traces import scheduled

from compile_worker.emit import kernel_object
from compile_worker.ir.interpret import interpret
from compile_worker.lowering import lower
from compile_worker.schedule import Schedule
from compile_worker.te import nest_of

from .random_stages import programs

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code")

EXPLORED: Final = 12
DEEPLY: Final = 400
LENGTH: Final = 8
OPERATORS: Final = ("add", "affine", "avg_pool2d", "max_pool2d", "quantize", "relayout", "softmax")


def explore(folder: Path, accepted: Counter[str], examples: int, *, derandomize: bool) -> None:
    """Schedule at random, compile, call, and compare with the interpreter."""
    runtime = runtime_double(folder)

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        database=None,
        phases=(Phase.generate,),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        if data.draw(st.booleans()):
            program = data.draw(programs())
            func, arrays = program.func, program.arrays()
        else:
            work = EXAMPLES[data.draw(st.sampled_from(OPERATORS))]
            func, arrays = nest_of(work, SIM), inputs_of(work)
        schedule = data.draw(_steps(Schedule(func, SIM), accepted))
        lowered = lower(schedule.func, SIM, check=True)
        kernel = folder / "kernel.so"
        kernel = kernel.with_stem(f"kernel{accepted.total()}")
        kernel.write_bytes(kernel_object(lowered, "entry", SIM))
        wanted = interpret(func, arrays)
        made = outputs_like({name: (each.shape, each.dtype) for name, each in wanted.items()})
        assert call(runtime, kernel, "entry", [*arrays.values(), *made.values()]) == 0
        for name, array in wanted.items():
            np.testing.assert_array_equal(made[name], array)

    check()


@st.composite
def _steps(draw: st.DrawFn, beginning: Schedule, accepted: Counter[str]) -> Schedule:
    return scheduled(draw, beginning, LENGTH, accepted, memories=("local",))


def test_machine_code_of_any_schedule(tmp_path: Path) -> None:
    accepted: Counter[str] = Counter()
    explore(tmp_path, accepted, EXPLORED, derandomize=True)
    assert accepted.total() - accepted["refused"] >= EXPLORED * 2, accepted


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_machine_code_of_many_schedules(tmp_path: Path) -> None:
    explore(tmp_path, Counter(), DEEPLY, derandomize=settings().derandomize)
