"""Dynamic quantization and layers of integers: exporters' chains become the float layers behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import answers, model, node, saved
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Conv2d, Dense, Reshape
from driver.network.integer.reference import run_integer
from driver.network.quantize.quantizer import quantize

from .dynamic import DYNAMIC, WEIGHTS, dynamic_layers

RNG = np.random.default_rng(5)
X = RNG.standard_normal((5, 3, 6, 6)).astype(np.float32)
W = WEIGHTS["w"]


def test_dynamic_quantization_becomes_static_layers(tmp_path: Path) -> None:
    made = dynamic_layers()
    graph = import_model(saved(made, tmp_path))
    assert [type(n.op) for n in graph.nodes] == [Conv2d, Reshape, Dense]
    assert not graph.ranges, "all ranges come from calibration"
    wanted = answers(made, X)
    assert run_float(graph, {"x": X})["y"] == pytest.approx(wanted, abs=0.15)
    integers = run_integer(quantize(graph, X), {"x": X})["y"]
    assert np.abs(integers - wanted).max() < 0.05 * np.abs(wanted).max()


def of_integers(nodes: list[onnx.NodeProto], taken: int, given: int, **shape: Any) -> Any:
    made = model(nodes, WEIGHTS | {"x.zero": np.uint8(7)}, **shape)
    made.graph.input[0].type.tensor_type.elem_type = taken
    made.graph.output[0].type.tensor_type.elem_type = given
    return made


def test_integer_layers_between_integer_ends_are_exact(tmp_path: Path) -> None:
    nodes = [node("ConvInteger", ["x", "w", "x.zero", "w.zero"], "y", pads=[1, 1, 1, 1])]
    made = of_integers(nodes, onnx.TensorProto.UINT8, onnx.TensorProto.INT32, x=(1, 3, 6, 6))
    graph = import_model(saved(made, tmp_path))
    x = RNG.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
    (given,), (result,) = graph.inputs, graph.outputs
    assert given.grid is not None
    assert result.grid is not None
    assert (given.grid.zero, result.grid.dtype) == (7, "int32")
    reals = run_float(graph, {"x": given.grid.reals(x)})["y"]
    padded = np.pad(x.astype(int) - 7, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    whole = W - WEIGHTS["w.zero"].astype(int)[:, None, None, None]
    exact = np.einsum("nchwij,kcij->nkhw", seen, whole)
    assert (result.grid.integers(reals) == exact).all()


def test_static_integers_become_reals_by_a_cast(tmp_path: Path) -> None:
    """QuantizeLinear in front says the scale, which the cast gives back."""
    nodes = [
        node("QuantizeLinear", ["x", "x.scale", "x.zero"], "q"),
        node("ConvInteger", ["q", "w", "x.zero", "w.zero"], "s"),
        node("Cast", ["s"], "y", to=1),
    ]
    weights = WEIGHTS | {"x.scale": np.float32(0.03), "x.zero": np.uint8(128)}
    made = model(nodes, weights, x=(1, 3, 6, 6))
    graph = import_model(saved(made, tmp_path))
    wanted = answers(made, X)
    found = run_float(graph, {"x": X})["y"]
    assert np.abs(found - wanted).max() < 0.02 * np.abs(wanted).max()


NUMBER = "needs the number that the scale of a DynamicQuantizeLinear has"
MISUSED: list[tuple[list[onnx.NodeProto], str]] = [
    ([*DYNAMIC[:3], node("Mul", ["f", "w.scale"], "y")], "output 'y' is in steps of a scale that"),
    ([*DYNAMIC[:3], node("Add", ["f", "b"], "y")], f"y_n (Add): {NUMBER}"),
    ([*DYNAMIC[:3], node("Mul", ["f", "f"], "y")], f"y_n (Mul): {NUMBER}"),
    ([*DYNAMIC[:4], node("Mul", ["x", "q.scale"], "y")], f"y_n (Mul): {NUMBER}"),
    (
        [DYNAMIC[0], node("DequantizeLinear", ["q", "m.scale"], "y")],
        f"y_n (DequantizeLinear): {NUMBER}",
    ),
    ([DYNAMIC[0], node("Add", ["x", "q.scale"], "y")], f"y_n (Add): {NUMBER}"),
    ([DYNAMIC[0], node("Relu", ["q"], "y")], f"y_n (Relu): {NUMBER}"),
    ([node("ConvInteger", ["x", "w"], "y")], "no QuantizeLinear stands before its input 0"),
    ([DYNAMIC[0], node("ConvInteger", ["q", "b", "q.zero"], "y")], "'b' is float32, not integers"),
    (
        [DYNAMIC[0], node("ConvInteger", ["q", "w", "q.zero", "m"], "y")],
        "zero points [64, 5] do not fit weight [4, 3, 3, 3]",
    ),
    ([DYNAMIC[0], node("Cast", ["q"], "y", to=3)], "casts uint8 to int8, which lacks some"),
    ([DYNAMIC[0], node("Cast", ["q"], "y", to=9)], "casts uint8 to bool"),
]


@pytest.mark.parametrize(("nodes", "said"), MISUSED, ids=[said for _, said in MISUSED])
def test_what_a_dynamic_scale_decides_is_refused(
    nodes: list[onnx.NodeProto], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(saved(model(nodes, WEIGHTS, x=(1, 3, 6, 6)), tmp_path))
    assert said in str(caught.value)


def test_dequantizing_at_once_is_nothing(tmp_path: Path) -> None:
    nodes = [
        DYNAMIC[0],
        node("DequantizeLinear", ["q", "q.scale", "q.zero"], "r"),
        node("Relu", ["r"], "y"),
    ]
    graph = import_model(saved(model(nodes, WEIGHTS, x=(1, 3, 6, 6)), tmp_path))
    assert (run_float(graph, {"x": X})["y"] == np.maximum(X, 0)).all()
