"""Reductions, softmax and normalizations through the importer, and in integers next to floats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from tilefarm.errors import ModelError

from driver.network import import_model

from .importing import agrees_with_onnx

F32 = NDArray[np.float32]
RNG = np.random.default_rng(11)


def f32(*shape: int) -> F32:
    return RNG.uniform(0.2, 1, shape).astype(np.float32)


def i64(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


CASES: dict[str, tuple[onnx.NodeProto, dict[str, NDArray[Any]]]] = {
    "mean_of_images": (node("ReduceMean", ["x", "a"], "y", keepdims=0), {"a": i64(2, -1)}),
    "sum_of_images": (node("ReduceSum", ["x", "a"], "y"), {"a": i64(3, 2)}),
    "max_of_images": (node("ReduceMax", ["x", "a"], "y"), {"a": i64(2, 3)}),
    "min_over_channels": (node("ReduceMin", ["x", "a"], "y"), {"a": i64(1)}),
    "sum_of_all": (node("ReduceSum", ["x"], "y", keepdims=0), {}),
    "no_axes": (node("ReduceSum", ["x"], "y", noop_with_empty_axes=1), {}),
    "magnitudes": (node("ReduceL1", ["x", "a"], "y"), {"a": i64(3)}),
    "root_of_squares": (node("ReduceL2", ["x", "a"], "y"), {"a": i64(1, 3)}),
    "log_of_exponentials": (node("ReduceLogSumExp", ["x", "a"], "y", keepdims=0), {"a": i64(2)}),
    "softmax_of_rows": (node("Softmax", ["x"], "y"), {}),
    "log_softmax": (node("LogSoftmax", ["x"], "y", axis=1), {}),
    "layer": (
        node("LayerNormalization", ["x", "s", "b"], "y", axis=-2),
        {"s": f32(4, 4), "b": f32(4)},
    ),
    "instance": (node("InstanceNormalization", ["x", "s", "s"], "y"), {"s": f32(6)}),
    "variance": (node("MeanVarianceNormalization", ["x"], "y"), {}),
    "norm": (node("LpNormalization", ["x"], "y", axis=1), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_along_axes(case: str, tmp_path: Path) -> None:
    made, weights = CASES[case]
    agrees_with_onnx(model([made], weights, x=(1, 6, 4, 4), opset=18), tmp_path)


def test_response_to_near_channels(tmp_path: Path) -> None:
    """The evaluator takes as many channels as there are samples, so there is one for each."""
    made = node("LRN", ["x"], "y", size=3, alpha=0.5, beta=0.75, bias=2.0)
    graph = agrees_with_onnx(model([made], x=(5, 5, 2, 3)), tmp_path)
    assert [type(n.op).__name__ for n in graph.nodes].count("Conv2d") == 1


def test_a_norm_of_magnitudes(tmp_path: Path) -> None:
    """The evaluator forgets the magnitudes, which are given here as they are."""
    nodes = [node("Abs", ["x"], "a"), node("LpNormalization", ["a"], "y", p=1)]
    agrees_with_onnx(model(nodes, x=(2, 3, 4)), tmp_path)


def test_groups_have_scales_for_each_channel_since_opset_21(tmp_path: Path) -> None:
    made = node("GroupNormalization", ["x", "s", "b"], "y", num_groups=2)
    weights = {"s": f32(6), "b": f32(6)}
    agrees_with_onnx(model([made], weights, x=(2, 6, 3, 3), opset=21), tmp_path)


def test_an_old_softmax_takes_all_axes_behind_it_together(tmp_path: Path) -> None:
    graph = import_model(saved(model([node("Softmax", ["x"], "y", axis=1)], opset=11), tmp_path))
    assert [type(n.op).__name__ for n in graph.nodes] == ["Reshape", "Softmax", "Reshape"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (node("ReduceSum", ["x", "far"], "y"), "axis 7 is outside"),
        (node("LayerNormalization", ["x", "s", "s"], "y"), "scale [5] does not fit [4]"),
        (node("LayerNormalization", ["x", "one"], "y", epsilon=-1.0), "epsilon -1.0 is not"),
        (node("InstanceNormalization", ["x", "s", "s"], "y"), "bias [5]; [3] is needed"),
        (node("GroupNormalization", ["x", "s", "s"], "y", num_groups=2), "num_groups 2 does not"),
        (node("LpNormalization", ["x"], "y", p=3), "p 3; only 1 and 2"),
        (node("LRN", ["x"], "y", size=0), "size 0; at least 1"),
    ],
)
def test_what_is_refused(made: onnx.NodeProto, said: str, tmp_path: Path) -> None:
    weights: dict[str, NDArray[Any]] = {"far": i64(7), "s": f32(5), "one": f32(1)}
    with pytest.raises(ModelError) as caught:
        import_model(saved(model([made], weights, opset=18), tmp_path))
    assert said in caught.value.what


def test_weights_that_are_standardized_in_the_file(tmp_path: Path) -> None:
    """Networks without normalizations of activations: a batch of one, normalized by itself."""
    kernel = np.random.default_rng(5).standard_normal((4, 3, 2, 2)).astype(np.float32)
    weights: dict[str, NDArray[Any]] = {
        "kernel": kernel.reshape(1, 4, 12),
        "gain": np.array([1, 2, 0.5, 3], np.float32),
        "zeros": np.zeros(4, np.float32),
        "ones": np.ones(4, np.float32),
        "shape": np.array(kernel.shape),
    }
    names = ["kernel", "gain", "zeros", "zeros", "ones"]
    standardized = node("BatchNormalization", names, "s", "mean", "var", training_mode=1)
    nodes = [standardized, node("Reshape", ["s", "shape"], "w"), node("Conv", ["x", "w"], "y")]
    agrees_with_onnx(model(nodes, weights), tmp_path)


def test_a_batch_is_not_normalized_by_itself(tmp_path: Path) -> None:
    weights = {name: np.ones(3, np.float32) for name in "sbmv"}
    trained = node("BatchNormalization", ["x", *weights], "y", training_mode=1)
    with pytest.raises(ModelError, match="training mode is supported for one sample only"):
        import_model(saved(model([trained], weights, x=(2, 3, 4, 4)), tmp_path))
