"""If whose condition is known at import: its branch in the place of it; others are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import answers, model, node, saved
from onnx import helper, numpy_helper
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.frontend.origins import Origin, origins
from driver.network.graph.float_run import run_float

X = np.random.default_rng(3).standard_normal((2, 3, 4, 4)).astype(np.float32)
WEIGHTS = {
    "yes": np.array(True),
    "no": np.array([False]),
    "one": np.array(1),
    "three": np.array(3),
    "w": np.full((3, 3, 1, 1), 0.25, np.float32),
}


def branch(
    nodes: Sequence[onnx.NodeProto], *outputs: str, **weights: np.ndarray
) -> onnx.GraphProto:
    made = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    held = [numpy_helper.from_array(values, name) for name, values in weights.items()]
    return helper.make_graph(nodes, "branch", [], made, held)


TURNED = branch([node("Neg", ["x"], "o")], "o")


def check(nodes: Sequence[onnx.NodeProto], folder: Path) -> Path:
    """The import gives what ONNX's evaluator does."""
    made = model(nodes, WEIGHTS, x=(1, 3, 4, 4))
    path = saved(made, folder)
    assert run_float(import_model(path), {"x": X})["y"] == pytest.approx(answers(made, X), abs=1e-5)
    return path


@pytest.mark.parametrize("extent", ["one", "three"])
def test_a_condition_on_a_shape(extent: str, tmp_path: Path) -> None:
    """As PyTorch's exporter writes `squeeze` where it was not told the shape."""
    half = branch([node("Mul", ["x", "k"], "o")], "o", k=np.array(0.5, np.float32))
    path = check(
        [
            node("Shape", ["x"], "s"),
            node("Gather", ["s", "one"], "channels"),
            node("Equal", ["channels", extent], "c"),
            node("If", ["c"], "y", then_branch=half, else_branch=TURNED),
        ],
        tmp_path,
    )
    graph = import_model(path)
    assert origins(path, graph)[graph.nodes[-1].output][-1] == Origin("y_n", "If")


def test_branches_within_branches_that_use_the_same_names(tmp_path: Path) -> None:
    """What one reads is made behind it in the file, and by nothing else that is needed."""
    inner = branch([node("Add", ["a", "late"], "b"), node("Tanh", ["b"], "a2")], "a2", "b")
    outer = branch(
        [
            node("Conv", ["x", "w"], "a"),
            node("If", ["yes"], "p", "q", then_branch=inner, else_branch=inner),
            node("Sub", ["p", "q"], "b"),
        ],
        "b",
    )
    nodes = [
        node("If", ["yes"], "first", then_branch=outer, else_branch=TURNED),
        node("If", ["no"], "second", then_branch=TURNED, else_branch=outer),
        node("Relu", ["x"], "late"),
        node("Mul", ["first", "second"], "y"),
    ]
    made = model([nodes[2], *nodes[:2], nodes[3]], WEIGHTS, x=(1, 3, 4, 4))
    shuffled = model(nodes, WEIGHTS, x=(1, 3, 4, 4))
    got = run_float(import_model(saved(shuffled, tmp_path)), {"x": X})["y"]
    assert got == pytest.approx(answers(made, X), abs=1e-5)


def test_what_data_decide_or_a_branch_cannot_is_refused(tmp_path: Path) -> None:
    largest = [
        node("ReduceMax", ["x"], "m", keepdims=0),
        node("Cast", ["m"], "c", to=onnx.TensorProto.BOOL),
        node("If", ["c"], "y", then_branch=TURNED, else_branch=TURNED),
    ]
    loop = branch([node("NonZero", ["x"], "z"), node("Relu", ["z"], "o")], "o")
    beyond = [node("If", ["yes"], "y", then_branch=loop, else_branch=TURNED)]
    few = [
        node("If", ["yes"], "y", "z", then_branch=TURNED, else_branch=TURNED),
    ]
    for nodes, said in (
        (largest, "y_n (If): data decide its condition 'c'; it must be known at import"),
        (beyond, "y_n (If): takes a branch with y_n.z_n (NonZero): operator is supported on"),
        (few, "y_n (If): its then_branch does not make its 2 outputs"),
    ):
        with pytest.raises(ModelError) as caught:
            import_model(saved(model(nodes, WEIGHTS, x=(1, 3, 4, 4)), tmp_path))
        assert said in str(caught.value)
