"""MatMul, Gemm and Einsum of activations and constants, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import node, saved
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Graph, MatMul, Reshape

RNG = np.random.default_rng(0)
Shape = tuple[int, ...]


def made(
    nodes: list[onnx.NodeProto], inputs: Mapping[str, Shape], weights: Mapping[str, Shape]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(k, onnx.TensorProto.FLOAT, v) for k, v in inputs.items()],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(values(*shape), name) for name, shape in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


def values(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def check(model: onnx.ModelProto, folder: Path) -> Graph:
    """Imports the model and compares one run with the reference evaluator."""
    graph = import_model(saved(model, folder))
    given: dict[str, Any] = {
        value.name: values(*(d.dim_value for d in value.type.tensor_type.shape.dim))
        for value in model.graph.input
    }
    results: Any = ReferenceEvaluator(model).run(None, given)
    wanted = results[0]
    held = {
        each.name: given[each.name].reshape(each.given_shape).transpose(each.axes)
        for each in graph.inputs
    }
    (got,) = run_float(graph, held).values()
    np.testing.assert_allclose(got.reshape(np.shape(wanted)), wanted, rtol=1e-3, atol=1e-4)
    return graph


SHAPES: list[tuple[Shape, Shape]] = [
    ((1, 5, 8), (8, 6)),
    ((2, 5, 8), (8, 6)),
    ((1, 3, 5, 8), (3, 8, 6)),
    ((1, 5, 8), (3, 8, 6)),
    ((3, 5, 8), (1, 8, 6)),
    ((4, 8), (8, 6)),
    ((1, 3, 5, 8), (1, 3, 8, 6)),
    ((5, 8), (3, 8, 6)),
    ((8,), (3, 8, 6)),
    ((3, 5, 8), (8,)),
    ((8,), (8,)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("constant", ["", "a", "b"])
def test_a_product_of_any_axes(a: Shape, b: Shape, constant: str, tmp_path: Path) -> None:
    shapes = {"a": a, "b": b}
    inputs = {name: shape for name, shape in shapes.items() if name != constant}
    weights = {name: shape for name, shape in shapes.items() if name == constant}
    model = made([node("MatMul", ["a", "b"], "y")], inputs, weights)
    check(model, tmp_path)


@pytest.mark.parametrize("constants", ["", "b", "a", "c", "bc"])
@pytest.mark.parametrize(("across", "beta"), [(0, 0.5), (1, 1.0), (1, 0.0)])
def test_gemm_of_what_is_computed(constants: str, across: int, beta: float, tmp_path: Path) -> None:
    shapes = {"a": (8, 4) if across else (4, 8), "b": (6, 8) if across else (8, 6), "c": (1, 6)}
    inputs = {name: shape for name, shape in shapes.items() if name not in constants}
    weights = {name: shape for name, shape in shapes.items() if name in constants}
    call = node("Gemm", ["a", "b", "c"], "y", transA=across, transB=across, alpha=0.5, beta=beta)
    check(made([call], inputs, weights), tmp_path)


@pytest.mark.parametrize("alpha", [-0.5, 0.0])
def test_gemm_by_a_number_that_is_not_positive(alpha: float, tmp_path: Path) -> None:
    call = node("Gemm", ["a", "b"], "y", alpha=alpha)
    graph = check(made([call], {"a": (4, 8), "b": (8, 6)}, {}), tmp_path)
    assert [n.op.scale for n in graph.nodes if isinstance(n.op, MatMul)] == [1.0]


@pytest.mark.parametrize(
    ("equation", "a", "b"),
    [
        ("bhid,bhjd->bhij", (1, 2, 5, 8), (1, 2, 4, 8)),
        ("bhij,bjhd->bihd", (1, 2, 5, 4), (1, 4, 2, 8)),
        ("bij, bjk", (3, 2, 5), (3, 5, 4)),
        ("i,j->ij", (3,), (4,)),
        ("...ij,...jk->...ik", (1, 2, 5, 4), (1, 2, 4, 3)),
        ("...ij,...kj->...ik", (1, 2, 5, 4), (1, 1, 3, 4)),
        ("...w,w...", (1, 5, 4), (4,)),
        ("b...i,b...i->b...", (1, 2, 5, 4), (1, 2, 5, 4)),
    ],
)
def test_einsum_as_attention_uses_it(equation: str, a: Shape, b: Shape, tmp_path: Path) -> None:
    call = node("Einsum", ["a", "b"], "y", equation=equation)
    check(made([call], {"a": a, "b": b}, {}), tmp_path)


def test_a_batch_is_the_same_for_both(tmp_path: Path) -> None:
    relu = node("Relu", ["x"], "r")
    graph = check(made([relu, node("MatMul", ["x", "r"], "y")], {"x": (3, 4, 4)}, {}), tmp_path)
    assert graph.batch == 3
    assert [type(n.op) for n in graph.nodes if isinstance(n.op, MatMul)] == [MatMul]


def test_scores_of_heads_need_one_move_for_the_keys_and_queries_of_one_layer(
    tmp_path: Path,
) -> None:
    nodes = [
        node("MatMul", ["x", "w"], "m"),
        node("Reshape", ["m", "s"], "q"),
        node("Transpose", ["q"], "t", perm=[0, 2, 1, 3]),
        node("Transpose", ["q"], "k", perm=[0, 2, 3, 1]),
        node("MatMul", ["t", "k"], "y"),
    ]
    model = made(nodes, {"x": (1, 5, 8)}, {"w": (8, 12)})
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 5, 3, 4]), "s"))
    graph = check(model, tmp_path)
    kinds = [type(n.op).__name__ for n in graph.nodes if not isinstance(n.op, Reshape)]
    assert kinds == ["Gather", "Conv2d", "MatMul"]


@pytest.mark.parametrize(
    ("call", "a", "b", "why"),
    [
        (node("MatMul", ["a", "b"], "y"), (2, 3), (4, 5), r"\[2, 3\] by \[4, 5\]"),
        (node("Gemm", ["a", "b"], "y"), (1, 2, 3), (3, 5), "not matrices"),
        (node("Einsum", ["a", "b"], "y", equation="ij,jk,kl"), (2, 3), (3, 5), "two operands"),
        (node("Einsum", ["a", "b"], "y", equation="ii,ij->ij"), (3, 3), (3, 5), "twice"),
        (node("Einsum", ["a", "b"], "y", equation="ij,jk->il"), (3, 3), (3, 5), "no operand has"),
        (node("Einsum", ["a", "b"], "y", equation="ij,jk->k"), (2, 3), (3, 5), "one operand alone"),
        (node("Einsum", ["a", "b"], "y", equation="ij,jkl->il"), (3, 3), (3, 5), "does not fit"),
        (node("Einsum", ["a", "b"], "y", equation="...j,jk->k"), (2, 3), (3, 5), "not name"),
    ],
)
def test_what_is_refused(
    call: onnx.NodeProto, a: Shape, b: Shape, why: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=why):
        import_model(saved(made([call], {"a": a, "b": b}, {}), tmp_path))


def test_products_of_very_many_elements_are_refused(tmp_path: Path) -> None:
    large = made([node("MatMul", ["x", "w"], "y")], {"x": (1, 8192, 1)}, {"w": (1, 8192)})
    with pytest.raises(ModelError, match=r"moves the elements of \[8192, 1, 8192\]: too many"):
        import_model(saved(large, tmp_path))
