"""A detector in the manner of SSD, its weights written by hand: coloured squares at two scales."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import onnx
from kit.networks.onnx_models import model, node
from numpy.typing import NDArray
from onnx import helper

SIDE: Final = 32
SCALES: Final = (4, 8)
"""Pixels of a cell of each scale, and of the squares that are found there."""
CLASSES: Final = 3
"""Nothing, small squares in the first channel, large ones in the second."""


def detector() -> onnx.ModelProto:
    """Outputs `boxes` [1, 80, 4] (left, top, right, bottom, pixels) and `scores` [1, 80, 3]."""
    small, large = SCALES
    weights: dict[str, NDArray[Any]] = {
        "copy": np.eye(2).reshape(2, 2, 1, 1),
        "mean0": _means(small),
        "mean1": _means(large // small),
        "anchors": np.concatenate([_anchors(cell) for cell in SCALES])[None],
        "rows": np.array([1, -1, 4], np.int64),
        "columns": np.array([1, -1, CLASSES], np.int64),
    }
    nodes = [
        node("Conv", ["x", "copy"], "copied"),
        node("Relu", ["copied"], "seen"),
        node("Conv", ["seen", "mean0"], "level0", strides=[small, small]),
        node("Conv", ["level0", "mean1"], "level1", strides=[large // small] * 2),
    ]
    for at in range(2):
        weights |= {
            f"score{at}": _score_weights(at),
            f"score_bias{at}": _score_biases(),
            f"box{at}": _box_weights(at),
            f"box_bias{at}": np.array([0, 0, -1, -1]),
        }
        for head, shape in (("score", "columns"), ("box", "rows")):
            name = f"{head}{at}"
            nodes += [
                node("Conv", [f"level{at}", name, f"{head}_bias{at}"], f"{name}.map"),
                node("Transpose", [f"{name}.map"], f"{name}.last", perm=[0, 2, 3, 1]),
                node("Reshape", [f"{name}.last", shape], f"{name}.list"),
            ]
    nodes += [
        node("Concat", ["score0.list", "score1.list"], "logits", axis=1),
        node("Softmax", ["logits"], "scores", axis=2),
        node("Concat", ["box0.list", "box1.list"], "offsets", axis=1),
        node("Add", ["offsets", "anchors"], "boxes"),
    ]
    typed = {k: v if v.dtype == np.int64 else v.astype(np.float32) for k, v in weights.items()}
    made = model(nodes, typed, x=(1, 2, SIDE, SIDE), out="boxes")
    made.graph.output.append(
        helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, None),
    )
    return made


def pictures(samples: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Pictures with a square or none of each kind, and labels [samples, 2, 5]."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 0.2, (samples, 2, SIDE, SIDE)).astype(np.float32)
    labels = np.full((samples, 2, 5), -1, np.int64)
    for sample in range(samples):
        for kind, cell in enumerate(SCALES):
            if rng.random() < 0.8:
                left, top = (cell * int(n) for n in rng.integers(0, SIDE // cell, 2))
                x[sample, kind, top : top + cell, left : left + cell] = 1.0
                labels[sample, kind] = [kind + 1, left, top, left + cell, top + cell]
    return x, labels


def _means(extent: int) -> NDArray[Any]:
    """A convolution that takes the mean of each channel's squares."""
    return np.asarray(np.eye(2)[:, :, None, None] * np.ones((extent, extent)) / extent**2)


def _anchors(cell: int) -> NDArray[Any]:
    """Corners of the cells, row by row."""
    top, left = np.divmod(np.arange((SIDE // cell) ** 2), SIDE // cell)
    return np.stack([left, top, left + 1, top + 1], axis=1) * cell


def _score_weights(at: int) -> NDArray[Any]:
    weights = np.zeros((CLASSES, 2, 1, 1))
    weights[at + 1, at] = 20
    return weights


def _score_biases() -> NDArray[Any]:
    biases = np.full(CLASSES, -10.0)
    biases[0] = 0
    return biases


def _box_weights(at: int) -> NDArray[Any]:
    """Right and bottom move in by a pixel where a cell is dark."""
    weights = np.zeros((4, 2, 1, 1))
    weights[2:, at] = 1
    return weights
