"""Layers of every kind on odd shapes and other accelerators: compiled and run, they are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kit.built import needs_simulator
from kit.examples import examples
from kit.kernels import numpy_operators
from kit.kernels.nests import begun, inputs_of
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from compile_worker.ir.interpret import interpret
from compile_worker.machines.vta.space.layer import layer_of
from compile_worker.space import generate, lower_bound_cycles
from compile_worker.te import nest_of
from device_server.vta.library.library import VtaLibrary
from device_server.vta.library.native import Strictness
from tuner.sampler import Sampler

from . import kinds
from .plausible import accusation

pytestmark = needs_simulator

Array = npt.NDArray[Any]
Run = Callable[[kinds.Case, Trace, dict[str, Array]], "tuple[bytes, int]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The output and the cycles of a schedule, on an accelerator as strict as there is one."""
    library = VtaLibrary()
    folder = tmp_path_factory.mktemp("kernels")
    loaded = iter(range(1 << 30))

    def once(case: kinds.Case, trace: Trace, arrays: dict[str, Array]) -> tuple[bytes, int]:
        work, target = case.work, case.target
        made = compile_kernel(CompileJob(workload=work, trace=trace, target=target, symbol="entry"))
        assert isinstance(made, Artifact), made
        code = folder / f"{next(loaded)}.so"
        code.write_bytes(made.code)
        narrow = target.lanes.batch == 1
        library.configure(target, strictness=Strictness.CHISEL if narrow else Strictness.HLS)
        inputs = [arrays[spec.name].tobytes() for spec in work.inputs]
        result = library.run_entry(code, "entry", [*inputs, work.outputs[0].nbytes])
        assert accusation(work, target, made, result.counters) == ""
        return result.buffers[-1], result.counters.cycles

    return once


def reads_something(work: Workload) -> bool:
    """Whether any tap of any window is inside the image: the hardware has no empty copy."""
    layer = layer_of(work)
    assert layer is not None
    return layer.read_vectors > 0


def all_is_right(run: Run, case: kinds.Case, seed: int) -> None:
    """The plain schedule and one of any, against numpy and the interpreter."""
    assume(reads_something(case.work))
    arrays = inputs_of(case.work, seed)
    wanted = numpy_operators.run(case.work, arrays)
    found = interpret(nest_of(case.work, case.target), arrays | begun(case.work))["out"]
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
    made = generate(case.work, case.target)
    points = Sampler(made.space).sample(1, np.random.default_rng(seed))
    for point in [dict(made.space.default), *points]:
        out, cycles = run(case, made.trace(point), arrays)
        assert out == wanted.tobytes()
        assert cycles >= lower_bound_cycles(case.work, case.target)


@given(case=kinds.kinds(), seed=st.integers(0, 1 << 16))
@settings(max_examples=examples(20), deadline=None)
def test_every_kind_compiles_runs_and_is_right(run: Run, case: kinds.Case, seed: int) -> None:
    all_is_right(run, case, seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@given(case=kinds.kinds(), seed=st.integers(0, 1 << 16))
@settings(max_examples=examples(150), deadline=None)
def test_many_of_every_kind(run: Run, case: kinds.Case, seed: int) -> None:
    all_is_right(run, case, seed)
