"""Layers whose grids the data decide, on a processor: the same kernels, and the bits of ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from kit.networks.onnx_runtime import runtime_answers
from numpy.typing import NDArray
from tilefarm.errors import ModelError
from tilefarm.target import load_target

from driver.network.frontend.onnx import import_model
from driver.network.integer.network import Network
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.onnx_arithmetic import in_onnx_arithmetic

TARGETS = ("cpu:x86-64-v3", "cpu:x86-64-v4")
"""Weights in pairs, and in quads."""
RNG = np.random.default_rng(3)
FLOAT = onnx.TensorProto.FLOAT


def weights(*shape: int, dtype: type = np.int8) -> NDArray[Any]:
    ends = np.iinfo(dtype)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(dtype)


def layer(
    operator: str, name: str = "a", scale: str = "scale", **attrs: Any
) -> list[onnx.NodeProto]:
    """As quantizers write it, from q, s and z to that name."""
    return [
        node(operator, ["q", "w", "z", "w.zero"], f"{name}.sums", **attrs),
        node("Cast", [f"{name}.sums"], f"{name}.reals", to=FLOAT),
        node("Mul", ["s", scale], f"{name}.scale"),
        node("Mul", [f"{name}.reals", f"{name}.scale"], name),
    ]


DYNAMIC = node("DynamicQuantizeLinear", ["x"], "q", "s", "z")


def partitioned(made: onnx.ModelProto, target: str, tmp_path: Path) -> Network:
    """The network; for some inputs it gives what its integer network does."""
    aim = load_target(target)
    graph = import_model(saved(made, tmp_path), keeps_integers=True)
    quantized = in_onnx_arithmetic(graph)
    network = partition_network(quantized, aim)
    (given,) = quantized.inputs
    for size in (0.0, 0.3, 40.0):
        x = (RNG.normal(0.2, 1, given.shape) * size).astype(np.float32)
        wanted = run_integer(quantized, {given.name: x})
        for name, values in run_network(network, {given.name: x}).items():
            np.testing.assert_array_equal(values, wanted[name])
    return network


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], NDArray[Any], Any, dict[str, Any]]] = {
    "image": ((1, 3, 9, 9), weights(20, 3, 3, 3), np.int8(0), {"pads": [1, 0, 2, 1]}),
    "blocks": ((1, 20, 6, 5), weights(33, 20, 3, 3), np.int8(0), {"pads": [1, 1, 1, 1]}),
    "unsigned": ((1, 20, 6, 5), weights(9, 20, 1, 1, dtype=np.uint8), np.uint8(131), {}),
    "depthwise": (
        (1, 20, 6, 5),
        weights(20, 1, 3, 3),
        np.int8(0),
        {"group": 20, "pads": [1, 1, 1, 1]},
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str, target: str, tmp_path: Path) -> None:
    x, weight, zero, attrs = CONVOLUTIONS[case]
    values = {"w": weight, "w.zero": zero, "scale": np.float32(0.01)}
    made = model([DYNAMIC, *layer("ConvInteger", "y", **attrs)], values, x=x)
    steps = [step.workload for step in partitioned(made, target, tmp_path).steps]
    names = [step.operator for step in steps]
    own = ["dynamic_grid", "dynamic_quantize_linear", "dynamic_bias", "real_zip"]
    assert [name for name in names if name in own] == own
    (kernel,) = (step for step in steps if step.operator.startswith("qlinear"))
    assert "pad" not in dict(steps[1].attrs) or kernel.attr_ints("pad")[0] == 0


@pytest.mark.parametrize("target", TARGETS)
def test_products_share_the_grid_and_the_bytes_of_their_operand(
    target: str, tmp_path: Path
) -> None:
    values: dict[str, Any] = {
        "w": weights(24, 10),
        "w.zero": weights(10),
        "scale": np.float32(0.01),
        "scales": RNG.uniform(0.001, 0.01, 10).astype(np.float32),
    }
    nodes = [
        DYNAMIC,
        *layer("MatMulInteger", "a"),
        *layer("MatMulInteger", "b", "scales"),
        node("Mul", ["a", "b"], "y"),
    ]
    network = partitioned(model(nodes, values, x=(1, 24)), target, tmp_path)
    names = [step.workload.operator for step in network.steps]
    assert names.count("dynamic_grid") == names.count("dynamic_quantize_linear") == 1
    assert names.count("qlinear_conv2d") == names.count("dynamic_bias") == 2


def test_products_are_those_of_onnx_runtime(tmp_path: Path) -> None:
    """Of unsigned weights: without VNNI, its sums with signed ones saturate."""
    values = {
        "w": weights(24, 10, dtype=np.uint8),
        "w.zero": weights(10, dtype=np.uint8),
        "scale": RNG.uniform(0.001, 0.01, 10).astype(np.float32),
        "bias": RNG.normal(0, 1, 10).astype(np.float32),
    }
    nodes = [DYNAMIC, *layer("MatMulInteger", "r"), node("Add", ["bias", "r"], "y")]
    made = model(nodes, values, x=(1, 5, 24))
    network = partitioned(made, TARGETS[0], tmp_path)
    names = [step.workload.operator for step in network.steps]
    assert names.count("real_zip") == 1  # of scales: the layer adds the bias
    x = RNG.normal(0.2, 1, (3, 1, 5, 24)).astype(np.float32)
    wanted = runtime_answers(saved(made, tmp_path), x)["y"]
    (given,) = network.inputs
    for each, answer in zip(x, wanted, strict=True):
        found = run_network(network, {given.name: each.transpose(given.axes)})["y"]
        assert (found.reshape(answer.shape) == answer).all()


def test_elements_of_blocks_are_gathered_from_where_they_lie(tmp_path: Path) -> None:
    """Rows of a product are channels in blocks: no step brings these out of them first."""
    values: dict[str, Any] = {
        "w": weights(24, 10),
        "w.zero": np.int8(0),
        "scale": np.float32(0.01),
    }
    made = model([DYNAMIC, *layer("MatMulInteger", "y")], values, x=(1, 5, 24))
    names = [step.workload.operator for step in partitioned(made, TARGETS[0], tmp_path).steps]
    assert names[names.index("qlinear_conv2d") + 1 :] == ["as_strided"]


def test_between_layers_of_tokens_nothing_is_moved(tmp_path: Path) -> None:
    """Channels are last in the file: what is normalized, added and quantized has them first."""
    grid = ["q", "s", "z"]
    values: dict[str, Any] = {
        "w": weights(24, 24),
        "w.zero": np.int8(0),
        "scale": np.float32(0.01),
        "one": RNG.uniform(0.5, 2, 24).astype(np.float32),
    }
    again = layer("MatMulInteger", "b")
    for each in again:
        each.input[:] = [{"q": "q2", "s": "s2", "z": "z2"}.get(name, name) for name in each.input]
    nodes = [
        DYNAMIC,
        *layer("MatMulInteger", "a"),
        node("LayerNormalization", ["a", "one"], "n", axis=-1),
        node("DynamicQuantizeLinear", ["n"], *(f"{name}2" for name in grid)),
        *again,
        node("Add", ["a", "b"], "sum"),
        node("Slice", ["sum", "from", "to", "last"], "part"),
        node("Softmax", ["part"], "y", axis=-1),
    ]
    values |= {name: np.array([at]) for name, at in (("from", 3), ("to", 20), ("last", -1))}
    made = model(nodes, values, x=(1, 6, 24))
    names = [step.workload.operator for step in partitioned(made, TARGETS[0], tmp_path).steps]
    assert [at for at, name in enumerate(names) if name == "as_strided"] == [0, len(names) - 1]
    assert "gather" not in names


def test_floats_element_by_element_stay_in_the_blocks_of_layers(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "w": weights(32, 32, 1, 1),
        "w.zero": np.int8(0),
        "scale": np.float32(0.01),
    }
    second = layer("ConvInteger", "b")
    for each in second:
        each.input[:] = [{"q": "q2", "s": "s2", "z": "z2"}.get(name, name) for name in each.input]
    nodes = [
        DYNAMIC,
        *layer("ConvInteger", "a"),
        node("Sigmoid", ["a"], "gate"),
        node("Mul", ["a", "gate"], "gated"),
        node("DynamicQuantizeLinear", ["gated"], "q2", "s2", "z2"),
        *second,
        node("Add", ["b", "gated"], "y"),
    ]
    made = model(nodes, values, x=(1, 32, 5, 5))
    names = [step.workload.operator for step in partitioned(made, TARGETS[0], tmp_path).steps]
    between = names[names.index("qlinear_conv2d") + 1 :]
    assert between[:4] == ["real_map", "real_zip", "dynamic_grid", "dynamic_quantize_linear"]
    assert between[-3:] == ["qlinear_conv2d", "real_zip", "relayout"]


def test_products_of_two_such_activations_are_refused(tmp_path: Path) -> None:
    nodes = [
        DYNAMIC,
        node("Transpose", ["q"], "t", perm=[0, 2, 1]),
        node("MatMulInteger", ["q", "t", "z", "z"], "r"),
        node("Cast", ["r"], "r.f", to=FLOAT),
        node("Mul", ["s", "s"], "s.s"),
        node("Mul", ["r.f", "s.s"], "y"),
    ]
    with pytest.raises(ModelError, match="only convolutions and dense layers with constant"):
        partitioned(model(nodes, {}, x=(1, 4, 6)), TARGETS[0], tmp_path)


def test_an_output_on_the_grid_of_each_sample_is_refused(tmp_path: Path) -> None:
    nodes = [DYNAMIC, node("DequantizeLinear", ["q", "s", "z"], "y")]
    with pytest.raises(ModelError, match=r"y \(an output\): only convolutions and dense layers"):
        partitioned(model(nodes, {}, x=(1, 4, 6)), TARGETS[0], tmp_path)
