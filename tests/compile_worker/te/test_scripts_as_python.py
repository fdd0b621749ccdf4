"""A script means what Python makes of it: random ones, interpreted, scheduled and compiled."""

from __future__ import annotations

import linecache
import platform
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kit.kernels.nests import SIM
from kit.kernels.traces import scheduled
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import Buffer
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.parser import parse
from compile_worker.ir.printer import show
from compile_worker.ir.verify import Stage, verify
from compile_worker.machines.cpu.space.scripts import simplified
from compile_worker.schedule import Schedule
from compile_worker.te.nest import nest
from compile_worker.te.script import script
from compile_worker.te.tensor import placeholder

from .machine import run_compiled
from .scripts import COLUMNS, ROWS, as_python, scripts

INPUTS: Final = [placeholder(TensorSpec(n, (ROWS, COLUMNS), DType.INT32)) for n in ("x", "y")]
FILES: Final = count()


def func_of(text: str) -> Func:
    """The function that a script's text describes."""
    file = f"script_{next(FILES)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    made = script(names["made"])(INPUTS, [Buffer("out", (ROWS, COLUMNS), DType.INT32)])
    return nest("made", INPUTS, [made])


def explore(folder: Path, examples: int, *, derandomize: bool) -> Counter[str]:
    """Draws scripts; how many of them each primitive made simpler."""
    names: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        database=None,
        phases=(Phase.generate, Phase.shrink) if examples < 100 else (Phase.generate,),
    )
    @given(scripts(), st.integers(0, 5), st.data())
    def check(text: str, seed: int, data: st.DataObject) -> None:
        rng = np.random.default_rng(seed)
        inputs = {
            each.buffer.name: rng.integers(-9, 9, (ROWS, COLUMNS)).astype(np.int32)
            for each in INPUTS
        }
        wanted = as_python(text, inputs["x"], inputs["y"])
        func = func_of(text)
        verify(func, Stage.NEST)
        assert parse(show(func)) is func
        np.testing.assert_array_equal(interpret(func, inputs)["out"], wanted)
        steps, simple = simplified(func, SIM)
        names.update({step.primitive for step in steps})
        schedule = data.draw(_steps(Schedule(simple if data.draw(st.booleans()) else func, SIM)))
        np.testing.assert_array_equal(interpret(schedule.func, inputs)["out"], wanted)
        if platform.machine() == "x86_64":
            made = run_compiled(folder, schedule.func, inputs)["out"]
            np.testing.assert_array_equal(made, wanted)

    check()
    return names


@st.composite
def _steps(draw: st.DrawFn, beginning: Schedule) -> Schedule:
    return scheduled(draw, beginning, 5, Counter(), memories=("local",))


def test_scripts_mean_what_python_makes_of_them(tmp_path: Path) -> None:
    explore(tmp_path, 25, derandomize=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_scripts_mean_what_python_makes_of_them(tmp_path: Path) -> None:
    names = explore(tmp_path, 300, derandomize=settings().derandomize)
    assert names["if_convert"] > 30
    assert names["distribute"] > 30
