"""The digit classifier in numpy with its gradients: four convolutions, one residual, one dense.

    x 1x8x8 -> conv 16 -> conv 32 -> conv 32 + skip -> max pool 2 -> conv 64 -> mean -> dense 10

Every convolution is 3x3 with padding 1 and a ReLU behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from driver.network.graph.columns import correlate, padded, patches
from driver.network.graph.ir import FloatArray, Window

Parameters: TypeAlias = Mapping[str, FloatArray]

SHAPES: Final[Mapping[str, tuple[int, ...]]] = {
    "conv1": (16, 1, 3, 3),
    "conv2": (32, 16, 3, 3),
    "conv3": (32, 32, 3, 3),
    "conv4": (64, 32, 3, 3),
    "dense": (10, 64),
}
WINDOW: Final = Window(kernel=(3, 3), pad=(1, 1, 1, 1))


def fresh_parameters(rng: np.random.Generator) -> dict[str, FloatArray]:
    """Weights as He et al. (2015) draw them for ReLU, biases zero; keys "conv1.w", "conv1.b" …"""
    parameters: dict[str, FloatArray] = {}
    for name, shape in SHAPES.items():
        spread = np.sqrt(2.0 / np.prod(shape[1:]))
        parameters[f"{name}.w"] = (rng.standard_normal(shape) * spread).astype(np.float32)
        parameters[f"{name}.b"] = np.zeros(shape[0], np.float32)
    return parameters


def scores(x: FloatArray, p: Parameters) -> FloatArray:
    """The logits [N, 10] of images [N, 1, 8, 8] within 0..1."""
    return _forward(x, p)["logits"]


def loss_and_gradients(
    x: FloatArray, labels: np.ndarray, p: Parameters
) -> tuple[float, dict[str, FloatArray]]:
    """Mean cross entropy over the batch, and its gradient for every parameter."""
    v = _forward(x, p)
    shifted = v["logits"] - v["logits"].max(axis=1, keepdims=True)
    log_chance = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(x))
    d_logits = np.exp(log_chance)
    d_logits[rows, labels] -= 1
    return float(-log_chance[rows, labels].mean()), _backward(d_logits / len(x), v, p)


def _forward(x: FloatArray, p: Parameters) -> dict[str, FloatArray]:
    v = {"x": x}
    v["h1"] = np.maximum(_conv(x, p, "conv1"), 0)
    v["h2"] = np.maximum(_conv(v["h1"], p, "conv2"), 0)
    v["h3"] = np.maximum(_conv(v["h2"], p, "conv3") + v["h2"], 0)
    v["pool"] = patches(v["h3"], _HALVING).max(axis=(4, 5))
    v["h4"] = np.maximum(_conv(v["pool"], p, "conv4"), 0)
    v["mean"] = v["h4"].mean(axis=(2, 3))
    v["logits"] = v["mean"] @ p["dense.w"].T + p["dense.b"]
    return v


def _backward(
    d_logits: FloatArray, v: Mapping[str, FloatArray], p: Parameters
) -> dict[str, FloatArray]:
    grads = {"dense.w": d_logits.T @ v["mean"], "dense.b": d_logits.sum(axis=0)}
    places = v["h4"].shape[2] * v["h4"].shape[3]
    d_mean = (d_logits @ p["dense.w"])[:, :, None, None] / places
    d_pool = _conv_back(d_mean * (v["h4"] > 0), v["pool"], p, "conv4", grads)
    d_h3 = _pool_back(d_pool, v["pool"], v["h3"]) * (v["h3"] > 0)
    d_h2 = (_conv_back(d_h3, v["h2"], p, "conv3", grads) + d_h3) * (v["h2"] > 0)
    d_h1 = _conv_back(d_h2, v["h1"], p, "conv2", grads) * (v["h1"] > 0)
    _conv_back(d_h1, v["x"], p, "conv1", grads)
    return grads


def _conv(x: FloatArray, p: Parameters, name: str) -> FloatArray:
    return np.asarray(correlate(x, p[f"{name}.w"], WINDOW) + p[f"{name}.b"][:, None, None])


def _conv_back(
    d_out: FloatArray, x: FloatArray, p: Parameters, name: str, grads: dict[str, FloatArray]
) -> FloatArray:
    """Adds the layer's gradients to `grads` and returns that of its input."""
    under = patches(padded(x, WINDOW), WINDOW)
    grads[f"{name}.w"] = np.tensordot(d_out, under, axes=((0, 2, 3), (0, 2, 3)))
    grads[f"{name}.b"] = d_out.sum(axis=(0, 2, 3))
    turned = np.ascontiguousarray(p[f"{name}.w"].transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
    return correlate(d_out, turned, WINDOW)


def _pool_back(d_pool: FloatArray, pool: FloatArray, x: FloatArray) -> FloatArray:
    """The gradient goes to the elements that were the largest; equal ones share it."""
    n, c, h, w = pool.shape
    tiles = x.reshape(n, c, h, 2, w, 2)
    largest = tiles == pool[:, :, :, None, :, None]
    share = d_pool[:, :, :, None, :, None] / largest.sum(axis=(3, 5), keepdims=True)
    return np.asarray((largest * share).reshape(x.shape), np.float32)


_HALVING: Final = Window(kernel=(2, 2), stride=(2, 2))
