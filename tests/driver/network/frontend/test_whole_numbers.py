"""Integers without a scale: ids, masks, positions, arithmetic; against ONNX's evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.networks.onnx_models import model_on, node, saved
from tilefarm.errors import DataError, ModelError

from driver.network import import_model
from driver.network.frontend.data import dataset_of
from driver.network.frontend.seeded import seeded_data

from .importing import answers_as_onnx

RNG = np.random.default_rng(4)
A = RNG.integers(0, 24, (3, 5))
B = RNG.integers(1, 24, (3, 5))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_arithmetic_stays_within_the_type(operator: str, dtype: str, tmp_path: Path) -> None:
    given = {"a": A.astype(dtype), "b": B.astype(dtype)}
    made = model_on(given, [node(operator, ["a", "b"], "y")], out={"y": dtype})
    answers_as_onnx(made, given, tmp_path)


def test_a_wide_type_without_a_sign_cannot_be_negative(tmp_path: Path) -> None:
    given = {"a": A.astype(np.uint32), "b": B.astype(np.uint32)}
    made = model_on(given, [node("Sub", ["a", "b"], "y")], out={"y": "uint32"})
    with pytest.raises(ModelError, match="may be negative, which uint32 cannot"):
        import_model(saved(made, tmp_path))


@pytest.mark.parametrize("to", ["int8", "uint8", "int32", "int64", "bool", "float32"])
@pytest.mark.parametrize("given", ["float32", "int64", "bool"])
def test_a_cast_leaves_out_what_the_type_cannot_hold(given: str, to: str, tmp_path: Path) -> None:
    values = np.array([[-2.7, -0.5, 0.0, 0.9, 2.5, 100.2]], np.float32)
    x = {"x": np.abs(values).astype(given) if to == "uint8" else values.astype(given)}
    number = {"int8": 3, "uint8": 2, "int32": 6, "int64": 7, "bool": 9, "float32": 1}[to]
    made = model_on(x, [node("Cast", ["x"], "y", to=number)], out={"y": to})
    if given == to:
        made.graph.node.append(node("Identity", ["y"], "z"))
    answers_as_onnx(made, x, tmp_path)


def test_a_mask_of_integers_becomes_reals(tmp_path: Path) -> None:
    mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], np.int64)
    nodes = [
        node("Unsqueeze", ["mask", "axes"], "wide"),
        node("Cast", ["wide"], "real", to=1),
        node("Sub", ["one", "real"], "left"),
        node("Mul", ["left", "lowest"], "y"),
    ]
    weights = {
        "axes": np.array([1]),
        "one": np.ones((), np.float32),
        "lowest": np.array(-1e4, np.float32),
    }
    answers_as_onnx(model_on({"mask": mask}, nodes, weights), {"mask": mask}, tmp_path)


def test_values_that_float32_does_not_have_are_refused(tmp_path: Path) -> None:
    ids = np.array([[0, 1]], np.int64)
    made = model_on({"ids": ids}, [node("Cast", ["ids"], "y", to=1)])
    graph = import_model(saved(made, tmp_path))
    with pytest.raises(DataError, match="beyond 2\\^24") as refused:
        dataset_of({"ids": np.array([[0, (1 << 24) + 1]])}, graph, tmp_path)
    assert "use smaller ones" in refused.value.hint


def test_truth_values_are_data_as_well(tmp_path: Path) -> None:
    mask = np.array([[True, False]])
    made = model_on({"mask": mask}, [node("Cast", ["mask"], "y", to=1)])
    graph = import_model(saved(made, tmp_path))
    (found,) = dataset_of({"mask": mask}, graph, tmp_path).inputs.values()
    assert found.tolist() == [[1.0, 0.0]]


def test_made_up_ids_are_entries_of_the_embedding(tmp_path: Path) -> None:
    ids = np.zeros((1, 8), np.int64)
    table = RNG.standard_normal((5, 4)).astype(np.float32)
    made = model_on({"ids": ids}, [node("Gather", ["table", "ids"], "y")], {"table": table})
    graph = import_model(saved(made, tmp_path))
    (found,) = seeded_data(graph, 64).inputs.values()
    assert (np.unique(found) == np.arange(-4, 5)).all()


def test_a_made_up_mask_is_zeros_and_ones(tmp_path: Path) -> None:
    mask = np.zeros((1, 8), np.int64)
    made = model_on({"mask": mask}, [node("Cast", ["mask"], "y", to=1)])
    graph = import_model(saved(made, tmp_path))
    (found,) = seeded_data(graph, 8).inputs.values()
    assert np.unique(found).tolist() == [0.0, 1.0]


def test_other_types_of_inputs_get_a_remedy_of_their_own(tmp_path: Path) -> None:
    made = model_on({"x": np.ones((1, 2), np.float32)}, [node("Identity", ["x"], "y")])
    for number, name, remedy in (
        (8, "string", "begin the network"),
        (17, "float8e4m3fn", "float32"),
    ):
        made.graph.input[0].type.tensor_type.elem_type = number
        with pytest.raises(ModelError, match=f"'x' is {name}; only float32, integers and") as why:
            import_model(saved(made, tmp_path))
        assert remedy in why.value.hint
