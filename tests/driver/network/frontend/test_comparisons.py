"""Comparisons, truth values and choices by them, against ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import model, model_on, node, saved
from numpy.typing import NDArray

from driver.network import import_model
from driver.network.graph.ir import Softmax, Unary

from .importing import answers_as_onnx

NAN, INFINITY = float("nan"), float("inf")
NEAR = np.array([[0.5, -1.0, 2.0], [0.0, 3.0, -0.5]], np.float32)
FAR = np.array([[0.5, 1.0, -2.0], [0.0, 2.5, 1.0]], np.float32)
YES = np.array([[True, False, True], [False, True, False]])
NO = np.array([[True, True, False], [False, False, False]])


@pytest.mark.parametrize("operator", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
@pytest.mark.parametrize("fixed", ["", "a", "b"])
def test_a_comparison_is_true_or_false(operator: str, fixed: str, tmp_path: Path) -> None:
    operands = {"a": NEAR, "b": FAR}
    weights = {name: operands.pop(name) for name in fixed}
    made = model_on(operands, [node(operator, ["a", "b"], "y")], weights, out={"y": "bool"})
    answers_as_onnx(made, operands, tmp_path)


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
@pytest.mark.parametrize("fixed", ["", "b"])
def test_truth_values_are_combined(operator: str, fixed: str, tmp_path: Path) -> None:
    operands = {"a": YES, "b": NO}
    weights = {name: operands.pop(name) for name in fixed}
    made = model_on(operands, [node(operator, ["a", "b"], "y")], weights, out={"y": "bool"})
    answers_as_onnx(made, operands, tmp_path)


@pytest.mark.parametrize("fixed", ["", "a", "b", "ab"])
def test_a_condition_that_is_data_chooses(fixed: str, tmp_path: Path) -> None:
    operands: dict[str, NDArray[Any]] = {"c": YES, "a": NEAR, "b": FAR}
    weights = {name: operands.pop(name) for name in fixed}
    nodes = [node("Not", ["c"], "n"), node("Where", ["n", "a", "b"], "y")]
    answers_as_onnx(model_on(operands, nodes, weights), operands, tmp_path)


def test_a_padding_mask_takes_tokens_out_of_a_softmax(tmp_path: Path) -> None:
    ids = np.array([[3, 7, 0, 0], [2, 0, 0, 0]], np.int64)
    scores = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    nodes = [
        node("Equal", ["ids", "zero"], "padding"),
        node("Where", ["padding", "lowest", "scores"], "masked"),
        node("Softmax", ["masked"], "y", axis=-1),
    ]
    weights = {"zero": np.array(0), "lowest": np.array(-INFINITY, np.float32)}
    given: dict[str, NDArray[Any]] = {"ids": ids, "scores": scores}
    answers_as_onnx(model_on(given, nodes, weights), given, tmp_path)


def test_a_softmax_is_never_nan(tmp_path: Path) -> None:
    nodes = [
        node("Softmax", ["x"], "s", axis=-1),
        node("IsNaN", ["s"], "n"),
        node("Where", ["n", "zero", "s"], "y"),
    ]
    made = model(nodes, {"zero": np.zeros((), np.float32)}, x=(2, 3, 4, 4))
    graph = import_model(saved(made, tmp_path))
    assert [type(each.op) for each in graph.nodes] == [Softmax]


def test_what_may_be_nan_is_looked_at(tmp_path: Path) -> None:
    x = np.array([[0.0, NAN, -INFINITY, INFINITY]], np.float32)
    made = model_on({"x": x}, [node("IsNaN", ["x"], "y")], out={"y": "bool"})
    graph = import_model(saved(made, tmp_path))
    assert [each.op for each in graph.nodes] == [Unary(function="nan")]


def test_a_constant_may_be_larger_than_the_activation(tmp_path: Path) -> None:
    x = np.ones((1, 1, 4), np.float32)
    less = node("Less", ["x", "c"], "y")
    made = model_on({"x": x}, [less], {"c": FAR[:, :, None]}, out={"y": "bool"})
    answers_as_onnx(made, {"x": x}, tmp_path)
