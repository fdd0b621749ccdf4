"""CPU kernels as machine code, against the interpreter."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest
from kit.kernels import qlinear
from kit.kernels.nests import EXAMPLES, SIM, inputs_of
from kit.kernels.runtime_double import call, outputs_like, runtime_double

from compile_worker.emit import kernel_object
from compile_worker.ir.interpret import interpret
from compile_worker.lowering import lower
from compile_worker.te import nest_of

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code")


COMPARED_WITH_NUMPY = set(qlinear.EXAMPLES) - {"qlinear_conv2d", "qlinear_depthwise2d"}
"""As machine code of their schedules, by the test of their spaces."""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runtime_double(tmp_path_factory.mktemp("runtime"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in COMPARED_WITH_NUMPY else ())
        for name in EXAMPLES
    ],
)
def test_machine_code_does_what_the_interpreter_does(
    name: str, runtime: Path, tmp_path: Path
) -> None:
    work = EXAMPLES[name]
    func = nest_of(work, SIM)
    kernel = tmp_path / "kernel.so"
    kernel.write_bytes(kernel_object(lower(func, SIM), "entry", SIM))
    arrays = inputs_of(work)
    made = outputs_like({spec.name: (spec.shape, spec.dtype.value) for spec in work.outputs})
    assert call(runtime, kernel, "entry", [*arrays.values(), *made.values()]) == 0
    for key, wanted in interpret(func, arrays).items():
        np.testing.assert_array_equal(made[key], wanted.reshape(made[key].shape))


def test_tensors_begin_at_their_offsets(runtime: Path, tmp_path: Path) -> None:
    work = EXAMPLES["max_pool2d"]
    func = nest_of(work, SIM)
    kernel = tmp_path / "kernel.so"
    kernel.write_bytes(kernel_object(lower(func, SIM), "entry", SIM))
    x = inputs_of(work)["x"]
    wanted = interpret(func, {"x": x})["out"]
    arena = np.full(256 + x.nbytes + 256 + wanted.nbytes, 77, np.uint8)
    arena[256 : 256 + x.nbytes] = x.reshape(-1).view(np.uint8)
    out = 256 + x.nbytes + 256
    assert call(runtime, kernel, "entry", [arena, arena], [256, out]) == 0
    assert arena[out:].tobytes() == wanted.tobytes()
    assert set(arena[:256]) == {77}
