"""Right answers of the operators next to the accelerator, on blocked arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.workload import Workload

from driver.network.graph.columns import gathered, padded
from driver.network.graph.custom_run import run_script
from driver.network.integer import arithmetic as integer
from driver.network.integer.blocks import from_blocks, lanes_from_blocks, to_blocks
from driver.network.integer.borders import border
from driver.network.integer.qlinear_kernels import QLINEAR_KERNELS
from driver.network.integer.real import REAL_KERNELS
from driver.network.integer.workload_window import window_of

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]


def quantize(workload: Workload, arrays: Arrays) -> Array:
    """Blocked int8 of a plain float32 tensor."""
    return to_blocks(_quantized(workload, arrays["x"]), *_tile(workload))


def quantize_windows(workload: Workload, arrays: Arrays) -> Array:
    """Blocked int8 [N, Kh*Kw*C, OH, OW]: windows of a plain image, its channels innermost."""
    steps = _quantized(workload, arrays["x"])
    window = window_of(workload, workload.attr_ints("kernel"))
    channels = integer.window_channels(padded(steps, window, int(workload.fill)), window)
    return to_blocks(channels, *_tile(workload))


def dequantize(workload: Workload, arrays: Arrays) -> Array:
    """Plain float32 of a blocked int8 tensor."""
    kept = from_blocks(arrays["x"], workload.outputs[0].shape)
    scale = workload.attr_float("scale")
    return integer.dequantize(kept, scale=scale, offset=workload.offset)


def softmax(workload: Workload, arrays: Arrays) -> Array:
    """Plain float32 [N, C]; absent channels take no part."""
    return integer.softmax(from_blocks(arrays["x"], workload.outputs[0].shape), arrays["table"])


def relayout(workload: Workload, arrays: Arrays) -> Array:
    """The same elements under another logical shape."""
    logical = from_blocks(arrays["x"], workload.attr_ints("logical_in"))
    return to_blocks(logical.reshape(workload.attr_ints("logical_out")), *_tile(workload))


def lookup(workload: Workload, arrays: Arrays) -> Array:
    """A function of every element by a table, or by one for each channel."""
    del workload
    x, table = arrays["x"], arrays["table"]
    entry = x.astype(np.int64) - int(np.iinfo(x.dtype).min)
    if table.ndim == 1:
        return np.asarray(table[entry])
    blocks = np.arange(table.shape[0]).reshape(1, -1, *(1,) * (x.ndim - 2))
    return np.asarray(table[blocks, np.arange(table.shape[1]), entry])


def product(workload: Workload, arrays: Arrays) -> Array:
    """One tensor times a function of another."""
    operands = (arrays[name] for name in ("a", "b", "table"))
    return integer.product(*operands, **_numbers(workload, "shift", "lo", "hi"))


def as_strided(workload: Workload, arrays: Arrays) -> Array:
    """Elements at even distances along every axis."""
    x, shape = arrays["x"], workload.outputs[0].shape
    seen = x[:, workload.attr_int("offset") :]
    strides = [each * x.itemsize for each in workload.attr_ints("strides")]
    return np.lib.stride_tricks.as_strided(seen, shape, (x.strides[0], *strides), writeable=False)


def gather(workload: Workload, arrays: Arrays) -> Array:
    """Elements from the places of an index."""
    return gathered(arrays["x"], arrays["index"], workload.fill)


def concat(workload: Workload, arrays: Arrays) -> Array:
    """Rows next to one another."""
    return np.concatenate([arrays[spec.name] for spec in workload.inputs], axis=1)


def add(workload: Workload, arrays: Arrays) -> Array:
    """A weighted sum of two tensors."""
    numbers = _numbers(workload, "mul_a", "mul_b", "shift", "lo", "hi")
    return integer.add(arrays["a"], arrays["b"], **numbers)


def affine(workload: Workload, arrays: Arrays) -> Array:
    """A scale, an offset and a shift for every channel; absent lanes are computed like others."""
    lanes = [lanes_from_blocks(arrays[name]) for name in ("mul", "add", "shift")]
    scaled = integer.affine(from_blocks(arrays["x"]), *lanes, **_numbers(workload, "lo", "hi"))
    return to_blocks(scaled, *_tile(workload))


def max_pool2d(workload: Workload, arrays: Arrays) -> Array:
    """The largest element under a window."""
    window = window_of(workload, workload.attr_ints("kernel"))
    return to_blocks(integer.max_pool2d(from_blocks(arrays["x"]), window=window), *_tile(workload))


def avg_pool2d(workload: Workload, arrays: Arrays) -> Array:
    """The mean under a window, by a multiplier for every place."""
    window = window_of(workload, workload.attr_ints("kernel"))
    numbers = _numbers(workload, "shift", "lo", "hi")
    means = integer.avg_pool2d(from_blocks(arrays["x"]), arrays["mul"], window=window, **numbers)
    return to_blocks(means, *_tile(workload))


def _quantized(workload: Workload, x: Array) -> Array:
    scale, offset = workload.attr_float("inv_scale"), workload.offset
    return integer.quantize(x, inv_scale=scale, offset=offset)


def _numbers(workload: Workload, *names: str) -> dict[str, Any]:
    return {name: workload.attr_int(name) for name in names}


def _tile(workload: Workload) -> tuple[int, int]:
    """The batch and block of the workload's blocked output."""
    batch, block = workload.outputs[0].shape[-2:]
    return batch, block


CPU_KERNELS: Final[Mapping[str, Callable[[Workload, Arrays], Array]]] = {
    "quantize": quantize,
    "quantize_windows": quantize_windows,
    "dequantize": dequantize,
    "add": add,
    "affine": affine,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "relayout": relayout,
    "softmax": softmax,
    "lookup": lookup,
    "product": product,
    "border": border,
    "as_strided": as_strided,
    "gather": gather,
    "concat": concat,
    "script": run_script,
    **QLINEAR_KERNELS,
    **REAL_KERNELS,
}
