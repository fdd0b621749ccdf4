"""A network of operators that are written as steps, and of constants that operators make."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from kit.networks.onnx_models import model_on, node
from numpy.typing import NDArray


def stepped() -> onnx.ModelProto:
    """An image read at places; sums, powers, where they are largest, and what stands there."""
    given: dict[str, NDArray[Any]] = {
        "x": np.zeros((1, 2, 4, 4), np.float32),
        "theta": np.zeros((1, 2, 3), np.float32),
    }
    weights: dict[str, NDArray[Any]] = {
        "size": np.array([1, 2, 3, 3]),
        "channels": np.array(1),
        "exponents": np.array([2, 3, 2], np.float32),
        "divisor": np.array(2),
        "depth": np.array(6),
        "ends": np.array([0, 1], np.float32),
        "row": np.arange(3, dtype=np.float32).reshape(1, 1, 3),
        "around": np.array([0, 1, 0, 0, 0, 0]),
        "few": np.arange(8, dtype=np.float32).reshape(4, 2),
        "extents": np.array([3, 6]),
        "last": np.array([3]),
    }
    nodes = [
        node("AffineGrid", ["theta", "size"], "grid"),
        node("GridSample", ["x", "grid"], "read", padding_mode="border"),
        node("CumSum", ["read", "channels"], "sums"),
        node("Pow", ["sums", "exponents"], "powers"),
        node("ArgMax", ["powers"], "first", axis=3, keepdims=0),
        node("Mod", ["first", "divisor"], "rest"),
        node("OneHot", ["rest", "depth", "ends"], "ones"),
        node("Pad", ["row", "around"], "rows"),
        node("GatherElements", ["rows", "first"], "elements", axis=2),
        node("Resize", ["few", "", "", "extents"], "table", mode="linear"),
        node("Unsqueeze", ["first", "last"], "places"),
        node("GatherND", ["table", "places"], "entries"),
        node("Unsqueeze", ["elements", "last"], "column"),
        node("Mul", ["entries", "column"], "products"),
        node("Add", ["products", "ones"], "z"),
        node("Hardmax", ["z"], "y"),
    ]
    return model_on(given, nodes, weights)
