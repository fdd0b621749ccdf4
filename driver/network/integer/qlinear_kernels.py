"""Right answers of convolutions as ONNX's QLinearConv defines them, on the processor's tensors.

Sums are exact and wrap as int32 does; `tilefarm.workload.OPERATORS` says what each operator means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.workload import Workload

from driver.network.graph.columns import correlate_groups, padded
from driver.network.integer.arithmetic import exact, wrapped
from driver.network.integer.blocks import from_blocks, to_blocks
from driver.network.integer.workload_window import window_of

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]

_NO_PAD: Final = (0, 0, 0, 0)
_LARGEST: Final = 255
"""Magnitude of data of 8 bits."""


def qlinear_conv2d(workload: Workload, arrays: Arrays) -> Array:
    """A convolution of blocks of channels, or of an image with its channels along the rows."""
    weight = arrays["weight"]
    if arrays["data"].shape[-1] == 1:
        co, ci, rows, groups, _, lanes, together = weight.shape
        taps = weight.transpose(0, 5, 1, 2, 3, 4, 6)
        taps = taps.reshape(co * lanes, ci, rows, groups * together)
    else:
        co, ci, rows, columns, groups, lanes, together = weight.shape
        taps = weight.transpose(0, 5, 1, 4, 6, 2, 3)
        taps = taps.reshape(co * lanes, ci * groups * together, rows, columns)
    return _convolved(workload, arrays, taps, groups=1)


def qlinear_depthwise2d(workload: Workload, arrays: Arrays) -> Array:
    """A convolution of every channel with taps of its own."""
    blocks, rows, quads, lanes, _ = arrays["weight"].shape
    taps = arrays["weight"].transpose(0, 3, 1, 2, 4)
    taps = taps.reshape(blocks * lanes, 1, rows, quads * 4)
    return _convolved(workload, arrays, taps, groups=blocks * lanes)


def _convolved(workload: Workload, arrays: Arrays, taps: Array, groups: int) -> Array:
    """The output for weights [Co, Ci / groups, Kh, Kw]; taps beyond the kernel are zero."""
    window = window_of(workload, taps.shape[2:])
    image = padded(from_blocks(arrays["data"]), window, workload.attr_int("fill"))
    inside = replace(window, pad=_NO_PAD)
    sums = wrapped(correlate_groups(image, exact(taps, _LARGEST), inside, groups))
    out = workload.outputs[0]
    return to_blocks(_requantized(workload, sums, arrays), *out.shape[-2:])


def _requantized(workload: Workload, sums: Array, arrays: Arrays) -> Array:
    """Sums [N, C, H, W] as 8 bits."""
    bias, scale = (arrays[name].reshape(-1, 1, 1) for name in ("bias", "scale"))
    zero, low, high = (workload.attr_int(name) for name in ("zero", "lo", "hi"))
    real = (sums + bias).astype(np.float32) * scale
    whole = np.rint(np.clip(real, np.float32(low - zero), np.float32(high - zero)))
    return np.asarray(whole.astype(np.int32) + zero, workload.outputs[0].dtype.value)


QLINEAR_KERNELS: Final[Mapping[str, Callable[[Workload, Arrays], Array]]] = {
    "qlinear_conv2d": qlinear_conv2d,
    "qlinear_depthwise2d": qlinear_depthwise2d,
}
