"""Right answers in float32: what the CPU kernels on floats compute, operation by operation.

Sums take their terms one after the other, in the order of the axes, or along a row some side by
side (`tilefarm.real.sums_of_neighbours`), and everything rounds to float32 by itself;
`tilefarm.workload.OPERATORS` says what each operator means. The loops here run over the terms,
numpy over everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.real import sums_of_neighbours
from tilefarm.real_arrays import WORDS, applied, combined
from tilefarm.workload import Workload

from driver.network.graph.columns import padded, patches, taken
from driver.network.graph.ir import FloatArray
from driver.network.integer.workload_window import window_of

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]


def real_map(workload: Workload, arrays: Arrays) -> Array:
    """A function of every element."""
    return applied(workload.attr_str("function"), arrays["x"], workload.parameters)


def real_zip(workload: Workload, arrays: Arrays) -> Array:
    """Two tensors combined element by element."""
    return combined(workload.attr_str("function"), arrays["a"], arrays["b"])


def real_reduce(workload: Workload, arrays: Arrays) -> Array:
    """All along the middle axis combined."""
    x, kind = arrays["x"], workload.attr_str("kind")
    whole = _along(x, kind)
    return combined("div", whole, WORDS.number(x.shape[1])) if kind == "mean" else whole


def real_normalize(workload: Workload, arrays: Arrays) -> Array:
    """Distances from the mean along the middle axis, in units of their root mean square."""
    x = arrays["x"]
    count = WORDS.number(x.shape[1])
    away = x
    if workload.attr_int("centered"):
        away = x - (_along(x, "sum") / count)[:, None]
    spread = _along(away * away, "sum") / count + WORDS.number(workload.attr_float("epsilon"))
    return away * combined("div", WORDS.number(1), np.sqrt(spread))[:, None]


def real_softmax(workload: Workload, arrays: Arrays) -> Array:
    """Shares of the exponentials along the middle axis, or their logarithms."""
    x = arrays["x"]
    below = x - _along(x, "max")[:, None]
    power = applied("exp", below)
    if dict(workload.attrs).get("log"):
        return below - applied("log", _along(power, "sum"))[:, None]
    return power * combined("div", WORDS.number(1), _along(power, "sum"))[:, None]


def real_matmul(workload: Workload, arrays: Arrays) -> Array:
    """Matrix products, with a bias or without."""
    a, b = arrays["a"], arrays["b"]
    if dict(workload.attrs).get("trans_a"):
        a = a.swapaxes(1, 2)
    total = np.zeros(workload.outputs[0].shape, np.float32)
    for k in range(a.shape[2]):
        total += a[:, :, k, None] * b[:, k, None, :]
    return total + arrays["bias"] if "bias" in arrays else total


def real_conv2d(workload: Workload, arrays: Arrays) -> Array:
    """A convolution in groups, channels of the input outermost in its sums."""
    x, weight = arrays["x"], arrays["weight"]
    n, g, ci, *image = x.shape
    window = window_of(workload, weight.shape[2:4])
    seen = patches(padded(x.reshape(n, g * ci, *image), window), window)
    seen = seen.reshape(n, g, 1, ci, *seen.shape[2:])
    total = np.zeros(workload.outputs[0].shape, np.float32)
    for c, kh, kw in np.ndindex(*weight.shape[1:4]):
        total += seen[:, :, :, c, :, :, kh, kw] * weight[:, c, kh, kw, :, None, None]
    return total + arrays["bias"][:, :, None, None]


def real_take(workload: Workload, arrays: Arrays) -> Array:
    """Columns at places that are data."""
    del workload
    return taken(arrays["places"], arrays["x"])


def real_pool2d(workload: Workload, arrays: Arrays) -> Array:
    """The sum or the maximum under a window."""
    kind = workload.attr_str("kind")
    window = window_of(workload, workload.attr_ints("kernel"))
    image = padded(arrays["x"][None], window, 0.0 if kind == "sum" else -math.inf)
    seen = patches(image, window)[0]
    return _combined_in_order(
        kind, seen.shape[:3], (seen[..., *at] for at in np.ndindex(window.kernel))
    )


def _along(x: Array, kind: str) -> Array:
    """[A, B] of [A, R, B]."""
    a, r, b = x.shape
    together = sums_of_neighbours(r) if b == 1 else 1
    if together == 1:
        return _combined_in_order(kind, (a, b), (x[:, at] for at in range(r)))
    whole = r - r % together
    lines = x[:, :whole].reshape(a, -1, together)
    sums = _combined_in_order(kind, (a, together), lines.swapaxes(0, 1))
    function, _ = _KINDS[kind]
    rest = r - whole
    sums[:, :rest] = combined(function, sums[:, :rest], x[:, whole:, 0])
    while together > 1:
        together //= 2
        sums = combined(function, sums[:, :together], sums[:, together:])
    return sums


_KINDS: Final[Mapping[str, tuple[str, float]]] = {
    "sum": ("add", 0.0),
    "mean": ("add", 0.0),
    "prod": ("mul", 1.0),
    "max": ("max", -math.inf),
    "min": ("min", math.inf),
}


def _combined_in_order(kind: str, shape: tuple[int, ...], terms: Iterable[Array]) -> Array:
    function, start = _KINDS[kind]
    total: FloatArray = np.full(shape, start, np.float32)
    for term in terms:
        total = combined(function, total, term)
    return total


def _bounded(kernel: Callable[[Workload, Arrays], Array]) -> Callable[[Workload, Arrays], Array]:
    """The kernel, with the bounds that the workload has."""

    def bounded(workload: Workload, arrays: Arrays) -> Array:
        attrs = dict(workload.attrs)
        with np.errstate(all="ignore"):
            value = kernel(workload, arrays)
        if "lo" in attrs:
            value = WORDS.larger(WORDS.number(workload.attr_float("lo")), value)
        if "hi" in attrs:
            value = WORDS.smaller(WORDS.number(workload.attr_float("hi")), value)
        return value

    return bounded


REAL_KERNELS: Final[Mapping[str, Callable[[Workload, Arrays], Array]]] = {
    kernel.__name__: _bounded(kernel)
    for kernel in (
        real_map,
        real_zip,
        real_reduce,
        real_normalize,
        real_softmax,
        real_matmul,
        real_conv2d,
        real_pool2d,
        real_take,
    )
}
"""Operator name -> its right answer on arrays by the names of its parameters."""
