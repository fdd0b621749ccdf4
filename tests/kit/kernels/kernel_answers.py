"""What the machine code of one kernel makes on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from kit.kernels.nests import SIM
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from numpy.typing import NDArray
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.target import Host
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel


def answer(
    work: Workload, host: Host, arrays: Mapping[str, NDArray[Any]], folder: Path
) -> NDArray[np.float32]:
    """The output `out` of a workload compiled for a host, which must be able to run here.

    `arrays` are its operands by name; files are left in the folder.
    """
    job = CompileJob(workload=work, trace=Trace(), target=replace(SIM, host=host))
    made = compile_kernel(job)
    assert isinstance(made, Artifact), made
    kernel = folder / f"{work.digest.short}.so"
    kernel.write_bytes(made.code)
    (spec,) = work.outputs
    found = outputs_like({spec.name: (spec.shape, spec.dtype.value)})
    runtime = runtime_double(folder)
    inputs = [np.ascontiguousarray(arrays[each.name]) for each in work.inputs]
    assert call(runtime, kernel, made.symbols[0], [*inputs, *found.values()]) == 0
    return found["out"]
