"""Kernel calls of a network: places, counts, packed constants, and reshapes that cost nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, samples_for, transposed, window
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.workload import NO_BORDER

from driver.network import import_model, load_data
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Concat,
    Graph,
    MaxPool2d,
    Reshape,
    Slice,
    Softmax,
)
from driver.network.integer.network import Network
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold

RNG = np.random.default_rng(5)
SIM = TARGETS["sim"]


def network_of(graph: Graph) -> Network:
    return partition_network(quantize(graph, samples_for(graph, 0)), SIM)


def operators(network: Network) -> list[str]:
    return [step.workload.operator for step in network.steps]


def flattened_twice(channels: int) -> tuple[Builder, str]:
    b = Builder((1, 3, 4, 4))
    image = b.put(conv(RNG, 3, channels, window(3, pad=1)), "x")
    return b, b.put(Reshape(shape=(channels * 16,)), image)


DIGITS = """\
image.centered.windows quantize_windows cpu          1x1x8x8 -> 1x1x8x8x1x16
relu2.border       border           cpu          nothing -> 1x1x10x10x1x16
conv1              conv2d           accelerator  1x1x8x8x1x16 -> 1x1x10x10x1x16
conv2              conv2d           accelerator  1x1x10x10x1x16 -> 1x2x8x8x1x16
conv3              conv2d           accelerator  1x2x8x8x1x16 -> 1x2x8x8x1x16
residual           scaled_add       accelerator  1x2x8x8x1x16 -> 1x2x8x8x1x16
pool               window_max2d     accelerator  1x2x8x8x1x16 -> 1x2x4x4x1x16
conv4              conv2d           accelerator  1x2x4x4x1x16 -> 1x4x4x4x1x16
mean               window_sum2d     accelerator  1x4x4x4x1x16 -> 1x4x1x1x1x16
dense              dense            accelerator  1x4x1x16 -> 1x1x1x16
probability        softmax          cpu          1x1x1x16 -> 1x10
"""


def test_the_digit_classifier() -> None:
    graph = import_model(DEMO_MODEL)
    network = partition_network(quantize(graph, load_data(DEMO_CALIBRATION, graph).inputs), SIM)
    lines = [
        f"{s.name:<18} {s.workload.operator:<16} {s.place:<12} "
        f"{'x'.join(map(str, s.workload.inputs[0].shape)) if s.inputs else 'nothing'} -> "
        f"{'x'.join(map(str, s.workload.outputs[0].shape))}\n"
        for s in network.steps
    ]
    assert "".join(lines) == DIGITS
    assert network.macs == 64 * 9 * (16 + 16 * 32 + 32 * 32) + 16 * 9 * 32 * 64 + 640
    assert {count for _, count in network.workloads()} == {1}


def test_the_books_of_a_network_balance() -> None:
    graph = import_model(DEMO_MODEL)
    network = partition_network(quantize(graph, load_data(DEMO_CALIBRATION, graph).inputs), SIM)
    made = {i.name for i in network.inputs} | network.constants.keys()
    for step in network.steps:
        specs = (*step.workload.inputs, *step.workload.outputs)
        for spec, name in zip(specs, (*step.inputs, *step.outputs), strict=True):
            tensor = network.tensors[name]
            assert (tensor.nbytes, tensor.dtype) == (spec.nbytes, spec.dtype)
        assert made.issuperset(step.inputs)
        assert made.isdisjoint(step.outputs) or step.workload.border != NO_BORDER
        made.update(step.outputs)
    assert made == network.tensors.keys()
    for name, values in network.constants.items():
        assert (values.shape, values.nbytes) == (
            network.tensors[name].shape,
            network.tensors[name].nbytes,
        )
    assert [t.name for t in network.tensors_of("input")] == ["image"]
    assert [t.name for t in network.tensors_of("output")] == ["probability"]


def test_equal_layers_are_one_workload() -> None:
    b = Builder((1, 16, 6, 6))
    name = "x"
    for _ in range(3):
        name = b.put(conv(RNG, 16, 16, window(3, pad=1)), name)
    network = network_of(b.graph(name))
    assert [(w.operator, count) for w, count in network.workloads()] == [("conv2d", 3)]


def test_narrow_and_full_channels_are_one_workload() -> None:
    b = Builder((1, 16, 6, 6))
    middle = b.put(conv(RNG, 16, 3, window(3, pad=1)), "x")
    network = network_of(b.graph(b.put(conv(RNG, 3, 10, window(3, pad=1)), middle)))
    assert [count for _, count in network.workloads()] == [2]
    assert [s.macs for s in network.steps if s.macs] == [36 * 9 * 16 * 3, 36 * 9 * 3 * 10]


def test_flattening_before_dense_is_free() -> None:
    b, flat = flattened_twice(channels=20)
    graph = b.graph(b.put(dense(RNG, 320, 5), flat))
    network = network_of(graph)
    assert operators(network) == ["quantize_windows", "conv2d", "dense", "dequantize"]
    layer = network.steps[2].workload
    assert layer.inputs[0].shape == (1, 2 * 16, 1, 16)
    data = samples_for(graph, 0, count=1)
    quantized = quantize(graph, samples_for(graph, 0))
    assert (run_network(network, data)["out0"] == run_integer(quantized, data)["out0"]).all()


def test_flattened_data_that_others_read_are_moved_once() -> None:
    b, flat = flattened_twice(channels=20)
    clipped = b.put(Clip(lo=-0.1, hi=0.1), flat)
    graph = b.graph(b.put(dense(RNG, 320, 5), flat), clipped, flat)
    network = network_of(graph)
    assert operators(network).count("relayout") == 1
    data = samples_for(graph, 0, count=1)
    expected = run_integer(quantize(graph, samples_for(graph, 0)), data)
    for name, values in run_network(network, data).items():
        assert (values == expected[name]).all()
        assert values.shape == expected[name].shape


def test_dropping_unit_axes_is_free() -> None:
    b = Builder((1, 20, 4, 4))
    mean = AvgPool2d(window=window(4), divisor=np.full((1, 1), 16, np.float32))
    flat = b.put(Reshape(shape=(20,)), b.put(mean, "x"))
    network = network_of(b.graph(b.put(Softmax(), flat)))
    assert operators(network) == ["quantize", "window_sum2d", "softmax"]


def test_a_float_input_is_reshaped_for_nothing() -> None:
    b = Builder((1, 48))
    image = b.put(Reshape(shape=(3, 4, 4)), "x")
    network = network_of(b.graph(b.put(conv(RNG, 3, 4, window(3)), image)))
    assert operators(network) == ["quantize_windows", "conv2d", "dequantize"]
    assert network.steps[0].workload.inputs[0].shape == (1, 3, 4, 4)
    assert network.tensors["x"].shape == (1, 48)


def test_constants_of_a_layer() -> None:
    b = Builder((1, 16, 4, 4))
    middle = b.put(conv(RNG, 16, 3, window(1)), "x")
    network = network_of(b.graph(b.put(conv(RNG, 3, 20, window(3)), middle)))
    weight, bias, shift = (network.constants[f"n1.{k}"] for k in ("weight", "bias", "shift"))
    assert weight.shape == (2, 1, 3, 3, 16, 16)
    assert [str(v.dtype) for v in (weight, bias, shift)] == ["int8", "int8", "int32"]
    assert not weight[1, :, :, :, 4:].any()
    assert not weight[..., 3:].any()
    assert not bias[1, 0, 4:].any()
    assert bias.shape == (2, 1, 16, 16)
    assert shift.shape == (2,)
    assert network.constants["unit"].tolist() == [[127] * 15 + [1]]


@pytest.mark.parametrize(
    ("ci", "co", "groups", "blocks", "weight"),
    [
        (64, 64, 64, 4, (4, 1, 1, 1, 16, 16)),
        (24, 24, 24, 2, (2, 1, 1, 1, 16, 16)),
        (8, 16, 8, 1, (1, 1, 1, 1, 16, 16)),
        (16, 32, 16, 1, (2, 1, 1, 1, 16, 16)),
        (64, 128, 64, 4, (8, 1, 1, 1, 16, 16)),
        (64, 32, 2, 2, (2, 2, 1, 1, 16, 16)),
        (32, 64, 4, 2, (4, 1, 1, 1, 16, 16)),
        (36, 36, 3, 1, (3, 3, 1, 1, 16, 16)),
    ],
)
def test_groups_become_groups_of_blocks(
    ci: int, co: int, groups: int, blocks: int, weight: tuple[int, ...]
) -> None:
    """Small groups share a block; those that do not line up with blocks become one."""
    b = Builder((1, ci, 2, 2))
    graph = b.graph(b.put(conv(RNG, ci, co, window(1), groups), "x"))
    network = network_of(graph)
    (layer,) = [step.workload for step in network.steps if step.place == "accelerator"]
    assert dict(layer.attrs).get("groups", 1) == blocks
    assert layer.inputs[1].shape == weight
    assert network.macs == 4 * co * ci // groups
    assert_right(graph, network)


def assert_right(graph: Graph, network: Network) -> None:
    data = samples_for(graph, 0)
    one = {name: values[: graph.batch] for name, values in data.items()}
    expected = run_integer(quantize(graph, data), one)
    for name, values in run_network(network, one).items():
        assert values.tobytes() == expected[name].tobytes()


def test_everything_between_floats_runs_on_the_accelerator() -> None:
    b = Builder((1, 16, 8, 8))
    image = b.put(Clip(lo=0.0, hi=2.0), b.put(Affine(weight=LANES, bias=LANES), "x"))
    pooled = b.put(MaxPool2d(window=window(3, stride=2, pad=1)), image)
    twice = replace(transposed(RNG, 16, 16, (2, 2), (1, 1)), pad=(0, 0, 0, 0))
    larger = b.put(twice, pooled)
    joined = b.put(Concat(), b.put(Add(), larger, image), larger)
    half = b.put(Slice(start=16, stop=32), joined)
    mean = AvgPool2d(window=window(8), divisor=np.full((1, 1), 64, np.float32))
    graph = b.graph(b.put(mean, half))
    network = network_of(graph)
    assert [step.workload.operator for step in network.steps if step.place == "cpu"] == [
        "quantize",
        "dequantize",
    ]
    assert_right(graph, network)


LANES = np.linspace(0.5, 1.5, 16, dtype=np.float32)


def test_pooling_that_the_accelerator_has_no_form_for_says_why() -> None:
    b = Builder((1, 16, 4, 4))
    largest = b.put(MaxPool2d(window=window(2)), "x")
    divisor = np.array([[1, 2], [2, 4]], np.float32)
    graph = b.graph(b.put(AvgPool2d(window=window(2, stride=2), divisor=divisor), largest))
    steps = {step.workload.operator: step for step in network_of(graph).steps}
    assert steps["max_pool2d"].place == steps["avg_pool2d"].place == "cpu"
    assert "may be negative" in steps["max_pool2d"].why
    assert "multipliers of their own" in steps["avg_pool2d"].why


def test_pooling_over_windows_that_do_not_fit_stays_on_the_processor() -> None:
    b = Builder((1, 16, 97, 97))
    image = b.put(conv(RNG, 16, 16, window(1)), "x")
    whole = b.put(MaxPool2d(window=window(97)), b.put(Clip(lo=0.0, hi=1.0), image))
    (step,) = [s for s in network_of(fold(b.graph(whole))).steps if "pool" in s.workload.operator]
    assert (step.workload.operator, step.place) == ("max_pool2d", "cpu")
    assert step.why.startswith("no tiles of it fit on the accelerator: ")


def test_windows_of_an_image_are_made_once_and_beside_the_image() -> None:
    """Two layers of one window read them; another reads the image itself."""
    b = Builder((1, 3, 6, 6))
    first, second = (b.put(conv(RNG, 3, 4, window(3)), "x") for _ in range(2))
    third = b.put(conv(RNG, 3, 4, window(1)), "x")
    network = network_of(b.graph(first, second, third))
    made = [step for step in network.steps if step.workload.operator.startswith("quantize")]
    assert [step.workload.operator for step in made] == ["quantize", "quantize_windows"]
    assert made[1].workload.outputs[0].shape == (1, 2, 4, 4, 1, 16)
    layers = [step for step in network.steps if step.workload.operator == "conv2d"]
    assert [step.workload.inputs[1].shape[1:4] for step in layers] == [(2, 1, 1)] * 2 + [(1, 1, 1)]


def test_channels_are_joined_and_cut_by_addresses() -> None:
    """Whole blocks, except at the end; a result that is joined again is a part of a part."""
    b = Builder((1, 16, 2, 2))
    one = b.put(conv(RNG, 16, 32, window(1)), "x")
    two = b.put(conv(RNG, 16, 20, window(1)), "x")
    joined = b.put(Concat(), one, two)
    tail = b.put(Slice(start=32, stop=50), joined)
    again = b.put(Concat(), b.put(conv(RNG, 18, 16, window(1)), tail), joined)
    graph = b.graph(b.put(conv(RNG, 68, 3, window(1)), again))
    network = network_of(graph)
    assert operators(network) == ["quantize", *["conv2d"] * 4, "dequantize"]
    parts = {name: network.place_of(name) for name in (one, two, joined, tail, "t4")}
    assert parts == {
        one: ("t5", 64),
        two: ("t5", 192),
        joined: ("t5", 64),
        tail: ("t5", 192),
        "t4": ("t5", 0),
    }
    assert_right(graph, network)


def test_an_operand_that_lies_elsewhere_is_copied() -> None:
    b = Builder((1, 16, 2, 2))
    one = b.put(conv(RNG, 16, 16, window(1)), "x")
    joined = b.put(Concat(), one, one)
    graph = b.graph(joined, b.put(Concat(), b.put(Slice(start=16, stop=32), joined), one))
    network = network_of(graph)
    assert operators(network).count("window_sum2d") == 3
    assert_right(graph, network)


def test_channels_that_share_a_block_are_sorted_by_a_convolution() -> None:
    b = Builder((1, 16, 2, 2))
    one, two = (b.put(conv(RNG, 16, 10, window(1)), "x") for _ in range(2))
    joined = b.put(Concat(), one, two)
    graph = b.graph(b.put(Slice(start=7, stop=13), joined))
    network = network_of(graph)
    assert operators(network) == ["quantize", *["conv2d"] * 4, "dequantize"]
    assert [step.macs for step in network.steps[-3:]] == [0, 0, 0]
    assert "sorted by weights of 0 and 1" in network.steps[-2].why
    assert_right(graph, network)


def test_channels_of_a_batch_of_rows_are_joined_row_by_row() -> None:
    """On one row of lanes the rows of two samples lie by turns: no part has one place."""
    b = Builder((2, 16, 2, 2))
    one, two = (b.put(conv(RNG, 16, co, window(1)), "x") for co in (16, 5))
    graph = b.graph(b.put(Concat(), two, one), b.put(Concat(), one, two, one))
    network = network_of(graph)
    assert operators(network).count("concat") == 2
    assert not network.tensors_of("view")
    assert_right(graph, network)


def test_what_is_an_input_or_an_output_already_is_copied_to_an_output() -> None:
    b = Builder((1, 3, 4, 4))
    flat = b.put(Reshape(shape=(48,)), "x")
    layer = b.put(Softmax(), b.put(dense(RNG, 48, 5), flat))
    graph = b.graph("x", flat, layer, layer)
    network = network_of(graph)
    assert len({output.tensor for output in network.outputs}) == 4
    assert {network.tensors[output.tensor].kind for output in network.outputs} == {"output"}
    assert_right(graph, network)


def test_tensor_kinds_and_sizes() -> None:
    b = Builder((1, 3, 4, 4))
    network = network_of(b.graph(b.put(conv(RNG, 3, 4, window(3)), "x")))
    assert network.tensors["x"].kind == "input"
    assert network.tensors["x.int8.windows"].nbytes == 2 * 4 * 16
    assert network.tensors["t0.float"].kind == "output"
    assert network.tensors["t0.float"].dtype is DType.FLOAT32
    assert math.prod(network.outputs[0].shape) == 4 * 2 * 2
