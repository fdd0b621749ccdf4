"""Kernel calls of a network: places, counts, packed constants, and reshapes that cost nothing."""

from __future__ import annotations

import math

import numpy as np
from kit.networks import Builder, conv, dense, samples_for, window
from tilefarm.dtype import DType
from tilefarm.target import TARGETS

from driver.demo import CALIBRATION, MODEL
from driver.frontend import import_model, load_data
from driver.graph import Network, partition, quantize, run, run_network
from driver.graph.ir import AvgPool2d, Clip, Graph, Reshape, Softmax

RNG = np.random.default_rng(5)
SIM = TARGETS["sim"]


def network_of(graph: Graph) -> Network:
    return partition(quantize(graph, samples_for(graph, 0)), SIM)


def operators(network: Network) -> list[str]:
    return [step.workload.operator for step in network.steps]


def flattened_twice(channels: int) -> tuple[Builder, str]:
    b = Builder((1, 3, 4, 4))
    image = b.put(conv(RNG, 3, channels, window(3, pad=1)), "x")
    return b, b.put(Reshape(shape=(channels * 16,)), image)


DIGITS = """\
image.int8   quantize    cpu          1x1x8x8 -> 1x1x8x8x1x16
conv1        conv2d      accelerator  1x1x8x8x1x16 -> 1x1x8x8x1x16
conv2        conv2d      accelerator  1x1x8x8x1x16 -> 1x2x8x8x1x16
conv3        conv2d      accelerator  1x2x8x8x1x16 -> 1x2x8x8x1x16
residual     add         cpu          1x2x8x8x1x16 -> 1x2x8x8x1x16
pool         max_pool2d  cpu          1x2x8x8x1x16 -> 1x2x4x4x1x16
conv4        conv2d      accelerator  1x2x4x4x1x16 -> 1x4x4x4x1x16
mean         avg_pool2d  cpu          1x4x4x4x1x16 -> 1x4x1x1x1x16
dense        dense       accelerator  1x4x1x16 -> 1x1x1x16
probability  softmax     cpu          1x1x1x16 -> 1x10
"""


def test_the_digit_classifier() -> None:
    graph = import_model(MODEL)
    network = partition(quantize(graph, load_data(CALIBRATION, graph).inputs), SIM)
    lines = [
        f"{s.name:<12} {s.workload.operator:<11} {s.place:<12} "
        f"{'x'.join(map(str, s.workload.inputs[0].shape))} -> "
        f"{'x'.join(map(str, s.workload.outputs[0].shape))}\n"
        for s in network.steps
    ]
    assert "".join(lines) == DIGITS
    assert network.macs == 64 * 9 * (16 + 16 * 32 + 32 * 32) + 16 * 9 * 32 * 64 + 640
    assert [count for _, count in network.workloads()] == [1, 1, 1, 1, 1]


def test_the_books_of_a_network_balance() -> None:
    graph = import_model(MODEL)
    network = partition(quantize(graph, load_data(CALIBRATION, graph).inputs), SIM)
    made = {i.name for i in network.inputs} | network.constants.keys()
    for step in network.steps:
        specs = (*step.workload.inputs, *step.workload.outputs)
        for spec, name in zip(specs, (*step.inputs, *step.outputs), strict=True):
            tensor = network.tensors[name]
            assert (tensor.nbytes, tensor.dtype) == (spec.nbytes, spec.dtype)
        assert made.issuperset(step.inputs)
        assert made.isdisjoint(step.outputs)
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
    b = Builder((1, 3, 6, 6))
    middle = b.put(conv(RNG, 3, 16, window(3, pad=1)), "x")
    network = network_of(b.graph(b.put(conv(RNG, 16, 10, window(3, pad=1)), middle)))
    assert [count for _, count in network.workloads()] == [2]
    assert [s.macs for s in network.steps if s.macs] == [36 * 9 * 3 * 16, 36 * 9 * 16 * 10]


def test_flattening_before_dense_is_free() -> None:
    b, flat = flattened_twice(channels=20)
    graph = b.graph(b.put(dense(RNG, 320, 5), flat))
    network = network_of(graph)
    assert operators(network) == ["quantize", "conv2d", "dense", "dequantize"]
    layer = network.steps[2].workload
    assert layer.inputs[0].shape == (1, 2 * 16, 1, 16)
    data = samples_for(graph, 0, count=1)
    quantized = quantize(graph, samples_for(graph, 0))
    assert (run_network(network, data)["out0"] == run(quantized, data)["out0"]).all()


def test_flattened_data_that_others_read_are_moved_once() -> None:
    b, flat = flattened_twice(channels=20)
    clipped = b.put(Clip(lo=-0.1, hi=0.1), flat)
    graph = b.graph(b.put(dense(RNG, 320, 5), flat), clipped, flat)
    network = network_of(graph)
    assert operators(network).count("relayout") == 1
    data = samples_for(graph, 0, count=1)
    expected = run(quantize(graph, samples_for(graph, 0)), data)
    for name, values in run_network(network, data).items():
        assert (values == expected[name]).all()
        assert values.shape == expected[name].shape


def test_dropping_unit_axes_is_free() -> None:
    b = Builder((1, 20, 4, 4))
    mean = AvgPool2d(window=window(4), divisor=np.full((1, 1), 16, np.float32))
    flat = b.put(Reshape(shape=(20,)), b.put(mean, "x"))
    network = network_of(b.graph(b.put(Softmax(), flat)))
    assert operators(network) == ["quantize", "avg_pool2d", "softmax"]


def test_a_float_input_is_reshaped_for_nothing() -> None:
    b = Builder((1, 48))
    image = b.put(Reshape(shape=(3, 4, 4)), "x")
    network = network_of(b.graph(b.put(conv(RNG, 3, 4, window(3)), image)))
    assert operators(network) == ["quantize", "conv2d", "dequantize"]
    assert network.steps[0].workload.inputs[0].shape == (1, 3, 4, 4)
    assert network.tensors["x"].shape == (1, 48)


def test_constants_of_a_layer() -> None:
    b = Builder((1, 3, 4, 4))
    network = network_of(b.graph(b.put(conv(RNG, 3, 20, window(3)), "x")))
    weight, bias, shift = (network.constants[f"n0.{k}"] for k in ("weight", "bias", "shift"))
    assert weight.shape == (2, 1, 3, 3, 16, 16)
    assert [str(v.dtype) for v in (weight, bias, shift)] == ["int8", "int32", "int32"]
    assert not weight[1, :, :, :, 4:].any()
    assert not weight[..., 3:].any()
    assert not bias[1, 0, 4:].any()
    assert bias.shape == shift.shape == (2, 1, 16)


def test_tensor_kinds_and_sizes() -> None:
    b = Builder((1, 3, 4, 4))
    network = network_of(b.graph(b.put(conv(RNG, 3, 4, window(3)), "x")))
    assert network.tensors["x"].kind == "input"
    assert network.tensors["x.int8"].nbytes == 16 * 16
    assert network.tensors["t0.float"].kind == "output"
    assert network.tensors["t0.float"].dtype is DType.FLOAT32
    assert math.prod(network.outputs[0].shape) == 4 * 2 * 2
