"""Bytes between rows of pixels and blocks of channels, turned in registers where that is faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from kit.kernels import qlinear_elements
from kit.kernels.nests import SIM
from kit.kernels.runtime_double import call, runtime_double
from kit.objects.hosts import X86
from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.emit import kernel_object, kernel_text
from compile_worker.ir.interpret import interpret
from compile_worker.lowering import lower
from compile_worker.schedule import replay
from compile_worker.schedule.cpu import cpu_trace
from compile_worker.te import nest_of

FULL: Final = X86["avx512vnni"][0]
VBMI: Final = replace(SIM, host=replace(FULL, features=f"{FULL.features},+avx512vbmi"))
PLAIN, BLOCKED, FLAT = (2, 32, 4, 12), (2, 2, 4, 12, 1, 16), (2, 32, 4, 12, 1, 1)
ALIKE: Final = (PLAIN, PLAIN)

TURNED: Final[Mapping[str, Workload]] = {
    "quantize": qlinear_elements.quantize(PLAIN, (DType.UINT8, BLOCKED), 120),
    "dynamic": qlinear_elements.dynamic(PLAIN, BLOCKED),
    "dequantize": qlinear_elements.dequantize((DType.INT8, BLOCKED), PLAIN, -3),
    "to blocks": qlinear_elements.relayout(DType.INT8, FLAT, BLOCKED, ALIKE),
    "from blocks": qlinear_elements.relayout(DType.UINT8, BLOCKED, FLAT, ALIKE),
}
LEFT: Final[Mapping[str, Workload]] = {
    "absent channels": qlinear_elements.quantize((2, 19, 4, 12), (DType.UINT8, BLOCKED), 3),
    "few pixels": qlinear_elements.quantize((2, 32, 3), (DType.UINT8, (2, 2, 3, 1, 16)), 3),
    "five more": qlinear_elements.quantize((1, 32, 21), (DType.UINT8, (1, 2, 21, 1, 16)), 3),
    "another shape": qlinear_elements.relayout(
        DType.INT8, FLAT, (2, 1, 96, 1, 16), (PLAIN, (2, 16, 96))
    ),
}


@pytest.mark.parametrize("name", TURNED)
def test_bytes_are_turned_in_registers(name: str, tmp_path: Path) -> None:
    work = TURNED[name]
    nest = nest_of(work, VBMI)
    trace = cpu_trace(work, VBMI)
    lowered = lower(replay(trace, nest, VBMI), VBMI)
    assert "<256 x i8>" in kernel_text(lowered, "entry", VBMI)
    rng = np.random.default_rng(7)
    arrays = {
        spec.name: rng.normal(0, 3, spec.shape).astype(np.float32)
        if spec.dtype.is_float
        else rng.integers(0, 256, spec.shape, np.uint8).view(spec.dtype.value)
        for spec in work.inputs
    }
    if "grid" in arrays:
        arrays["grid"][:] = (0.05, 120)
    wanted = interpret(nest, arrays)["out"]
    np.testing.assert_array_equal(interpret(lowered, arrays)["out"].reshape(wanted.shape), wanted)
    if "avx512vbmi" not in Path("/proc/cpuinfo").read_text().split():
        return
    kernel = tmp_path / "kernel.so"
    kernel.write_bytes(kernel_object(lowered, "entry", VBMI))
    found = np.zeros_like(wanted)
    assert call(runtime_double(tmp_path), kernel, "entry", [*arrays.values(), found]) == 0
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", [*TURNED, *LEFT])
def test_others_are_left_as_they_are(name: str) -> None:
    """What is no vector of pixels of whole blocks, and all where nothing permutes two vectors."""
    target = SIM if name in TURNED else VBMI
    assert not cpu_trace({**TURNED, **LEFT}[name], target).steps
