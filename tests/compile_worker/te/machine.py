"""Functions of the CPU as machine code of this machine, called on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
from kit.kernels.nests import SIM
from kit.kernels.runtime_double import call, outputs_like, runtime_double

from compile_worker.emit import kernel_object
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.lowering import lower

Arrays = Mapping[str, npt.NDArray[Any]]


def run_compiled(folder: Path, func: Func, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """What a function computes when it is lowered, compiled and called."""
    shapes = {name: (each.shape, each.dtype) for name, each in interpret(func, inputs).items()}
    runtime = runtime_double(folder)
    kernel = folder / f"kernel{len(list(folder.iterdir()))}.so"
    kernel.write_bytes(kernel_object(lower(func, SIM, check=True), "entry", SIM))
    made = outputs_like(shapes)
    assert call(runtime, kernel, "entry", [*inputs.values(), *made.values()]) == 0
    return made
