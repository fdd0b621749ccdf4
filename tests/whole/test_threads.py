"""Threads of the sandboxed child share the work of parallel kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.built import needs_simulator
from kit.kernels.nests import EXAMPLES, SIM, inputs_of
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob
from tilefarm.trace import Step, Trace

from compile_worker.compiler import compile_kernel
from device_server.runner.runner import Runner, RunnerLimits
from driver.network.integer.reference import run_workload

pytestmark = needs_simulator


def ran(
    folder: Path, code: bytes, buffers: list[BufferSpec], threads: int, repeats: int = 0
) -> Measurement | RunFailure:
    artifact = Digest.of(code)
    (folder / artifact.hex).write_bytes(code)
    job = RunJob(artifact=artifact, entry="kernel", buffers=tuple(buffers), repeats=repeats)
    with Runner(target=SIM, limits=RunnerLimits(threads=threads)) as runner:
        return runner.run(job, lambda digest: folder / digest.hex)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_shared_work_gives_the_same_bytes_again_and_again(threads: int, tmp_path: Path) -> None:
    work = EXAMPLES["add"]
    trace = Trace((Step("reorder", ("out_h", "out_co")), Step("parallel", ("out_h",))))
    made = compile_kernel(CompileJob(workload=work, trace=trace, target=SIM))
    assert isinstance(made, Artifact), made
    arrays = inputs_of(work)
    wanted = run_workload(work, arrays)["out"]
    buffers = []
    for name, array in arrays.items():
        content = Digest.of(array.tobytes())
        (tmp_path / content.hex).write_bytes(array.tobytes())
        buffers.append(BufferSpec(name=name, role=Role.INPUT, nbytes=array.nbytes, content=content))
    expected = Digest.of(np.ascontiguousarray(wanted).tobytes())
    buffers.append(
        BufferSpec(name="out", role=Role.OUTPUT, nbytes=wanted.nbytes, expected=expected)
    )
    result = ran(tmp_path, made.code, buffers, threads, repeats=200)
    assert isinstance(result, Measurement), result
    assert len(result.seconds) == 200
