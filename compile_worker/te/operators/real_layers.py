"""Layers on float32: matrix products, convolution in groups, windows; sums term after term."""

from __future__ import annotations

import math
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Add, Const, Expr, Var
from compile_worker.te.extremes import maximum
from compile_worker.te.operators.real_words import output
from compile_worker.te.operators.window import guarded, shifted, under_tap, within
from compile_worker.te.tensor import Reduction, Tensor, compute, total

_ZERO: Final = Const(0, INDEX)


def real_matmul(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages dot and the output [Z, M, N]; an operand [1, ...] is the same for all of Z."""
    a, b, *bias = inputs
    z, m, n = workload.outputs[0].shape
    is_turned = bool(dict(workload.attrs).get("trans_a"))

    def element(z: Var, m: Var, n: Var) -> Reduction:
        def product(k: Var) -> Expr:
            row = (k, m) if is_turned else (m, k)
            return a[(_entry(a, z), *row)] * b[_entry(b, z), k, n]

        return total(DType.FLOAT32, {"k": b.shape[1]}, product)

    dot = compute("dot", {"z": z, "m": m, "n": n}, element)

    def result(z: Var, m: Var, n: Var) -> Expr:
        return dot[z, m, n] + bias[0][n] if bias else dot[z, m, n]

    return [dot, output(workload, "z m n", result)]


def real_conv2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], conv and the output [N, G, Co, OH, OW]."""
    x, weight, bias = inputs
    before = _padded(workload, x, 0.0)
    image = before[0] if before else x
    n, g, co, height, width = workload.outputs[0].shape
    _, ci, kernel_h, kernel_w, _ = weight.shape

    def element(n: Var, g: Var, h: Var, w: Var, co: Var) -> Reduction:
        def product(ci: Var, kh: Var, kw: Var) -> Expr:
            row, column = under_tap(workload, h, w, kh, kw)
            return image[n, g, ci, row, column] * weight[g, ci, kh, kw, co]

        return total(DType.FLOAT32, {"ci": ci, "kh": kernel_h, "kw": kernel_w}, product)

    conv = compute("conv", {"n": n, "g": g, "h": height, "w": width, "co": co}, element)
    out = output(workload, "n g co h w", lambda n, g, co, h, w: conv[n, g, h, w, co] + bias[g, co])
    return [*before, conv, out]


def real_pool2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], window and the output [C, OH, OW]."""
    (x,) = inputs
    is_sum = workload.attr_str("kind") == "sum"
    combine, start = (Add, 0.0) if is_sum else (maximum, -math.inf)
    before = _padded(workload, x, start)
    image = before[0] if before else x
    kernel_h, kernel_w = workload.attr_ints("kernel")

    def element(c: Var, h: Var, w: Var) -> Reduction:
        def pixel(kh: Var, kw: Var) -> Expr:
            return image[c, *under_tap(workload, h, w, kh, kw)]

        over = {"kh": kernel_h, "kw": kernel_w}
        return Reduction(combine, Const(start, DType.FLOAT32), over, pixel)

    axes = dict(zip("chw", workload.outputs[0].shape, strict=True))
    window = compute("window", axes, element)
    return [*before, window, output(workload, "c h w", lambda *at: window[at])]


def _padded(workload: Workload, image: Tensor, outside: float) -> list[Tensor]:
    """The stage `padded` [..., H, W] with a value around the image, if the workload pads at all."""
    top, left, bottom, right = workload.attr_ints("pad")
    *planes, height, width = image.shape
    if not any((top, left, bottom, right)):
        return []

    def element(*at: Var) -> Expr:
        *plane, h, w = at
        inside = within(h, top, height, bottom) + within(w, left, width, right)
        return guarded(inside, image[*plane, shifted(h, top), shifted(w, left)], outside)

    names = ("n", "g", "ci") if len(planes) > 1 else ("c",)
    axes = dict(zip(names, planes, strict=True))
    return [
        compute("padded", {**axes, "h": height + top + bottom, "w": width + left + right}, element)
    ]


def _entry(operand: Tensor, z: Var) -> Expr:
    return z if operand.shape[0] > 1 else _ZERO
