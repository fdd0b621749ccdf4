"""Shapes too large for the stack of the processor, or one copy of the accelerator: right bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from kit.built import no_simulator, require
from kit.kernels.nests import (
    LANES,
    border,
    conv2d,
    conv2d_transpose,
    dense,
    scaled_add,
    window,
    workload,
)
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel, lowered
from compile_worker.machines.vta.features import features_of
from compile_worker.space import generate
from device_server.vta.library.library import VtaLibrary
from driver.benchmarks.sandboxed import Sandbox
from driver.network.integer.reference import run_workload
from driver.network.integer.samples import sample_inputs
from tuner.sampler import Sampler

SIM: Final = TARGETS["sim"]
WIDE: Final = 20011
"""A prime, so that no smaller number of columns divides it."""


def real(operator: str, out: tuple[int, ...], *inputs: tuple[int, ...], **attrs: Any) -> Workload:
    """An operator on float32; operands are named as `tilefarm.workload.OPERATORS` has it."""
    several = {"real_matmul": "ab", "real_take": ("places", "x")}
    names = {**several, "real_conv2d": ("x", "weight", "bias")}.get(operator, "x")
    specs = {name: (DType.FLOAT32, each) for name, each in zip(names, inputs, strict=True)}
    return workload(operator, specs, (DType.FLOAT32, out), **attrs)


AROUND: Final = {"stride": (1, 1), "dilation": (1, 1), "pad": (1, 1, 1, 1)}
LARGE: Final = {
    "conv2d of wide rows": conv2d(1, 1, 3, 4099),
    "conv2d with far pads": conv2d(1, 1, 40, 64, pad=(30, 30, 30, 30), dilation=(30, 30)),
    "conv2d in groups": conv2d(64, 64, 8, 66, groups=64),
    "conv2d within a border": conv2d(1, 2, 3, 4099, border=(1, 2, 0, 1)),
    "border": border((1, 2, 300, 301, 1, 16), (1, 2, 0, 1)),
    "conv2d_transpose": conv2d_transpose(1, 1, 2, 4099),
    "dense": dense(2, 2100),
    "dense of many rows": dense(2, 20, rows=64),
    "real_reduce": real("real_reduce", (2, WIDE), (2, 3, WIDE), kind="mean"),
    "real_softmax": real("real_softmax", (1, WIDE, 2), (1, WIDE, 2)),
    "real_normalize": real("real_normalize", (1, WIDE, 2), (1, WIDE, 2), epsilon=0.01, centered=1),
    "real_matmul": real("real_matmul", (1, 2, WIDE), (1, 2, 3), (1, 3, WIDE)),
    "real_conv2d of wide rows": real(
        "real_conv2d", (1, 1, 1, 2, WIDE), (1, 1, 1, 2, WIDE), (1, 1, 3, 3, 1), (1, 1), **AROUND
    ),
    "real_conv2d": real(
        "real_conv2d", (1, 1, 1, 130, 130), (1, 1, 1, 130, 130), (1, 1, 3, 3, 1), (1, 1), **AROUND
    ),
    "real_take": real("real_take", (1, 2, WIDE), (1, WIDE), (1, 2, 5)),
    "real_pool2d": real(
        "real_pool2d", (1, 2, WIDE), (1, 2, WIDE), kind="max", kernel=(3, 3), **AROUND
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_processor_has_room_for_any_shape(name: str, tmp_path: Path) -> None:
    require(no_simulator)
    work = LARGE[name]
    made = compile_kernel(CompileJob(workload=work, trace=Trace(), target=SIM, symbol="entry"))
    assert isinstance(made, Artifact), made
    code = tmp_path / "kernel.so"
    code.write_bytes(made.code)
    arrays = sample_inputs(work, 0)
    library = VtaLibrary()
    library.configure(SIM)
    inputs = [np.ascontiguousarray(arrays[spec.name]).tobytes() for spec in work.inputs]
    result = library.run_entry(code, "entry", [*inputs, work.outputs[0].nbytes])
    assert result.buffers[-1] == run_workload(work, arrays)["out"].tobytes()


FAR: Final = {
    "conv2d": conv2d(1, 2, 257, 256),
    "conv2d within a border": conv2d(1, 2, 254, 256, border=(1, 1, 1, 1)),
    "scaled_add": scaled_add((1, 2, 257, 256, 1, LANES)),
    "window_max2d": window("window_max2d", 2, (260, 256)),
}
"""Images of more vectors than the rows of a copy can be apart."""


@pytest.mark.parametrize("name", FAR)
def test_blocks_of_channels_that_are_far_apart_are_copies_of_their_own(name: str) -> None:
    require(no_simulator)
    work = FAR[name]
    made = generate(work, SIM)
    points = map(dict, Sampler(made.space).sample(100, np.random.default_rng(0)))
    several = [each for each in points if each["tile_co"] > 1 and each["tile_oh"] == 1]
    assert several
    with Sandbox(work, SIM, seed=0) as sandbox:
        for point in sorted(several, key=lambda each: each["instructions"])[:2]:
            verdict = sandbox.verdict(made.trace(point))
            assert verdict.is_right, (verdict, point)
            func = lowered(CompileJob(workload=work, trace=made.trace(point), target=SIM))
            rows_of_units = work.tensor("unit") is not None
            assert features_of(func, SIM)["inp_dmas"] <= point["inp_copies"] + rows_of_units
