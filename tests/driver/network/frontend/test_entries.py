"""Elements at places that data name along several axes, against ONNX's reference evaluator."""

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
from driver.network.graph.ir import Take

from .importing import answers_as_onnx

RNG = np.random.default_rng(4)
X = RNG.standard_normal((1, 4, 3, 2)).astype(np.float32)


def places(low: int, high: int, *shape: int) -> NDArray[np.int64]:
    return RNG.integers(low, high, shape)


CASES: dict[str, tuple[onnx.NodeProto, NDArray[np.int64]]] = {
    "elements": (node("GatherElements", ["x", "i"], "y", axis=1), places(-4, 4, 1, 5, 3, 2)),
    "elements of rows": (
        node("GatherElements", ["x", "i"], "y", axis=3),
        places(0, 2, 1, 4, 3, 5),
    ),
    "entries": (node("GatherND", ["x", "i"], "y"), np.array([[0, -1], [0, 2], [0, 0]])),
    "single elements": (node("GatherND", ["x", "i"], "y"), np.array([[[0, 3, -1, 1]]])),
    "entries in batches": (node("GatherND", ["x", "i"], "y", batch_dims=2), places(-3, 3, 1, 4, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_elements_that_data_name(name: str, tmp_path: Path) -> None:
    made, at = CASES[name]
    given: dict[str, NDArray[Any]] = {"x": X, "i": at}
    graph = answers_as_onnx(model_on(given, [made]), given, tmp_path)
    assert sum(isinstance(each.op, Take) for each in graph.nodes) == 1


def test_elements_of_a_table(tmp_path: Path) -> None:
    given = {"i": places(0, 3, 2, 4)}
    made = model_on(given, [node("GatherElements", ["t", "i"], "y", axis=1)], {"t": X[0, :2, :, 0]})
    answers_as_onnx(made, given, tmp_path)


def test_a_table_of_one_value_is_that_value_wherever_it_is_read(tmp_path: Path) -> None:
    given: dict[str, NDArray[Any]] = {"x": X[..., 0], "i": places(0, 9, 1, 4)}
    nodes = [
        node("GatherElements", ["kinds", "i"], "kind", axis=1),
        node("Gather", ["table", "kind"], "rows"),
        node("Add", ["x", "rows"], "z"),
        node("Cast", ["i"], "f", to=1),
        node("Unsqueeze", ["f", "two"], "wide"),
        node("Add", ["z", "wide"], "y"),
    ]
    weights: dict[str, NDArray[Any]] = {
        "kinds": np.ones((1, 9), np.int64),
        "table": np.arange(6, dtype=np.float32).reshape(2, 3),
        "two": np.array([2]),
    }
    graph = answers_as_onnx(model_on(given, nodes, weights), given, tmp_path)
    assert not any(isinstance(each.op, Take) for each in graph.nodes)


BAD = {
    "other axes": (node("GatherElements", ["x", "i"], "y", axis=1), (1, 1, 4, 2)),
    "fewer axes": (node("GatherElements", ["x", "i"], "y", axis=1), (1, 2)),
    "too deep": (node("GatherND", ["x", "i"], "y"), (1, 5)),
    "other batches": (node("GatherND", ["x", "i"], "y", batch_dims=2), (1, 3, 1)),
}


@pytest.mark.parametrize("name", BAD)
def test_places_that_do_not_fit(name: str, tmp_path: Path) -> None:
    made, shape = BAD[name]
    given: dict[str, NDArray[Any]] = {"x": X, "i": places(0, 1, *shape)}
    with pytest.raises(ModelError, match="do not fit"):
        import_model(saved(model_on(given, [made]), tmp_path))
