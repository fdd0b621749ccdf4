"""Workloads on 8 bits beside the layers: products, means, elements by their grids, bytes moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kit.kernels.qlinear import as_reals
from tilefarm.dtype import DType
from tilefarm.workload import AttrValue, TensorSpec, Workload

from compile_worker.te.operators.dynamic_grids import LINE

LANES: Final = 16
_I8, _U8, _I32, _F32 = DType.INT8, DType.UINT8, DType.INT32, DType.FLOAT32

Shape = tuple[int, ...]
Typed = tuple[DType, Shape]


def matmul(
    a: Typed = (_U8, (2, 9, 5)),
    b: Typed = (_U8, (2, 9, 19)),
    zeros: tuple[int, int] = (3, 120),
    out: DType = _U8,
) -> Workload:
    """A product of [Z, K, I] and [Z, K, J]."""
    shape = (a[1][0], a[1][2], b[1][2])
    attrs: dict[str, AttrValue] = {
        "a_zero": zeros[0],
        "b_zero": zeros[1],
        "scale": 0.003,
        **_to(out),
    }
    return _workload("qlinear_matmul", {"a": a, "b": b}, (out, shape), **attrs)


def avg_pool(
    x: Typed = (_U8, (1, 2, 6, 5, 1, LANES)),
    kernel: tuple[int, int] = (3, 2),
    stride: tuple[int, int] = (2, 1),
    pad: tuple[int, int, int, int] = (0, 1, 1, 0),
    out: DType = _U8,
) -> Workload:
    """Scaled sums under a window."""
    height = (x[1][2] + pad[0] + pad[2] - kernel[0]) // stride[0] + 1
    width = (x[1][3] + pad[1] + pad[3] - kernel[1]) // stride[1] + 1
    shape = (*x[1][:2], height, width, *x[1][4:])
    attrs: dict[str, AttrValue] = {"kernel": kernel, "stride": stride, "pad": pad, "x_zero": 7}
    inputs = {"x": x, "scale": (_F32, (height, width))}
    return _workload("qlinear_avg_pool2d", inputs, (out, shape), **attrs, **_to(out))


def zipped(function: str, a: Typed, b: Typed, out: Typed, scale: float = 0.2) -> Workload:
    """Two tensors combined."""
    grids: dict[str, AttrValue] = {
        "a_scale": 0.11,
        "a_zero": 5,
        "b_scale": 0.27,
        "b_zero": -3,
        "scale": scale,
    }
    inputs = {"a": a, "b": b}
    return _workload("qlinear_zip", inputs, out, function=function, **grids, **_to(out[0]))


def quantize(x: Shape, out: Typed, zero: int) -> Workload:
    """float32 as 8 bits in blocks."""
    return _workload("quantize_linear", {"x": (_F32, x)}, out, scale=0.07, zero=zero)


def dequantize(x: Typed, out: Shape, zero: int) -> Workload:
    """Blocks of 8 bits as float32."""
    return _workload("dequantize_linear", {"x": x}, (_F32, out), scale=0.07, zero=zero)


def own_grid(rows: int, extent: int) -> Workload:
    """The grid of every row."""
    return _workload("dynamic_grid", {"x": (_F32, (rows, extent))}, (_F32, (rows, 2)))


def dynamic(x: Shape, out: Shape, **pad: AttrValue) -> Workload:
    """float32 as uint8 in blocks, on a grid that is given."""
    inputs = {"x": (_F32, x), "grid": (_F32, (x[0], 2))}
    return _workload("dynamic_quantize_linear", inputs, (_U8, out), **pad)


def relayout(dtype: DType, before: Shape, after: Shape, logical: tuple[Shape, Shape]) -> Workload:
    """The same elements in other blocks."""
    shapes: dict[str, AttrValue] = {"logical_in": logical[0], "logical_out": logical[1]}
    return _workload("relayout", {"x": (dtype, before)}, (dtype, after), **shapes)


def _to(out: DType) -> dict[str, int]:
    """Where results of a type are."""
    low, high = (0, 255) if out is _U8 else (-128, 127)
    return {} if out.is_float else {"zero": low + 131, "lo": low + 9, "hi": high}


def _workload(
    operator: str, inputs: Mapping[str, Typed], out: Typed, **attrs: AttrValue
) -> Workload:
    specs = tuple(TensorSpec(name, shape, dtype) for name, (dtype, shape) in inputs.items())
    return Workload(operator, specs, (TensorSpec("out", out[1], out[0]),), tuple(attrs.items()))


_BYTES: Final = (1, 2, 3, 5, 1, LANES)
_SPREAD: Final = (1, 2, 1, 1, 1, LANES)
_WINDOW: Final[Mapping[str, AttrValue]] = {"kernel": (3, 2), "stride": (2, 1), "pad": (0, 1, 1, 0)}

EXAMPLES: Final[Mapping[str, Workload]] = {
    "qlinear_matmul": matmul(),
    "qlinear_matmul_signed": matmul((_I8, (1, 8, 3)), (_I8, (1, 8, 32)), (0, 0), _I8),
    "qlinear_matmul_mixed": matmul((_I8, (2, 6, 4)), (_U8, (2, 6, 16)), (-9, 128), _F32),
    "qlinear_avg_pool2d": avg_pool(),
    "qlinear_avg_pool2d_global": avg_pool(
        (_I8, (1, 2, 4, 3, 1, LANES)), (4, 3), (1, 1), (0, 0, 0, 0), _I8
    ),
    "qlinear_avg_pool2d_reals": as_reals(avg_pool()),
    "qlinear_zip": zipped("add", (_U8, _BYTES), (_I8, _BYTES), (_U8, _BYTES)),
    "qlinear_zip_spread": zipped("mul", (_I8, _BYTES), (_U8, _SPREAD), (_I8, _BYTES), 1.7),
    "qlinear_zip_div": zipped("div", (_I8, _BYTES), (_I8, _BYTES), (_I8, _BYTES)),
    "quantize_linear": quantize((1, 19, 3, 2), (_U8, (1, 2, 3, 2, 1, LANES)), 120),
    "quantize_linear_signed": quantize((2, 16, 9), (_I8, (2, 1, 9, 1, LANES)), -5),
    "dequantize_linear": dequantize((_U8, (1, 2, 3, 2, 1, LANES)), (1, 19, 3, 2), 120),
    "dequantize_linear_signed": dequantize((_I8, (2, 1, 9, 1, LANES)), (2, 16, 9), 0),
    "dynamic_grid": own_grid(5, 2 * LINE + 5),
    "dynamic_grid_of_lines": own_grid(2, 3 * LINE),
    "dynamic_grid_of_few": own_grid(3, 7),
    "dynamic_quantize_linear": dynamic((2, 19, 9), (2, 2, 9, 1, LANES)),
    "dynamic_quantize_linear_padded": dynamic(
        (2, 19, 4, 3), (2, 2, 6, 6, 1, LANES), pad=(2, 1, 0, 2)
    ),
    "dynamic_bias": _workload(
        "dynamic_bias",
        {"grid": (_F32, (1, 2)), "taps": (_I32, (2, LANES)), "bias": (_I32, (2, LANES))},
        (_I32, (2, LANES)),
    ),
    "max_pool2d_of_uint8": _workload(
        "max_pool2d",
        {"x": (_U8, (1, 2, 6, 5, 1, LANES))},
        (_U8, (1, 2, 3, 5, 1, LANES)),
        **_WINDOW,
    ),
    "relayout_of_blocks": relayout(
        _U8, (1, 2, 2, 3, 1, LANES), (1, 3, 2, 3, 1, 8), ((1, 20, 2, 3), (1, 20, 2, 3))
    ),
    "relayout_to_rows": relayout(
        _I8, (1, 2, 2, 3, 1, LANES), (1, 20, 2, 3, 1, 1), ((1, 20, 2, 3), (1, 20, 2, 3))
    ),
    "relayout_from_rows": relayout(
        _F32, (1, 20, 2, 3, 1, 1), (1, 2, 2, 3, 1, LANES), ((1, 20, 2, 3), (1, 20, 2, 3))
    ),
    "lookup_of_uint8": _workload(
        "lookup", {"x": (_U8, _BYTES), "table": (_I8, (256,))}, (_I8, _BYTES)
    ),
    "lookup_of_reals": _workload(
        "lookup", {"x": (_I8, _BYTES), "table": (_F32, (2, LANES, 256))}, (_F32, _BYTES)
    ),
    "gather_of_uint8": _workload(
        "gather", {"x": (_U8, (2, 45)), "index": (DType.INT32, (70,))}, (_U8, (2, 70)), fill=200
    ),
    "concat_of_uint8": _workload(
        "concat", {"x0": (_U8, (2, 48)), "x1": (_U8, (2, 16))}, (_U8, (2, 64))
    ),
}
"""A small workload of every operator and each shape of its nest."""
