"""Compiled kernels on the simulator in its sandboxed child, against what workloads mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kit.built import needs_simulator
from kit.kernels.nests import (
    EXAMPLES,
    SIM,
    conv2d,
    dense,
    each_operator_first,
    inputs_of,
    with_epilogue,
    workload,
)
from kit.kernels.schedules import Tiling
from tilefarm.artifact import Artifact, Call, CompileJob, ProgramJob
from tilefarm.digest import Digest
from tilefarm.dtype import DType
from tilefarm.measurement import BufferSpec, Counters, Measurement, Role, RunJob
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel, compile_program
from compile_worker.machines.vta.limits import uop_capacity
from compile_worker.space import generate
from device_server.runner.runner import Runner
from driver.network.integer.reference import run_workload
from tuner.sampler import Sampler

Arrays = Mapping[str, npt.NDArray[Any]]
Measure = Callable[[Artifact, str, list[BufferSpec], list[bytes]], Measurement]


pytestmark = needs_simulator


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measure]:
    """Run an artifact's entry on given buffers; fails the test unless the run ends well."""
    folder = tmp_path_factory.mktemp("blobs")

    def kept(content: bytes) -> Digest:
        digest = Digest.of(content)
        (folder / digest.hex).write_bytes(content)
        return digest

    def place(digest: Digest) -> Path:
        return folder / digest.hex

    with Runner(target=SIM) as runner:

        def run(
            artifact: Artifact, entry: str, buffers: list[BufferSpec], contents: list[bytes]
        ) -> Measurement:
            kept(artifact.code)
            for content in contents:
                kept(content)
            job = RunJob(artifact=artifact.digest, entry=entry, buffers=tuple(buffers))
            result = runner.run(job, place)
            assert isinstance(result, Measurement), result
            return result

        yield run


def _kernel(work: Workload, trace: Trace) -> Artifact:
    result = compile_kernel(CompileJob(workload=work, trace=trace, target=SIM))
    assert isinstance(result, Artifact), result
    return result


def _checked(measure: Measure, work: Workload, trace: Trace, seed: int = 0) -> Measurement:
    """Compile and run a workload; see `_right`."""
    return _right(measure, _kernel(work, trace), work, seed)


def _right(measure: Measure, artifact: Artifact, work: Workload, seed: int = 0) -> Measurement:
    """Run a kernel; the runner compares its output with the workload's reference."""
    arrays = inputs_of(work, seed)
    wanted = run_workload(work, arrays)["out"]
    buffers = [
        BufferSpec(
            name=spec.name,
            role=Role.INPUT,
            nbytes=spec.nbytes,
            content=Digest.of(arrays[spec.name].tobytes()),
        )
        for spec in work.inputs
    ]
    (out,) = work.outputs
    expected = Digest.of(wanted.tobytes())
    buffers.append(BufferSpec(name="out", role=Role.OUTPUT, nbytes=out.nbytes, expected=expected))
    contents = [*(array.tobytes() for array in arrays.values()), wanted.tobytes()]
    return measure(artifact, "kernel", buffers, contents)


@pytest.mark.parametrize("name", each_operator_first(EXAMPLES))
def test_every_operator_on_the_cpu(name: str, measure: Measure) -> None:
    _checked(measure, EXAMPLES[name], Trace())


SCHEDULES = {
    "plain": Tiling(),
    "two slots": Tiling(slots=2, acc_slots=2, h=2),
    "weights for a tile": Tiling(h=2, weight_at="out_co_0", slots=2),
    "image for a row": Tiling(h=2, order=("h", "co", "w"), data_at="out_h_0", slots=2),
    "image once": Tiling(co=2, h=4, data_at="", slots=2, acc_slots=2),
}


@pytest.mark.parametrize("tiling", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_hand_written_schedules_on_the_accelerator(tiling: Tiling, measure: Measure) -> None:
    work = conv2d(ci=2, co=2, height=8, width=8)
    counters = _checked(measure, work, tiling.trace()).counted
    assert counters["gemm_uops"] == 2 * 64 * (2 * 3 * 3 + 1)
    assert counters["out_store_nbytes"] == work.outputs[0].nbytes


LAYERS = {
    "3x3": conv2d(2, 2, 8, 8),
    "3x3 stride 2": conv2d(2, 4, 8, 8, stride=(2, 2)),
    "1x1": conv2d(4, 2, 6, 6, kernel=(1, 1), pad=(0, 0, 0, 0)),
    "1x1 stride 2": conv2d(2, 2, 8, 8, kernel=(1, 1), stride=(2, 2), pad=(0, 0, 0, 0)),
    "5x5 lopsided": conv2d(1, 2, 9, 7, kernel=(5, 5), pad=(2, 1, 2, 3)),
    "7x7 stride 2": conv2d(1, 2, 14, 14, kernel=(7, 7), stride=(2, 2), pad=(3, 3, 3, 3)),
    "3x3 shift by lane": with_epilogue(conv2d(4, 4, 8, 8), shift="lanes"),
    "3x3 stride 2, two tiles a block": with_epilogue(conv2d(2, 4, 12, 12, stride=(2, 2)), bias=2),
    "1x1 stride 2, no bias": with_epilogue(
        conv2d(4, 8, 8, 8, kernel=(1, 1), stride=(2, 2), pad=(0, 0, 0, 0)), bias=0
    ),
    "dense shift by lane": with_epilogue(dense(16, 6), shift="lanes"),
    "dense": dense(8, 6),
    "dense narrow": dense(4, 1),
    "3x3 planes": conv2d(2, 4, 12, 12, planes=2),
    "1x1 stride 2 planes": conv2d(
        4, 2, 8, 8, kernel=(1, 1), stride=(2, 2), pad=(0, 0, 0, 0), planes=2
    ),
    "3x3 planes, two tiles a block, shift by lane": with_epilogue(
        conv2d(2, 4, 8, 8, planes=2), bias=2, shift="lanes"
    ),
    "1x1 planes, no bias": with_epilogue(
        conv2d(2, 2, 6, 6, kernel=(1, 1), pad=(0, 0, 0, 0), planes=2), bias=0
    ),
    "dense planes": dense(8, 6, planes=2),
    "3x3 bordered": conv2d(2, 4, 12, 12, border=(1, 1, 1, 1)),
    "3x3 stride 2, an uneven border": conv2d(2, 4, 9, 11, stride=(2, 2), border=(0, 2, 1, 0)),
    "1x1 bordered planes": conv2d(
        4, 2, 6, 6, kernel=(1, 1), pad=(0, 0, 0, 0), out_planes=2, border=(1, 0, 1, 1), rows=2
    ),
    "groups, bordered": with_epilogue(
        conv2d(4, 6, 8, 8, groups=2, border=(1, 1, 1, 1)), shift="lanes"
    ),
    "depthwise, bordered": conv2d(4, 4, 8, 8, groups=4, data_planes=2, border=(1, 1, 1, 1)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_sampled_points_are_right_and_as_predicted(name: str, measure: Measure) -> None:
    work = LAYERS[name]
    generated = generate(work, SIM)
    points = Sampler(generated.space).sample(1, np.random.default_rng(len(name)))
    for point in [dict(generated.space.default), *points]:
        trace = generated.trace(point)
        artifact = _kernel(work, trace)
        counters = _right(measure, artifact, work).counted
        features = dict(artifact.features)
        assert features["uops"] <= uop_capacity(SIM)
        assert features["gemm_cycles"] == counters["gemm_uops"]
        for memory in ("inp", "wgt", "acc"):
            moved = counters[f"{memory}_load_nbytes"]
            assert features[f"{memory}_nbytes"] == pytest.approx(moved)
        assert features["out_nbytes"] == counters["out_store_nbytes"]
        assert features["serial_cycles"] > 0.6 * counters.cycles


REPEATS = 5


def test_a_program_calls_kernels_with_places_in_its_own_buffers(measure: Measure) -> None:
    conv = conv2d(1, 1, 4, 4)
    image = (DType.INT8, conv.outputs[0].shape)
    add = workload(
        "add", {"a": image, "b": image}, image, mul_a=1, mul_b=3, shift=2, lo=-128, hi=127
    )
    arrays = inputs_of(conv)
    once = run_workload(conv, arrays)["out"]
    last = once
    for _ in range(REPEATS):
        last = run_workload(conv, {**arrays, "data": last})["out"]
    wanted = run_workload(add, {"a": once, "b": last})["out"].tobytes()
    job, weights = _network(conv, add, arrays)
    program = compile_program(job)
    assert isinstance(program, Artifact), program
    data = arrays["data"].tobytes()
    buffers = [
        _buffer("weights", Role.CONSTANT, weights),
        _buffer("x", Role.INPUT, data),
        BufferSpec(name="arena", role=Role.SCRATCH, nbytes=768),
        BufferSpec(
            name="y", role=Role.OUTPUT, nbytes=len(wanted), expected=Digest.of(wanted), fetch=True
        ),
    ]
    result = measure(program, "network", buffers, [weights, data, wanted])
    assert dict(result.outputs)["y"] == wanted
    assert result.counted["instructions"] < (REPEATS + 1) * _alone(measure, conv)["instructions"]


def _alone(measure: Measure, work: Workload) -> Counters:
    """What a kernel needs when it runs by itself."""
    generated = generate(work, SIM)
    return _checked(measure, work, generated.trace(dict(generated.space.default))).counted


def _buffer(name: str, role: Role, content: bytes) -> BufferSpec:
    return BufferSpec(name=name, role=role, nbytes=len(content), content=Digest.of(content))


def _network(conv: Workload, add: Workload, arrays: Arrays) -> tuple[ProgramJob, bytes]:
    """y = add(conv(x), conv(conv(... conv(x)))): buffers are weights, x, arena, y."""
    weights, places = b"", []
    for name in ("weight", "bias", "unit", "shift"):
        places.append((0, len(weights)))
        weights += arrays[name].tobytes().ljust(-(-arrays[name].nbytes // 256) * 256, b"\0")
    kernels = (
        CompileJob(
            workload=conv,
            trace=generate(conv, SIM).trace(dict(generate(conv, SIM).space.default)),
            target=SIM,
            symbol="conv",
        ),
        CompileJob(workload=add, trace=Trace(), target=SIM, symbol="add"),
    )
    first, even, odd = (2, 0), (2, 256), (2, 512)
    calls = [Call(kernel="conv", arguments=((1, 0), *places, first))]
    source = first
    for at in range(REPEATS):
        to = odd if at % 2 else even
        calls.append(Call(kernel="conv", arguments=(source, *places, to)))
        source = to
    calls.append(Call(kernel="add", arguments=(first, source, (3, 0))))
    return ProgramJob(kernels=kernels, calls=tuple(calls), buffers=4, target=SIM), weights
