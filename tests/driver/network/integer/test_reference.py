"""One meaning, three ways to run it: logical network, blocked workloads, partitioned network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.kernels import numpy_operators, qlinear, qlinear_elements
from kit.kernels.nests import EXAMPLES
from kit.networks.bordered import BORDERED, FILL, bordered_network
from kit.networks.random_networks import Builder, networks, samples_for
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.target import TARGETS, Target, VtaConfig
from tilefarm.workload import OPERATORS, AttrValue, TensorSpec, Workload

from driver.network.graph.ir import Graph, GraphOutput
from driver.network.integer.blocks import from_blocks, to_blocks
from driver.network.integer.reference import run_integer, run_network, run_workload, step_runs
from driver.network.integer.samples import sample_inputs
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold

WIDE = Target(name="wide", vta=VtaConfig(log_batch=1, log_block=3))
I8, I32, F32 = DType.INT8, DType.INT32, DType.FLOAT32


def workload(
    operator: str,
    inputs: dict[str, tuple[tuple[int, ...], DType]],
    out: tuple[tuple[int, ...], DType],
    **attrs: AttrValue,
) -> Workload:
    specs = tuple(TensorSpec(name, shape, dtype) for name, (shape, dtype) in inputs.items())
    return Workload(operator, specs, (TensorSpec("out", *out),), tuple(attrs.items()))


LANES = ((2, 1, 16), I32)
BIAS = {"bias": ((2, 1, 16, 16), I8), "unit": ((1, 16), I8)}
TILE = ((16, 16), I8)
IMAGE = ((1, 2, 4, 5, 1, 16), I8)
ONE_OF_EACH = {
    w.operator: w
    for w in (
        workload(
            "conv2d",
            {"data": IMAGE, "weight": ((2, 2, 3, 3, 16, 16), I8), **BIAS, "shift": LANES},
            ((1, 2, 2, 3, 1, 16), I8),
            stride=(2, 2),
            pad=(1, 1, 0, 1),
            dilation=(1, 1),
            lo=0,
            hi=127,
        ),
        workload(
            "dense",
            {
                "data": ((1, 3, 1, 16), I8),
                "weight": ((2, 3, 16, 16), I8),
                **BIAS,
                "shift": LANES,
            },
            ((1, 2, 1, 16), I8),
            lo=-128,
            hi=127,
        ),
        workload("quantize", {"x": ((1, 20, 3, 3), F32)}, ((1, 2, 3, 3, 1, 16), I8), inv_scale=8.0),
        workload("dequantize", {"x": IMAGE}, ((1, 20, 4, 5), F32), scale=0.5),
        workload("add", {"a": IMAGE, "b": IMAGE}, IMAGE, mul_a=70, mul_b=9, shift=6, lo=0, hi=127),
        workload(
            "affine", {"x": IMAGE, "mul": LANES, "add": LANES, "shift": LANES}, IMAGE, lo=-9, hi=90
        ),
        workload(
            "max_pool2d",
            {"x": IMAGE},
            ((1, 2, 2, 3, 1, 16), I8),
            kernel=(2, 2),
            stride=(2, 2),
            pad=(0, 0, 0, 1),
        ),
        workload(
            "avg_pool2d",
            {"x": IMAGE, "mul": ((2, 2), I32)},
            ((1, 2, 2, 2, 1, 16), I8),
            kernel=(3, 3),
            stride=(2, 3),
            pad=(1, 1, 0, 0),
            shift=8,
            lo=-128,
            hi=127,
        ),
        workload(
            "relayout",
            {"x": IMAGE},
            ((1, 25, 1, 16), I8),
            logical_in=(1, 20, 4, 5),
            logical_out=(1, 400),
        ),
        workload("softmax", {"x": ((1, 2, 1, 16), I8), "table": ((256,), F32)}, ((1, 20), F32)),
        workload(
            "conv2d_transpose",
            {
                "data": IMAGE,
                "weight": ((3, 2, 1, 2, 2, 3, 16, 16), I8),
                "bias": ((3, 2, 16, 16), I8),
                "unit": ((1, 16), I8),
                "shift": ((3,), I32),
            },
            ((1, 3, 8, 4, 1, 16), I8),
            stride=(2, 1),
            pad=(1, 0, 0, 1),
            lo=-100,
            hi=100,
        ),
        workload(
            "matmul",
            {
                "data": ((3, 2, 5, 1, 16), I8),
                "weight": ((3, 2, 4, 16, 16), I8),
                "shift": ((1,), I32),
            },
            ((3, 4, 5, 1, 16), I8),
            lo=-128,
            hi=127,
        ),
        workload(
            "scaled_add",
            {"a": IMAGE, "b": IMAGE, "scale_a": TILE, "scale_b": TILE},
            IMAGE,
            shift=6,
            lo=0,
            hi=127,
        ),
        workload(
            "window_max2d",
            {"x": IMAGE, "identity": TILE},
            ((1, 2, 2, 3, 1, 16), I8),
            kernel=(3, 2),
            stride=(2, 2),
            pad=(1, 0, 0, 1),
        ),
        workload(
            "window_sum2d",
            {"x": IMAGE, "scale": TILE},
            ((1, 2, 2, 2, 1, 16), I8),
            kernel=(3, 3),
            stride=(2, 3),
            pad=(1, 1, 0, 0),
            shift=7,
            lo=-128,
            hi=127,
        ),
        workload(
            "quantize_windows",
            {"x": ((1, 3, 9, 7), F32)},
            ((1, 2, 4, 3, 1, 16), I8),
            inv_scale=8.0,
            kernel=(3, 2),
            stride=(2, 3),
            pad=(1, 0, 2, 1),
            dilation=(2, 1),
        ),
        workload("lookup", {"x": IMAGE, "table": ((256,), I8)}, IMAGE),
        workload(
            "product",
            {"a": IMAGE, "b": IMAGE, "table": ((256,), I32)},
            IMAGE,
            shift=12,
            lo=-100,
            hi=127,
        ),
        workload("as_strided", {"x": ((2, 300), I8)}, ((2, 10, 20), I8), strides=(1, 10), offset=3),
        workload("gather", {"x": ((2, 300), I8), "index": ((410,), I32)}, ((2, 410), I8)),
        workload("concat", {"x0": ((2, 48), I8), "x1": ((2, 16), I8)}, ((2, 64), I8)),
        *(w for name, w in EXAMPLES.items() if name.startswith("real")),
        EXAMPLES["border"],
        EXAMPLES["script"],
        EXAMPLES["qlinear_conv2d"],
        EXAMPLES["qlinear_depthwise2d"],
        EXAMPLES["qlinear_conv2d_transpose"],
        *(EXAMPLES[name] for name in qlinear_elements.EXAMPLES if name in OPERATORS),
        EXAMPLES["qlinear_winograd2d"],
    )
}

TWO_ROWS = ((2, 4, 4, 5, 2, 8), I8)
TABLES = workload("lookup", {"x": TWO_ROWS, "table": ((4, 8, 256), I8)}, TWO_ROWS)
LAYERS = [
    workload(
        "conv2d",
        {"data": TWO_ROWS, "weight": ((6, 2, 3, 2, 8, 8), I8), **rest},
        ((2, 6, 4, 4, 2, 8), I8),
        stride=(1, 1),
        pad=(1, 0, 1, 0),
        dilation=(1, 1),
        groups=2,
        lo=-128,
        hi=127,
    )
    for rest in (
        {},
        {"shift": ((6, 2, 8), I32)},
        {"shift": ((6,), I32)},
        {"bias": ((6, 3, 8, 8), I8), "unit": ((2, 8), I8)},
        {"bias": ((6, 1, 8, 8), I8), "unit": ((2, 8), I8), "shift": ((6, 2, 8), I32)},
        {"bias": ((6, 1, 8, 8), I8), "unit": ((2, 8), I8), "shift": ((6,), I32)},
    )
]
"""Every form of the epilogue, with two rows a vector and groups of two blocks each."""


def test_every_operator_has_an_example_here() -> None:
    assert ONE_OF_EACH.keys() == OPERATORS.keys()


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_a_workload_runs_on_samples_and_gives_its_output(operator: str) -> None:
    w = ONE_OF_EACH[operator]
    inputs = sample_inputs(w, seed=1)
    out = run_workload(w, inputs)["out"]
    assert out.shape == w.outputs[0].shape
    assert out.dtype == w.outputs[0].dtype.value
    assert out.flags.c_contiguous
    assert len(np.unique(out)) > (1 if operator == "border" else 8)


@pytest.mark.parametrize(
    "w",
    [*ONE_OF_EACH.values(), *LAYERS, TABLES, *qlinear.EXAMPLES.values()],
    ids=lambda w: w.operator,
)
def test_a_workload_means_what_plain_numpy_says(w: Workload) -> None:
    rng = np.random.default_rng(0)
    for seed in (1, 2):
        arrays = sample_inputs(w, seed=seed)
        tiles = {"unit", "identity", "scale", "scale_a"} & arrays.keys()
        for name in (each for each in tiles if arrays[each].dtype == np.int8):
            arrays[name] = rng.integers(-128, 128, arrays[name].shape, np.int8)
        assert same_bits(run_workload(w, arrays)["out"], numpy_operators.run(w, arrays))


def test_absent_channels_of_float_borders() -> None:
    """What is beyond the logical channels is never read, and zero where it is made."""
    quantized = run_workload(
        ONE_OF_EACH["quantize"], sample_inputs(ONE_OF_EACH["quantize"], seed=2)
    )["out"]
    assert not quantized[0, 1, ..., 4:].any()
    for operator in ("dequantize", "softmax", "relayout"):
        w = ONE_OF_EACH[operator]
        inputs = sample_inputs(w, seed=3)
        before = run_workload(w, inputs)["out"]
        inputs["x"] = inputs["x"].copy()
        inputs["x"][0, 1, ..., 4:] = 127
        assert (run_workload(w, inputs)["out"] == before).all()


def test_a_blocked_conv_is_the_loop_over_its_tiles() -> None:
    w = ONE_OF_EACH["conv2d"]
    i = sample_inputs(w, seed=5)
    out = run_workload(w, i)["out"]
    wide = np.pad(i["data"].astype(np.int64), ((0, 0), (0, 0), (1, 0), (1, 1), (0, 0), (0, 0)))
    for co, y, x in np.ndindex(2, 2, 3):
        acc = i["bias"][co, 0].astype(np.int64) @ i["unit"][0]
        for ci, ky, kx in np.ndindex(2, 3, 3):
            vector = wide[0, ci, 2 * y + ky, 2 * x + kx, 0]
            acc += i["weight"][co, ci, ky, kx].astype(np.int64) @ vector
        expected = np.clip(acc >> i["shift"][co, 0], 0, 127)
        assert (out[0, co, y, x, 0] == expected).all()


@pytest.mark.parametrize("fill_first", [True, False])
def test_steps_write_only_their_part_of_a_tensor(fill_first: bool) -> None:
    network, layer = bordered_network(fill_first=fill_first), BORDERED.unbordered
    image = np.random.default_rng(0).integers(-128, 128, (1, 32, 4, 3)).astype(np.float32)
    got = run_network(network, {"x": image})["y"]
    data = to_blocks(image.astype(np.int8), 1, 16)
    inner = from_blocks(run_workload(layer, {**network.constants, "data": data})["out"])
    top, left, bottom, right = BORDERED.border
    around = ((0, 0), (0, 0), (top, bottom), (left, right))
    assert (got == np.pad(inner, around, constant_values=FILL)).all()
    *_, last = step_runs(network, {"x": image})
    assert same_bits(last.outputs["out"], got)


@pytest.mark.parametrize("target", [TARGETS["sim"], WIDE], ids=lambda t: t.name)
@settings(max_examples=examples(25), deadline=None)
@given(case=networks())
def test_the_partitioned_network_is_the_integer_network(
    target: Target, case: tuple[Graph, int]
) -> None:
    graph, seed = case
    data = samples_for(graph, seed)
    for candidate in (graph, fold(graph)):
        quantized = quantize(candidate, data)
        one = {name: values[: graph.batch] for name, values in data.items()}
        expected = run_integer(quantized, one)
        got = run_network(partition_network(quantized, target), one)
        assert got.keys() == expected.keys()
        for name, values in got.items():
            assert same_bits(values, expected[name])


@settings(max_examples=examples(20), deadline=None)
@given(networks(), st.integers(0, 5))
def test_a_sample_does_not_depend_on_its_neighbours(case: tuple[Graph, int], sample: int) -> None:
    graph, seed = case
    data = samples_for(graph, seed)
    quantized = quantize(graph, data)
    together = run_integer(quantized, data)["out0"][sample]
    alone = run_integer(quantized, {name: v[sample : sample + 1] for name, v in data.items()})[
        "out0"
    ][0]
    assert same_bits(together, alone)


def test_keeping_every_tensor() -> None:
    from driver.network.graph.ir import Clip

    b = Builder((1, 2, 1, 1))
    graph = b.graph(b.put(Clip(lo=0.0, hi=1.0), "x"))
    data = samples_for(graph, 0)
    kept = run_integer(quantize(graph, data), data, keep=True)
    assert set(kept) == {"x", "x.int8", "t0", "t0.float", "out0"}


def test_a_kept_tensor_goes_before_an_output_of_its_name() -> None:
    from driver.network.graph.ir import Clip

    b = Builder((1, 2, 1, 1))
    name = b.put(Clip(lo=0.0, hi=1.0), "x")
    graph = replace(b.graph(name), outputs=(GraphOutput(name=name, tensor=name),))
    data = samples_for(graph, 0)
    assert run_integer(quantize(graph, data), data, keep=True)[name].dtype == np.int8
    assert run_integer(quantize(graph, data), data)[name].dtype == np.float32


def same_bits(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
