"""Functions and two activations through the importer, against ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from onnx.reference import ReferenceEvaluator
from tilefarm.errors import ModelError
from tilefarm.target import TARGETS

from driver.network import import_model
from driver.network.frontend.operators import functions
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Unary
from driver.network.integer.reference import run_integer
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize

RNG = np.random.default_rng(4)


def check(made: onnx.ModelProto, folder: Path) -> None:
    graph = import_model(saved(made, folder))
    x = RNG.uniform(1.1, 3, graph.inputs[0].shape).astype(np.float32)
    for given in (x, x - 2) if made.graph.node[0].op_type not in ("Acosh", "Log") else (x,):
        with np.errstate(all="ignore"):
            results: Any = ReferenceEvaluator(made).run(None, {"x": given})
        (got,) = run_float(graph, {"x": given}).values()
        np.testing.assert_allclose(got, results[0], rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("operator", sorted(functions.PLAIN))
def test_a_function(operator: str, tmp_path: Path) -> None:
    check(model([node(operator, ["x"], "y")], opset=18), tmp_path)


@pytest.mark.parametrize("operator", sorted(functions.WITH_PARAMETERS))
def test_a_function_with_parameters(operator: str, tmp_path: Path) -> None:
    names = [name for name, _ in functions.WITH_PARAMETERS[operator][1]]
    check(model([node(operator, ["x"], "y")]), tmp_path)
    chosen = dict(zip(names, (0.75, 0.3), strict=False))
    check(model([node(operator, ["x"], "y", **chosen)]), tmp_path)


@pytest.mark.parametrize("kind", ["none", "tanh"])
def test_gelu(kind: str, tmp_path: Path) -> None:
    check(model([node("Gelu", ["x"], "y", approximate=kind)], opset=20), tmp_path)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1, 1)])
def test_prelu(shape: tuple[int, ...], tmp_path: Path) -> None:
    slope = RNG.standard_normal(shape).astype(np.float32)
    check(model([node("PRelu", ["x", "s"], "y")], {"s": slope}), tmp_path)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_two_activations(operator: str, tmp_path: Path) -> None:
    nodes = [node("Exp", ["x"], "e"), node(operator, ["x", "e"], "y")]
    check(model(nodes), tmp_path)


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_an_activation_and_a_bound(operator: str, tmp_path: Path) -> None:
    made = model([node(operator, ["b", "x"], "y")], {"b": np.array(0.5, np.float32)})
    check(made, tmp_path)
    (only,) = import_model(saved(made, tmp_path)).nodes
    assert type(only.op).__name__ == "Clip"


def test_integers_know_the_larger_one(tmp_path: Path) -> None:
    """A step of the difference, one of the sum, and half of each operand's."""
    nodes = [node("Sin", ["x"], "s"), node("Cos", ["x"], "c"), node("Max", ["s", "c"], "y")]
    graph = import_model(saved(model(nodes), tmp_path))
    data = {"x": RNG.uniform(-4, 4, (16, 3, 4, 4)).astype(np.float32)}
    quantized = quantize(graph, data)
    scales = {name: tensor.scale or 0.0 for name, tensor in quantized.tensors.items()}
    allowed = scales["x.int8"] + scales["s"] + scales["c"] + scales["y.excess0"] + scales["y"]
    error = np.abs(run_integer(quantized, data)["y"] - run_float(graph, data)["y"])
    assert error.max() <= allowed
    steps = partition_network(quantized, TARGETS["sim"]).steps
    assert [s.workload.operator for s in steps].count("scaled_add") == 2


def test_slopes_in_any_place(tmp_path: Path) -> None:
    slopes = np.linspace(0.1, 0.6, 48, dtype=np.float32).reshape(3, 4, 4)
    check(model([node("PRelu", ["x", "w"], "y")], {"w": slopes}), tmp_path)


def test_a_swish_of_its_own_steepness(tmp_path: Path) -> None:
    check(model([node("Swish", ["x"], "y", alpha=0.5)], opset=24), tmp_path)


def test_a_constant_over_an_activation_and_a_power(tmp_path: Path) -> None:
    nodes = [
        node("Exp", ["x"], "e"),
        node("Div", ["c", "e"], "d"),
        node("Pow", ["d", "two"], "y"),
    ]
    values = np.array([1, 2, 3], np.float32).reshape(3, 1, 1)
    check(model(nodes, {"c": values, "two": np.array(2, np.float32)}), tmp_path)


@pytest.mark.parametrize(
    ("gate", "name"),
    [
        (node("Sigmoid", ["x"], "g"), "swish"),
        (node("HardSigmoid", ["x"], "g", alpha=1 / 6), "hard_swish"),
    ],
)
def test_an_activation_that_gates_itself_is_one_function(
    gate: onnx.NodeProto, name: str, tmp_path: Path
) -> None:
    for factors in (["x", "g"], ["g", "x"]):
        made = model([gate, node("Mul", factors, "y")])
        check(made, tmp_path)
        (only,) = import_model(saved(made, tmp_path)).nodes
        assert only.op == Unary(function=name)


def test_a_gate_that_is_read_elsewhere_stays(tmp_path: Path) -> None:
    nodes = [
        node("Sigmoid", ["x"], "g"),
        node("Mul", ["x", "g"], "m"),
        node("Add", ["m", "g"], "y"),
    ]
    made = model(nodes)
    check(made, tmp_path)
    assert len(import_model(saved(made, tmp_path)).nodes) == 3


def test_functions_of_constants_are_computed_at_import(tmp_path: Path) -> None:
    nodes = [node("Elu", ["c"], "e", alpha=2.0), node("Mul", ["x", "e"], "y")]
    made = model(nodes, {"c": np.array([-1, 0, 2], np.float32).reshape(3, 1, 1)})
    check(made, tmp_path)
    (only,) = import_model(saved(made, tmp_path)).nodes
    assert type(only.op).__name__ == "Affine"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (node("PRelu", ["x", "odd"], "y"), "slope [5] does not fit [1, 3, 4, 4]"),
        (node("Mul", ["x", "x", "x"], "y"), "has 3 inputs, but at most 2 are defined"),
        (node("Gelu", ["x"], "y", approximate="erf"), "approximate 'erf' is unknown"),
        (node("Elu", ["x"], "y", alpha="1"), "attribute 'alpha' is not a number"),
    ],
)
def test_what_is_refused(made: onnx.NodeProto, said: str, tmp_path: Path) -> None:
    weights = {"odd": np.ones(5, np.float32)}
    with pytest.raises(ModelError) as caught:
        import_model(saved(model([made], weights, opset=20), tmp_path))
    assert said in caught.value.what
