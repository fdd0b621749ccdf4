"""A small ONNX model of many operators: a mobile block with gates, and a decoder."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from kit.networks.onnx_models import model, node
from numpy.typing import NDArray

RNG = np.random.default_rng(3)


def f32(*shape: int) -> NDArray[np.float32]:
    values = RNG.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))
    return np.asarray(values, np.float32)


def i64(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def gated(channels: int) -> onnx.ModelProto:
    """A mobile block with squeeze-and-excite, then a decoder that grows the image again."""
    nodes = [
        node("Pad", ["x", "pads"], "p"),
        node("Conv", ["p", "stem"], "s", strides=[2, 2]),
        node("HardSwish", ["s"], "h"),
        node("Conv", ["h", "deep"], "d", group=channels, pads=[1, 1, 1, 1]),
        node("PRelu", ["d", "slope"], "r"),
        node("GlobalAveragePool", ["r"], "m"),
        node("Conv", ["m", "squeeze"], "q"),
        node("Relu", ["q"], "e"),
        node("Conv", ["e", "excite"], "g"),
        node("HardSigmoid", ["g"], "gate"),
        node("Mul", ["r", "gate"], "scaled"),
        node("Sub", ["scaled", "h"], "residual"),
        node("Resize", ["residual", "", "grow"], "large", nearest_mode="floor"),
        node("Sigmoid", ["large"], "mask"),
        node("Transpose", ["mask"], "t", perm=[0, 2, 3, 1]),
        node("Slice", ["t", "from", "to", "axes"], "cut"),
        node("Exp", ["cut"], "powers"),
        node("Div", ["cut", "powers"], "y"),
    ]
    weights: dict[str, NDArray[Any]] = {
        "pads": i64(0, 0, 1, 1, 0, 0, 1, 1),
        "stem": f32(channels, 3, 3, 3),
        "deep": f32(channels, 1, 3, 3),
        "slope": f32(channels, 1, 1) * 0.3,
        "squeeze": f32(5, channels, 1, 1),
        "excite": f32(channels, 5, 1, 1),
        "grow": np.array([1, 1, 2, 2], np.float32),
        "from": i64(1),
        "to": i64(7),
        "axes": i64(2),
    }
    return model(nodes, weights, x=(1, 3, 10, 9), opset=17)
