"""What every operator on float32 means, one number at a time: slow, obvious, not derived from IR.

Functions of one number are the reference's own, which other tests hold against float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.real_arrays import applied
from tilefarm.workload import Workload

Array = npt.NDArray[Any]
F = np.float32


def _clipped(work: Workload, values: Array) -> Array:
    names = {name for name, _ in work.attrs}
    low = work.attr_float("lo") if "lo" in names else -np.inf
    high = work.attr_float("hi") if "hi" in names else np.inf
    return np.clip(values, F(low), F(high))


def _total(terms: Iterable[F]) -> F:
    total = F(0)
    for term in terms:
        total = F(total + term)
    return total


def _along(x: Array, row: Iterable[F]) -> F:
    """The sum of a row of [A, R, B]: where B is 1, of columns first, then of halves of these."""
    terms = list(row)
    wide = [n for n in (64, 32, 16, 8, 4) if 2 * n <= len(terms) and x.shape[2] == 1]
    if not wide:
        return _total(terms)
    sums = [_total(terms[i :: wide[0]]) for i in range(wide[0])]
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [F(a + b) for a, b in zip(sums[:half], sums[half:], strict=True)]
    return sums[0]


def _map(work: Workload, x: Array) -> Array:
    parameters = [work.attr_float(name) for name, _ in work.attrs if name in "ab"]
    return _clipped(work, applied(work.attr_str("function"), x, parameters))


def _zip(work: Workload, a: Array, b: Array) -> Array:
    wide_a, wide_b = np.broadcast_arrays(a, b)
    divides = work.attr_str("function") == "div"
    out = [
        m / n if divides else m if m >= 0 else m * n
        for m, n in zip(wide_a.flat, wide_b.flat, strict=True)
    ]
    return _clipped(work, np.array(out, F).reshape(wide_a.shape))


def _rows(x: Array) -> Iterable[tuple[int, int, list[F]]]:
    for a, b in np.ndindex(x.shape[0], x.shape[2]):
        yield a, b, list(x[a, :, b])


def _reduce(work: Workload, x: Array) -> Array:
    out = np.zeros(work.outputs[0].shape, F)
    for a, b, row in _rows(x):
        out[a, b] = max(row) if work.attr_str("kind") == "max" else _along(x, row) / F(len(row))
    return out


def _normalize(work: Workload, x: Array) -> Array:
    out = np.zeros_like(x)
    for a, b, row in _rows(x):
        count = F(len(row))
        mean = _along(x, row) / count if work.attr_int("centered") else F(0)
        away = [v - mean for v in row]
        spread = _along(x, (v * v for v in away)) / count + F(work.attr_float("epsilon"))
        out[a, :, b] = [v * (F(1) / np.sqrt(spread)) for v in away]
    return out


def _softmax(work: Workload, x: Array) -> Array:
    out = np.zeros_like(x)
    for a, b, row in _rows(x):
        powers = list(applied("exp", np.array([v - max(row) for v in row])))
        share = F(1) / _along(x, powers)
        out[a, :, b] = [power * share for power in powers]
    return out


def _matmul(work: Workload, a: Array, b: Array, bias: Array | None = None) -> Array:
    out = np.zeros(work.outputs[0].shape, F)
    if "trans_a" in dict(work.attrs):
        a = a.transpose(0, 2, 1)
    for z, m, n in np.ndindex(*out.shape):
        left, right = a[min(z, len(a) - 1), m], b[min(z, len(b) - 1), :, n]
        total = _total(x * y for x, y in zip(left, right, strict=True))
        out[z, m, n] = total if bias is None else total + bias[n]
    return _clipped(work, out)


def _pixels(work: Workload, x: Array, fill: float) -> Array:
    top, left, bottom, right = work.attr_ints("pad")
    around = [(0, 0)] * (x.ndim - 2) + [(top, bottom), (left, right)]
    return np.pad(x, around, constant_values=F(fill))


def _conv2d(work: Workload, x: Array, weight: Array, bias: Array) -> Array:
    image, (down, across) = _pixels(work, x, 0), work.attr_ints("stride")
    _, _, kh, kw, _ = weight.shape
    out = np.zeros(work.outputs[0].shape, F)
    for n, g, co, h, w in np.ndindex(*out.shape):
        seen = image[n, g, :, h * down : h * down + kh, w * across : w * across + kw]
        terms = zip(seen.flat, weight[g, ..., co].flat, strict=True)
        out[n, g, co, h, w] = _total(a * b for a, b in terms) + bias[g, co]
    return _clipped(work, out)


def _pool2d(work: Workload, x: Array) -> Array:
    is_sum = work.attr_str("kind") == "sum"
    image = _pixels(work, x, 0 if is_sum else -np.inf)
    (down, across), (kh, kw) = work.attr_ints("stride"), work.attr_ints("kernel")
    out = np.zeros(work.outputs[0].shape, F)
    for c, h, w in np.ndindex(*out.shape):
        seen = image[c, h * down : h * down + kh, w * across : w * across + kw]
        out[c, h, w] = _total(seen.flat) if is_sum else seen.max()
    return out


def _take(work: Workload, places: Array, x: Array) -> Array:
    out = np.zeros(work.outputs[0].shape, F)
    count = x.shape[2]
    for n, k in np.ndindex(*places.shape):
        place = float(places[n, k])
        place = place + count if place < 0 else place
        out[n, :, k] = x[min(n, len(x) - 1), :, int(min(max(place, 0), count - 1))]
    return out


OPERATORS: Final[Mapping[str, Callable[..., Array]]] = {
    "real_map": _map,
    "real_zip": _zip,
    "real_reduce": _reduce,
    "real_normalize": _normalize,
    "real_softmax": _softmax,
    "real_matmul": _matmul,
    "real_conv2d": _conv2d,
    "real_pool2d": _pool2d,
    "real_take": _take,
}
