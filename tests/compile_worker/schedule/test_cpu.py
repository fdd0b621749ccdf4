"""Schedules on the processor: what they are, and that their machine code is right."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from kit.examples import examples
from kit.golden import Golden
from kit.kernels.nests import (
    EXAMPLES,
    LANES,
    SIM,
    conv2d,
    convolutions,
    inputs_of,
    with_epilogue,
    workload,
)
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from kit.objects.hosts import ARM, X86, runs_here
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel, lowered
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import Synchronize
from compile_worker.passes.nests import of_kind
from compile_worker.schedule.cpu import cpu_trace
from compile_worker.te import nest_of

WINDOWS = workload(
    "quantize_windows",
    {"x": (DType.FLOAT32, (1, 3, 40, 24))},
    (DType.INT8, (1, 10, 20, 12, 1, LANES)),
    inv_scale=12.5,
    kernel=(7, 7),
    stride=(2, 2),
    pad=(3, 3, 3, 3),
    dilation=(1, 1),
)
IMAGE = workload(
    "quantize",
    {"x": (DType.FLOAT32, (1, 3, 7, 9))},
    (DType.INT8, (1, 1, 7, 9, 1, LANES)),
    inv_scale=12.5,
)
SHAPES = {
    "conv2d": conv2d(2, 2, 6, 28),
    "conv2d_1x1": conv2d(3, 1, 5, 8, kernel=(1, 1), pad=(0, 0, 0, 0)),
    "conv2d_strided": conv2d(1, 2, 9, 9, stride=(2, 2)),
    "conv2d_factor": with_epilogue(
        conv2d(1, 2, 5, 8, kernel=(1, 1), pad=(0, 0, 0, 0)), factor=True
    ),
    **{
        name: EXAMPLES[name]
        for name in (
            *("conv2d_shift_by_lane", "conv2d_grouped", "conv2d_transpose", "matmul"),
            *("conv2d_planes", "dense_planes"),
        )
    },
    "conv2d_bordered": conv2d(1, 2, 5, 6, border=(1, 2, 0, 1)),
    "dense": EXAMPLES["dense"],
    "quantize_windows": WINDOWS,
    "quantize": IMAGE,
    "wide": replace(
        WINDOWS,
        inputs=(replace(WINDOWS.inputs[0], shape=(1, 12, 40, 24)),),
        outputs=(replace(WINDOWS.outputs[0], shape=(1, 37, 20, 12, 1, LANES)),),
    ),
}


def right(work: Workload, target: Target, folder: Path) -> bool:
    """Whether the kernel that an empty trace stands for does what the interpreter does."""
    made = compile_kernel(CompileJob(workload=work, trace=Trace(), target=target))
    assert isinstance(made, Artifact), made
    kernel = folder / f"{made.job.hex[:16]}.so"
    kernel.write_bytes(made.code)
    arrays = inputs_of(work)
    found = outputs_like({spec.name: (spec.shape, spec.dtype.value) for spec in work.outputs})
    (entry,) = made.symbols
    assert call(runtime_double(folder), kernel, entry, [*arrays.values(), *found.values()]) == 0
    wanted = interpret(nest_of(work, target), arrays)
    return all(np.array_equal(found[k], wanted[k].reshape(found[k].shape)) for k in found)


ENDS = ("sse", "avx512vnni")
"""The least and the best vector unit; convolutions are tried on those between as well."""


@pytest.mark.parametrize(
    ("name", "host"),
    [(name, host) for name in SHAPES for host in X86 if host in ENDS or name == "conv2d"],
)
def test_kernels_are_right_on_every_vector_unit(name: str, host: str, tmp_path: Path) -> None:
    if not runs_here(host):
        pytest.skip(f"this processor has no {host}")
    assert right(SHAPES[name], replace(SIM, host=X86[host][0]), tmp_path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code")
@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(work=convolutions())
def test_any_convolution_is_right(work: Workload, tmp_path: Path) -> None:
    assert right(work, SIM, tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_operator_has_a_schedule_that_applies(name: str) -> None:
    for target in (SIM, replace(SIM, host=ARM["aarch64dot"])):
        func = lowered(CompileJob(workload=EXAMPLES[name], trace=Trace(), target=target))
        assert not any(of_kind(func.body, Synchronize))


def test_schedules_as_text(golden: Golden) -> None:
    avx512 = replace(SIM, host=X86["avx512vnni"][0])
    for name, work in SHAPES.items():
        golden("\n".join(map(str, cpu_trace(work, avx512).steps)) or "nothing", name)


def test_lanes_are_interleaved_only_where_they_are_few() -> None:
    """LLVM takes ten seconds for 64 of them."""
    rows = replace(IMAGE.outputs[0], shape=(1, 1, 7, 9, 2, 32))
    assert cpu_trace(IMAGE, SIM).steps
    assert not cpu_trace(replace(IMAGE, outputs=(rows,)), SIM).steps
