"""A model that is quantized while it runs: an integer convolution and an integer matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from kit.networks.onnx_models import model, node

_RNG = np.random.default_rng(4)
_W = _RNG.integers(0, 256, (4, 3, 3, 3)).astype(np.uint8)
WEIGHTS: dict[str, Any] = {
    "w": _W,
    "w.scale": np.linspace(0.01, 0.02, 4).astype(np.float32).reshape(1, 4, 1, 1),
    "w.zero": np.array([100, 120, 130, 140], np.uint8),
    "b": np.array([1, -1, 2, 0], np.float32).reshape(1, 4, 1, 1),
    "m": _RNG.integers(-127, 128, (64, 5)).astype(np.int8),
    "m.scale": np.linspace(0.001, 0.002, 5).astype(np.float32),
    "m.zero": np.int8(3),
    "five": np.array([1, 64], np.int64),
}
DYNAMIC = [
    node("DynamicQuantizeLinear", ["x"], "q", "q.scale", "q.zero"),
    node("ConvInteger", ["q", "w", "q.zero", "w.zero"], "s"),
    node("Cast", ["s"], "f", to=1),
    node("Mul", ["q.scale", "w.scale"], "scale"),
    node("Mul", ["f", "scale"], "r"),
    node("Add", ["r", "b"], "c"),
    node("Relu", ["c"], "h"),
]
DENSE = [
    node("Reshape", ["h", "five"], "v"),
    node("DynamicQuantizeLinear", ["v"], "u", "u.scale", "u.zero"),
    node("MatMulInteger", ["u", "m", "u.zero", "m.zero"], "t"),
    node("Cast", ["t"], "g", to=1),
    node("Mul", ["u.scale", "m.scale"], "k"),
    node("Mul", ["g", "k"], "y"),
]


def dynamic_layers() -> onnx.ModelProto:
    """From x [1, 3, 6, 6] to y [1, 5]."""
    return model([*DYNAMIC, *DENSE], WEIGHTS, x=(1, 3, 6, 6))
