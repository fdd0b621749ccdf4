"""What QLinear operators mean, in numpy on logical tensors: slow, obvious, not derived from IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.workload import Workload

Array = npt.NDArray[Any]


def _conv2d(work: Workload, data: Array, weight: Array, bias: Array, scale: Array) -> Array:
    if data.shape[-1] == 1:
        weight = np.moveaxis(weight, -1, -3).reshape(*weight.shape[:3], -1, 1, weight.shape[-2], 1)
    taps = weight.transpose(0, 5, 2, 3, 1, 4, 6)
    taps = taps.reshape(-1, *taps.shape[2:4], taps[0, 0, 0, 0].size).astype(np.int64)
    out = np.zeros((*_plain(work.outputs[0].shape)[:3], len(taps)), np.int64)
    for h, w in np.ndindex(*out.shape[1:3]):
        out[:, h, w] = np.einsum("nyxi,oyxi->no", _window(work, data, taps.shape[1:3], h, w), taps)
    return _requantized(work, out, bias, scale)


def _depthwise2d(work: Workload, data: Array, weight: Array, bias: Array, scale: Array) -> Array:
    taps = weight.transpose(1, 2, 4, 0, 3)
    taps = taps.reshape(len(taps), -1, taps.shape[3] * taps.shape[4]).astype(np.int64)
    out = np.zeros(_plain(work.outputs[0].shape), np.int64)
    for h, w in np.ndindex(*out.shape[1:3]):
        out[:, h, w] = np.einsum("nyxi,yxi->ni", _window(work, data, taps.shape[:2], h, w), taps)
    return _requantized(work, out, bias, scale)


def _plain(blocked: tuple[int, ...]) -> tuple[int, ...]:
    """[N, H, W, C] of [N, C/c, H, W, 1, c]."""
    n, blocks, height, width, _, lanes = blocked
    return n, height, width, blocks * lanes


def _window(work: Workload, data: Array, kernel: tuple[int, ...], row: int, column: int) -> Array:
    """[N, kh, kw, C]: what one output sees."""
    top, left, bottom, right = work.attr_ints("pad")
    (down, across), (below, beside) = work.attr_ints("stride"), work.attr_ints("dilation")
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    image = data[..., 0, :].transpose(0, 2, 3, 1, 4).reshape(_plain(data.shape)).astype(np.int64)
    image = np.pad(image, around, constant_values=work.attr_int("fill"))
    rows = [row * down + tap * below for tap in range(kernel[0])]
    columns = [column * across + tap * beside for tap in range(kernel[1])]
    return image[:, rows][:, :, columns]


def _requantized(work: Workload, sums: Array, bias: Array, scale: Array) -> Array:
    """Sums [N, H, W, C] as the output, in its blocks."""
    real = (sums + bias.reshape(-1)).astype(np.int32).astype(np.float32) * scale.reshape(-1)
    low, high = work.attr_int("lo"), work.attr_int("hi")
    whole = np.clip(np.rint(real) + np.float32(work.attr_int("zero")), low, high)
    n, blocks, height, width, batch, lanes = work.outputs[0].shape
    found = whole.reshape(n, height, width, blocks, batch, lanes).transpose(0, 3, 1, 2, 4, 5)
    return np.ascontiguousarray(found).astype(work.outputs[0].dtype.value)


OPERATORS: Final[Mapping[str, Callable[..., Array]]] = {
    "qlinear_conv2d": _conv2d,
    "qlinear_depthwise2d": _depthwise2d,
}
