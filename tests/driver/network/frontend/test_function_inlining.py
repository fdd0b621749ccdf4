"""Functions are what their bodies are: a model's own, and attention with its masks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from onnx import helper
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.quantize.floats import float_nodes

from .importing import agrees_with_onnx

SHAPE = (1, 2, 6, 8)


def test_a_function_of_the_model(tmp_path: Path) -> None:
    body = [node("Sigmoid", ["a"], "s"), node("Mul", ["a", "s"], "b")]
    own = helper.make_function("own", "Gate", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    made = model([helper.make_node("Gate", ["x"], ["y"], name="gate", domain="own")])
    made.functions.append(own)
    made.opset_import.append(helper.make_opsetid("own", 1))
    graph = agrees_with_onnx(made, tmp_path)
    assert [type(n.op).__name__ for n in graph.nodes] == ["Unary"]


@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention_of_onnx(is_causal: int, tmp_path: Path) -> None:
    nodes = [
        node("Tanh", ["x"], "k"),
        node("Sigmoid", ["x"], "v"),
        node("Attention", ["x", "k", "v"], "y", is_causal=is_causal),
    ]
    graph = agrees_with_onnx(model(nodes, x=SHAPE, opset=23), tmp_path)
    assert [type(n.op).__name__ for n in graph.nodes].count("MatMul") == 2


def test_a_function_that_calls_itself_is_refused(tmp_path: Path) -> None:
    body = [helper.make_node("Gate", ["a"], ["b"], domain="own")]
    own = helper.make_function("own", "Gate", ["a"], ["b"], body, [helper.make_opsetid("own", 1)])
    made = model([helper.make_node("Gate", ["x"], ["y"], name="gate", domain="own")])
    made.functions.append(own)
    made.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(ModelError, match="place of their calls: they call one another in a ring"):
        import_model(saved(made, tmp_path))


def test_functions_that_would_be_a_billion_nodes_are_refused(tmp_path: Path) -> None:
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    made = model([helper.make_node("F30", ["x"], ["y"], domain="own")])
    made.opset_import.append(sets[1])
    for number in range(31):
        twice = [helper.make_node(f"F{number - 1}", ["a"], ["c"], domain="own")]
        twice.append(helper.make_node(f"F{number - 1}", ["c"], ["b"], domain="own"))
        body = twice if number else [node("Relu", ["a"], "b")]
        made.functions.append(helper.make_function("own", f"F{number}", ["a"], ["b"], body, sets))
    with pytest.raises(ModelError, match=f"they would be {1 << 30} nodes"):
        import_model(saved(made, tmp_path))


def test_calls_of_a_set_that_the_model_does_not_name_are_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gate", ["x"], ["k"], name="gate", domain="own")]
    made = model([*nodes, node("Attention", ["x", "k", "k"], "y")], x=SHAPE, opset=23)
    with pytest.raises(ModelError, match=r"Gate"):
        import_model(saved(made, tmp_path))


MASK = np.triu(np.full((6, 6), -np.inf, np.float32), 1)
MASKED: dict[str, tuple[onnx.NodeProto, dict[str, NDArray[Any]]]] = {
    "infinities": (node("Add", ["x", "m"], "s"), {"m": MASK}),
    "a_condition": (
        node("Where", ["m", "x", "low"], "s"),
        {"m": np.isfinite(MASK), "low": np.array(-np.inf, np.float32)},
    ),
}


@pytest.mark.parametrize("case", MASKED)
def test_masks_stay_in_float(case: str, tmp_path: Path) -> None:
    made, weights = MASKED[case]
    made_model = model([made, node("Softmax", ["s"], "y")], weights, x=(1, 2, 6, 6))
    graph = agrees_with_onnx(made_model, tmp_path)
    assert {"y_n"} < set(float_nodes(graph))


def test_a_condition_chooses_between_activations(tmp_path: Path) -> None:
    chosen = np.arange(6) % 2 == 0
    nodes = [node("Tanh", ["x"], "t"), node("Where", ["m", "x", "t"], "y")]
    agrees_with_onnx(model(nodes, {"m": chosen}, x=(1, 2, 6, 6)), tmp_path)


def test_an_assertion_of_the_library_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asserting(_: onnx.ModelProto) -> onnx.ModelProto:
        raise RuntimeError("/src/inliner.cc:418: Get: Assertion `false` failed: Type unknown for ")

    monkeypatch.setattr(onnx.inliner, "inline_local_functions", asserting)
    own = helper.make_function(
        "own", "F", ["a"], ["b"], [node("Relu", ["a"], "b")], [helper.make_opsetid("", 17)]
    )
    made = model([helper.make_node("F", ["x"], ["y"], domain="own")])
    made.functions.append(own)
    made.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(ModelError, match="the ONNX library refuses them: Type unknown") as why:
        import_model(saved(made, tmp_path))
    assert "inliner.cc" not in str(why.value)
