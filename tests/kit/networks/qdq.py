"""Small quantized ONNX models for tests: pairs around a convolution, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from kit.networks.onnx_models import model, node
from numpy.typing import NDArray


def pair(source: str, grid: str, result: str) -> list[onnx.NodeProto]:
    """QuantizeLinear and DequantizeLinear with the constants `grid.scale` and `grid.zero`."""
    constants = [f"{grid}.scale", f"{grid}.zero"]
    return [
        node("QuantizeLinear", [source, *constants], f"{result}.q"),
        node("DequantizeLinear", [f"{result}.q", *constants], result),
    ]


def layer_weights(
    *, per_channel: bool = True, dtype: type[np.generic] = np.int8
) -> dict[str, NDArray[Any]]:
    """Constants of a network 3 -> 20 -> 5 channels: int8 or uint8 weights, int32 biases, grids."""
    rng = np.random.default_rng(5)
    unsigned = dtype is np.uint8
    first = rng.integers(-127, 128, (20, 3, 3, 3)) + 128 * unsigned
    second = rng.integers(-127, 128, (5, 20, 1, 1)) + 128 * unsigned
    spread = np.linspace(0.002, 0.008, 20) if per_channel else np.array(0.004)
    return {
        "x.scale": np.array(0.02, np.float32),
        "x.zero": np.array(120, np.uint8),
        "h.scale": np.array(0.03, np.float32),
        "h.zero": np.array(-128, np.int8),
        "y.scale": np.array(0.05, np.float32),
        "y.zero": np.array(3, np.int8),
        "w": first.astype(dtype),
        "w.scale": spread.astype(np.float32),
        "w.zero": np.full(spread.shape, 128 * unsigned, dtype),
        "b": rng.integers(-3000, 3000, 20).astype(np.int32),
        "b.scale": (spread * 0.02).astype(np.float32),
        "v": second.astype(dtype),
        "v.scale": np.array(0.004, np.float32),
        "v.zero": np.array(128 * unsigned, dtype),
    }


def two_convolutions(weights: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """x -> pair -> 3x3 convolution with bias -> pair that begins at zero -> 1x1 -> pair -> y."""
    nodes = [
        *pair("x", "x", "x.r"),
        node("DequantizeLinear", ["w", "w.scale", "w.zero"], "w.r", axis=0),
        node("DequantizeLinear", ["b", "b.scale"], "b.r", axis=0),
        node("Conv", ["x.r", "w.r", "b.r"], "c", pads=[1, 1, 1, 1]),
        *pair("c", "h", "h.r"),
        node("DequantizeLinear", ["v", "v.scale", "v.zero"], "v.r"),
        node("Conv", ["h.r", "v.r"], "d"),
        *pair("d", "y", "y"),
    ]
    return model(nodes, weights, x=(1, 3, 8, 8), opset=19)


def two_qlinear_convolutions(weights: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """The same network as operators on integers."""
    x, h, y = ([f"{grid}.scale", f"{grid}.zero"] for grid in "xhy")
    nodes = [
        node("QuantizeLinear", ["x", *x], "q"),
        node(
            "QLinearConv",
            ["q", *x, "w", "w.scale", "w.zero", *h, "b"],
            "r",
            pads=[1, 1, 1, 1],
        ),
        node("QLinearConv", ["r", *h, "v", "v.scale", "v.zero", *y], "s"),
        node("DequantizeLinear", ["s", *y], "y"),
    ]
    return model(nodes, weights, x=(1, 3, 8, 8), opset=19)
