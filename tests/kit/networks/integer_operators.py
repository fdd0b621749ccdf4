"""Every operator of the integer network with parameters at the ends of what it allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, get_args

import numpy as np
from hypothesis import strategies as st
from kit.networks.integer_case import Case
from kit.networks.real_operators import reals
from numpy.typing import NDArray

from driver.network.graph.ir import Shape, Window
from driver.network.integer.qir import (
    MAX_WIDE,
    Dequantize,
    QAdd,
    QAffine,
    QAvgPool2d,
    QConcat,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QGather,
    QLookup,
    QMatMul,
    QMaxPool2d,
    QProduct,
    QRescale,
    QReshape,
    QSlice,
    QSoftmax,
    Quantize,
    QuantOperator,
    Real,
)
from driver.network.integer.qlinear import QLinearOperator

CHANNELS: Final = st.sampled_from([1, 3, 8, 15, 16, 17, 33])
_EXTENTS: Final = st.integers(1, 7)
_BATCHES: Final = st.integers(1, 3)
_SHIFTS: Final = st.one_of(st.integers(0, 12), st.integers(0, 30))
_SEEDS: Final = st.integers(0, 2**16)


@st.composite
def cases(draw: st.DrawFn, operator: type) -> Case:
    """Cases of one operator."""
    rng = np.random.default_rng(draw(_SEEDS))
    op, shapes = draw(STRATEGIES[operator](rng))
    return Case(
        op=op,
        shapes=shapes,
        before=draw(st.sampled_from(["nothing", "copy", "clip"])),
        seed=draw(_SEEDS),
    )


Made = tuple[QuantOperator, tuple[Shape, ...]]


def _weights(rng: np.random.Generator, *shape: int) -> NDArray[np.int8]:
    """Weights of which some are at the ends of int8."""
    ends = rng.choice([-128, -127, 0, 127], shape)
    return np.where(rng.random(shape) < 0.3, ends, rng.integers(-128, 128, shape)).astype(np.int8)


def _maybe_wide(draw: st.DrawFn, rng: np.random.Generator, *shape: int) -> NDArray[Any]:
    """Weights of 8 bits, or of 16 with some at the ends."""
    if draw(st.booleans()):
        return _weights(rng, *shape)
    ends = rng.choice([-32768, -MAX_WIDE, -129, -128, 127, 128, MAX_WIDE], shape)
    anywhere = rng.integers(-MAX_WIDE, MAX_WIDE + 1, shape)
    return np.where(rng.random(shape) < 0.3, ends, anywhere).astype(np.int16)


def _layer_of(draw: st.DrawFn, rng: np.random.Generator, weight: NDArray[Any]) -> dict[str, Any]:
    """Weights [Co, ...] with what follows their sums; no factors behind those of 16 bits."""
    after = _layer(draw, rng, len(weight))
    if weight.dtype == np.int16:
        after |= {"factor": None, "bias": after["bias"] << draw(st.integers(0, 8))}
    return {"weight": weight, **after}


def _layer(draw: st.DrawFn, rng: np.random.Generator, channels: int) -> dict[str, Any]:
    """Biases, maybe factors, shifts (each channel's own or one for all) and the ends of results."""
    most = draw(st.sampled_from([0, 100, 30_000, 4_000_000]))
    shift = np.full(channels, draw(_SHIFTS), np.int32)
    if draw(st.booleans()):
        shift = rng.integers(0, 31, channels, np.int32)
    bias = rng.integers(-most, most + 1, channels, np.int32)
    factor = rng.integers(-(1 << 20), 1 << 20, channels, np.int32) if draw(st.booleans()) else None
    return {"bias": bias, "factor": factor, "shift": shift, **_ends(draw)}


def _ends(draw: st.DrawFn) -> dict[str, int]:
    lo = draw(st.sampled_from([-128, -127, -5, 0]))
    return {"lo": lo, "hi": draw(st.sampled_from([127, 6, 1]))}


def _four(pads: Iterable[int]) -> tuple[int, int, int, int]:
    top, left, bottom, right = pads
    return top, left, bottom, right


def _window(draw: st.DrawFn, height: int, width: int, *, dilated: bool = True) -> Window:
    """A window that fits, padded on each side by less than it reaches."""
    kernel, dilation = [], []
    for extent in (height, width):
        kernel.append(draw(st.integers(1, min(3, extent))))
        most = (extent - 1) // (kernel[-1] - 1) if kernel[-1] > 1 else 1
        dilation.append(draw(st.integers(1, min(2, most))) if dilated else 1)
    reach = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return Window(
        kernel=(kernel[0], kernel[1]),
        stride=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        pad=_four(draw(st.integers(0, most)) for most in (*reach, *reach)),
        dilation=(dilation[0], dilation[1]),
    )


def _image(draw: st.DrawFn) -> tuple[int, int, int, int]:
    return draw(_BATCHES), draw(CHANNELS), draw(_EXTENTS), draw(_EXTENTS)


@st.composite
def _conv(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    n, c, h, w = _image(draw)
    groups = draw(st.sampled_from([g for g in (1, 1, 3, c) if c % g == 0]))
    co = groups * draw(st.sampled_from([1, 2] if groups > 1 else [1, 5, 16, 18]))
    window = _window(draw, h, w)
    makes = _weights if groups > 1 else partial(_maybe_wide, draw)
    weight = makes(rng, co, c // groups, *window.kernel)
    op = QConv2d(window=window, groups=groups, **_layer_of(draw, rng, weight))
    return op, ((n, c, h, w),)


@st.composite
def _transposed(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    n, c, h, w = _image(draw)
    kernel = draw(st.integers(1, min(2, h))), draw(st.integers(1, min(2, w)))
    stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    co = draw(st.sampled_from([1, 5, 17]))
    pad = _four(draw(st.integers(0, most - 1)) for most in (*kernel, *kernel))
    weight = _weights(rng, co, *stride, c, *kernel)
    op = QConvTranspose2d(weight=weight, pad=pad, **_layer(draw, rng, co))
    return op, ((n, c, h, w),)


@st.composite
def _dense(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    n, c, co = draw(_BATCHES), draw(CHANNELS), draw(CHANNELS)
    return QDense(**_layer_of(draw, rng, _maybe_wide(draw, rng, co, c))), ((n, c),)


@st.composite
def _matmul(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    n, groups, k = draw(st.sampled_from([(1, 1, 5), (1, 2, 16), (2, 1, 17), (1, 3, 8)]))
    shapes = tuple((n, groups * k, draw(st.sampled_from([1, 5, 16, 20]))) for _ in range(2))
    return QMatMul(groups=groups, shift=draw(st.integers(0, 16))), shapes


@st.composite
def _add(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    mul_a, mul_b = (draw(st.sampled_from([-127, -3, -1, 1, 2, 100, 127])) for _ in range(2))
    shape = _image(draw)
    return QAdd(mul_a=mul_a, mul_b=mul_b, shift=draw(_SHIFTS), **_ends(draw)), (shape, shape)


@st.composite
def _affine(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    shape = _image(draw)
    after = _layer(draw, rng, shape[1])
    return QAffine(weight=rng.integers(-127, 128, shape[1], np.int32), **after), (shape,)


@st.composite
def _rescale(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    return QRescale(mul=draw(st.integers(1, 127)), shift=draw(_SHIFTS)), (_image(draw),)


@st.composite
def _lookup(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    shape = _image(draw)
    rows = draw(st.sampled_from([(), shape[1:2]]))
    return QLookup(table=rng.integers(-128, 128, (*rows, 256), np.int8)), (shape,)


@st.composite
def _product(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    most = draw(st.sampled_from([3, 1000, 1 << 23]))
    table = rng.integers(-most, most + 1, 256, np.int32)
    shape = _image(draw)
    return QProduct(table=table, shift=draw(_SHIFTS)), (shape, shape)


@st.composite
def _gather(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    shape = _image(draw)
    result = draw(st.sampled_from([(3,), (17, 2), (5, 3, 2), (16, 1, 4)]))
    index = rng.integers(-1, int(np.prod(shape[1:])), result, np.int32)
    return QGather(index=index, fill=draw(st.sampled_from([0, 0, 3, -128]))), (shape,)


@st.composite
def _max_pool(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    shape = _image(draw)
    return QMaxPool2d(window=_window(draw, *shape[2:], dilated=False)), (shape,)


@st.composite
def _avg_pool(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    shape = _image(draw)
    window = _window(draw, *shape[2:], dilated=False)
    mul = np.full(window.positions(*shape[2:]), draw(st.integers(1, 127)), np.int32)
    if draw(st.booleans()):
        mul = rng.integers(1, 128, mul.shape, np.int32)
    return QAvgPool2d(window=window, mul=mul, shift=draw(_SHIFTS), **_ends(draw)), (shape,)


@st.composite
def _concat(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    n, _, h, w = _image(draw)
    parts = draw(st.lists(CHANNELS, min_size=2, max_size=3))
    return QConcat(), tuple((n, channels, h, w) for channels in parts)


@st.composite
def _slice(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    shape = _image(draw)
    start = draw(st.integers(0, shape[1] - 1))
    return QSlice(start=start, stop=draw(st.integers(start + 1, shape[1]))), (shape,)


@st.composite
def _reshape(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    n, c, h, w = _image(draw)
    wanted = draw(st.sampled_from([(c * h * w,), (h, c, w), (w * h, c), (1, c * h, w)]))
    return QReshape(shape=wanted), ((n, c, h, w),)


@st.composite
def _softmax(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    scale = draw(st.sampled_from([1e-9, 0.01, 0.5, 3.0, 1e9]))
    table = np.exp(-np.arange(256) * scale).astype(np.float32)
    return QSoftmax(table=table), ((draw(_BATCHES), draw(CHANNELS)),)


@st.composite
def _quantize(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    offset = draw(st.sampled_from([0.0, 0.0, -128.0, 0.5, 37.25]))
    return Quantize(inv_scale=draw(_scales()), offset=offset), (_image(draw),)


@st.composite
def _dequantize(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    offset = draw(st.sampled_from([0.0, 0.0, -37.25, 1e-3]))
    return Dequantize(scale=draw(_scales()), offset=offset), (_image(draw),)


@st.composite
def _real(draw: st.DrawFn, rng: np.random.Generator) -> Made:
    op, shapes = draw(reals(rng))
    return Real(op=op, why="a test"), shapes


def _scales() -> st.SearchStrategy[float]:
    """Scales as float32 has them."""
    return st.sampled_from([1e-30, 0.01, 0.3, 1.0, 2.0, 77.7, 1e30]).map(
        lambda scale: float(np.float32(scale))
    )


STRATEGIES: Final[Mapping[type, Callable[[np.random.Generator], st.SearchStrategy[Made]]]] = {
    QConv2d: _conv,
    QConvTranspose2d: _transposed,
    QDense: _dense,
    QMatMul: _matmul,
    QAdd: _add,
    QAffine: _affine,
    QRescale: _rescale,
    QLookup: _lookup,
    QProduct: _product,
    QGather: _gather,
    QMaxPool2d: _max_pool,
    QAvgPool2d: _avg_pool,
    QConcat: _concat,
    QSlice: _slice,
    QReshape: _reshape,
    QSoftmax: _softmax,
    Quantize: _quantize,
    Dequantize: _dequantize,
    Real: _real,
}

OPERATORS: Final = {*get_args(QuantOperator)} - {*get_args(QLinearOperator)}
"""Those that accelerators have kernels for."""
