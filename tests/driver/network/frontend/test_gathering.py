"""Elements at places, constant ones and data: against ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model_on, node, saved
from numpy.typing import NDArray
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.ir import Gather, Take

from .importing import answers_as_onnx

RNG = np.random.default_rng(2)
TABLE = RNG.standard_normal((7, 2, 3)).astype(np.float32)
X = RNG.standard_normal((1, 4, 3, 2)).astype(np.float32)


def i64(*values: Any) -> NDArray[np.int64]:
    return np.array(values, np.int64)


@pytest.mark.parametrize("batch", [1, 3])
def test_an_embedding_has_a_row_for_every_token(batch: int, tmp_path: Path) -> None:
    given = {"ids": RNG.integers(-7, 7, (batch, 5))}
    made = model_on(given, [node("Gather", ["table", "ids"], "y")], {"table": TABLE})
    graph = answers_as_onnx(made, given, tmp_path)
    assert [type(each.op) for each in graph.nodes if isinstance(each.op, Take)] == [Take]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_entries_of_any_axis_of_a_constant(axis: int, tmp_path: Path) -> None:
    given = {"ids": RNG.integers(0, 2, (1, 4))}
    made = model_on(given, [node("Gather", ["table", "ids"], "y", axis=axis)], {"table": TABLE})
    answers_as_onnx(made, given, tmp_path)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_entries_of_an_activation_that_data_name(axis: int, tmp_path: Path) -> None:
    given: dict[str, NDArray[Any]] = {"x": X, "at": i64([1, 0, -1])}
    made = model_on(given, [node("Gather", ["x", "at"], "y", axis=axis)])
    answers_as_onnx(made, given, tmp_path)


UPDATES = RNG.standard_normal((2, 3, 2)).astype(np.float32)
MOVES: dict[str, tuple[onnx.NodeProto, dict[str, NDArray[Any]]]] = {
    "gather_nd": (node("GatherND", ["x", "i"], "y"), {"i": i64([[0, 1], [0, -1]], [[0, 0]] * 2)}),
    "gather_nd_in_batches": (
        node("GatherND", ["x", "i"], "y", batch_dims=1),
        {"i": i64([[1, 2], [3, 0]])},
    ),
    "scatter_nd": (
        node("ScatterND", ["x", "i", "u"], "y"),
        {"i": i64([0, 1], [0, -1]), "u": UPDATES},
    ),
    "scatter_into_a_constant": (
        node("ScatterND", ["zeros", "i", "x"], "y"),
        {"i": i64([1]), "zeros": np.zeros((3, 4, 3, 2), np.float32)},
    ),
    "scatter_elements": (
        node("ScatterElements", ["x", "i", "u"], "y", axis=1),
        {"i": i64([[[3, 0]], [[-2, 1]]]), "u": UPDATES[None, :, :1]},
    ),
    "compress": (
        node("Compress", ["x", "c"], "y", axis=2),
        {"c": np.array([True, False, True])},
    ),
    "compress_all": (node("Compress", ["x", "c"], "y"), {"c": np.array([False, True, True])}),
    "triangle": (node("Trilu", ["x", "k"], "y", upper=0), {"k": np.array(-1)}),
    "reversed": (
        node("ReverseSequence", ["x", "n"], "y", batch_axis=1, time_axis=2),
        {"n": i64(1, 2, 3, 2)},
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_constant_places_are_a_move(name: str, tmp_path: Path) -> None:
    made, weights = MOVES[name]
    graph = answers_as_onnx(model_on({"x": X}, [made], weights), {"x": X}, tmp_path)
    assert any(isinstance(each.op, Gather) for each in graph.nodes)


BAD: dict[str, tuple[onnx.NodeProto, dict[str, NDArray[Any]], str]] = {
    "outside": (node("GatherND", ["x", "i"], "y"), {"i": i64([0, 4])}, "an index is outside"),
    "too deep": (node("GatherND", ["x", "i"], "y"), {"i": i64([0] * 5)}, "do not fit"),
    "long condition": (
        node("Compress", ["x", "c"], "y", axis=2),
        {"c": np.ones(4, bool)},
        r"condition \[4\] does not fit",
    ),
    "sums": (
        node("ScatterND", ["x", "i", "u"], "y", reduction="add"),
        {"i": i64([0, 1], [0, 2]), "u": UPDATES},
        "reduction 'add'; only none",
    ),
    "other updates": (
        node("ScatterND", ["x", "i", "u"], "y"),
        {"i": i64([0, 1]), "u": UPDATES},
        r"updates \[2, 3, 2\] are not \[1, 3, 2\]",
    ),
    "lengths": (
        node("ReverseSequence", ["x", "n"], "y", batch_axis=1, time_axis=2),
        {"n": i64(1, 2)},
        r"sequence_lens \[1, 2\] do not fit",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused_with_a_reason(name: str, tmp_path: Path) -> None:
    made, weights, why = BAD[name]
    with pytest.raises(ModelError, match=why):
        import_model(saved(model_on({"x": X}, [made], weights), tmp_path))
