"""Places of extremes, ones at places and running sums, against ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import model_on, node, saved
from onnx.reference import ReferenceEvaluator
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.float_run import run_float

from .importing import answers_as_onnx

X = np.array([[[1, 3, 3, 0], [2, 2, -1, 2], [0, -5, 4, 4]]], np.float32)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize(("axis", "keep"), [(1, 1), (2, 0), (-1, 1)])
def test_the_place_of_an_extreme(
    operator: str, last: int, axis: int, keep: int, tmp_path: Path
) -> None:
    attrs: dict[str, Any] = {"axis": axis, "keepdims": keep, "select_last_index": last}
    made = model_on({"x": X}, [node(operator, ["x"], "y", **attrs)], out={"y": "int64"})
    answers_as_onnx(made, {"x": X}, tmp_path)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_the_place_of_an_infinity(operator: str, tmp_path: Path) -> None:
    x = np.where(X == 3, np.inf, np.where(X < 0, -np.inf, X)).astype(np.float32)
    made = model_on({"x": x}, [node(operator, ["x"], "y", axis=2)], out={"y": "int64"})
    answers: Any = ReferenceEvaluator(made).run(None, {"x": x})
    wanted, (given,) = answers[0], (graph := import_model(saved(made, tmp_path))).inputs
    with np.errstate(invalid="ignore"):
        (found,) = run_float(graph, {"x": x.reshape(given.given_shape)}).values()
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


def test_one_at_the_first_of_the_largest(tmp_path: Path) -> None:
    made = model_on({"x": X}, [node("Hardmax", ["x"], "y", axis=2)])
    answers_as_onnx(made, {"x": X}, tmp_path)


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_one_value_at_places_another_elsewhere(kind: str, axis: int, tmp_path: Path) -> None:
    given = {"i": np.array([[0, 2, -1, -4]])}
    weights = {"n": np.array(4), "v": np.array([-1, 3], kind)}
    one_hot = node("OneHot", ["i", "n", "v"], "y", axis=axis)
    made = model_on(given, [one_hot], weights, out={"y": kind})
    answers_as_onnx(made, given, tmp_path)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums(exclusive: int, reverse: int, tmp_path: Path) -> None:
    attrs = {"exclusive": exclusive, "reverse": reverse}
    sums = node("CumSum", ["x", "a"], "y", **attrs)
    answers_as_onnx(model_on({"x": X}, [sums], {"a": np.array(2)}), {"x": X}, tmp_path)


def test_positions_of_tokens_from_their_padding(tmp_path: Path) -> None:
    ids = np.array([[5, 6, 7, 1, 1]])
    table = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    nodes = [
        node("Equal", ["ids", "one"], "padding"),
        node("Not", ["padding"], "there"),
        node("Cast", ["there"], "count", to=7),
        node("CumSum", ["count", "axis"], "sums"),
        node("Mul", ["sums", "count"], "kept"),
        node("Add", ["kept", "one"], "at"),
        node("Gather", ["table", "at"], "y"),
    ]
    weights = {"one": np.array(1), "axis": np.array(1), "table": table}
    answers_as_onnx(model_on({"ids": ids}, nodes, weights), {"ids": ids}, tmp_path)


@pytest.mark.parametrize("depth", [np.inf, np.nan, -3.0, 0.0])
def test_a_depth_that_is_no_number_of_places(depth: float, tmp_path: Path) -> None:
    weights = {"n": np.array(depth, np.float32), "v": np.array([0.0, 1.0], np.float32)}
    made = model_on({"i": np.array([[0, 2]])}, [node("OneHot", ["i", "n", "v"], "y")], weights)
    with pytest.raises(ModelError, match=f"depth {depth} is no number of places"):
        import_model(saved(made, tmp_path))


def test_a_sum_along_no_axis(tmp_path: Path) -> None:
    made = model_on(
        {"x": X}, [node("CumSum", ["x", "a"], "y")], {"a": np.array(np.inf, np.float32)}
    )
    with pytest.raises(ModelError, match="its axis is not a constant number"):
        import_model(saved(made, tmp_path))


def test_a_depth_that_is_data_is_refused(tmp_path: Path) -> None:
    given = {"i": np.array([[0, 2]]), "n": np.array([[4]])}
    made = model_on(
        given, [node("OneHot", ["i", "n", "v"], "y")], {"v": np.array([0.0, 1.0], np.float32)}
    )
    with pytest.raises(ModelError, match="its depth and its two values are not constant"):
        import_model(saved(made, tmp_path))
