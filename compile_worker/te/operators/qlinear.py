"""Convolutions of 8 bits as ONNX's QLinearConv defines them, by blocks of channels or one by one.

Sums are exact int32; what zero points of data and weights add to them is in the bias. Channels come
in quads, as the processor's dot products take them: weights are [..., o, 4]. `qlinear_results` says
what follows the sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Buffer, Cast, Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.qlinear_results import by_channel
from compile_worker.te.operators.window import pad_image, padded, scaled
from compile_worker.te.tensor import Reduction, Tensor, compute, total

QUAD: Final = 4
"""Products that one lane of a dot product sums."""

PAIR: Final = 2
"""Those of int16."""


def qlinear_conv2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded] or wide, conv and the output.

    data [N, Ci, H, W, 1, c], weight [Co, Ci, Kh, Kw, c/p, l, p], p = 4 or 2, or by groups: [N, G,
    Ci, ...] and [G, Co, Ci, ...]. Data of c = 1 have neighbours along the row, [Co, Ci, Kh, Kw/p,
    1, l, p]: an image of three channels is rows of W*3 bytes. Pairs are for instructions that
    multiply int16: `wide` is the padded image of int16.
    """
    data, weight = inputs[:2]
    *_, blocks, kernel_h, kernel_w, groups, _, together = weight.shape
    before = (
        [wide(workload, data, workload.attr_ints("pad"))]
        if together == PAIR
        else _padded(workload, data)
    )
    image = before[0] if before else data
    along_rows = data.shape[-1] == 1

    def element(*at: Var) -> Reduction:
        n, *g, co, h, w, b, o = at

        def product(ci: Var, kh: Var, kw: Var, q: Var, j: Var) -> Expr:
            tap, channel = (kw * together + j, q) if along_rows else (kw, q * together + j)
            row, column = _pixel(workload, h, w, kh, tap)
            pixel = widened(image[n, *g, ci, row, column, b, channel])
            return pixel * widened(weight[*g, co, ci, kh, kw, q, o, j])

        over = {"ci": blocks, "kh": kernel_h, "kw": kernel_w, "q": groups, "j": together}
        return total(DType.INT32, over, product)

    conv = compute("conv", _axes(workload), element)
    return [*before, conv, by_channel(conv, inputs, workload)]


def qlinear_depthwise2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], quads, conv and the output: each channel has a kernel of its own.

    data [N, C, H, W, 1, c], weight [C, Kh, Kw/4, c, 4]; `quads` has four neighbouring taps of
    every channel side by side.
    """
    data, weight = inputs[:2]
    before = _padded(workload, data)
    image = before[0] if before else data
    _, kernel_h, kernel_w, _, _ = weight.shape
    n, blocks, height, _, batch, lanes = image.shape
    step, apart = workload.attr_ints("stride")[1], workload.attr_ints("dilation")[1]
    out_w = workload.outputs[0].shape[3]

    def quad(*at: Var) -> Expr:
        *outer, h, kw, w, b, o, j = at
        return image[*outer, h, scaled(w, step) + scaled(kw * QUAD + j, apart), b, o]

    axes = {"n": n, "co": blocks, "h": height, "kw": kernel_w, "w": out_w, "b": batch, "o": lanes}
    quads = compute("quads", {**axes, "j": QUAD}, quad)

    def element(n: Var, co: Var, h: Var, w: Var, b: Var, o: Var) -> Reduction:
        def product(kh: Var, kw: Var, j: Var) -> Expr:
            row, _ = _pixel(workload, h, w, kh, kw)
            return widened(quads[n, co, row, kw, w, b, o, j]) * widened(weight[co, kh, kw, o, j])

        return total(DType.INT32, {"kh": kernel_h, "kw": kernel_w, "j": QUAD}, product)

    conv = compute("conv", _axes(workload), element)
    return [*before, quads, conv, by_channel(conv, inputs, workload)]


def _axes(workload: Workload) -> dict[str, int]:
    """[N, Co, H, W, 1, l], or with an axis of groups behind the first."""
    n, *g, co, h, w, b, o = workload.outputs[0].shape
    return {"n": n, **dict(zip("g", g, strict=False)), "co": co, "h": h, "w": w, "b": b, "o": o}


def _padded(workload: Workload, data: Tensor) -> list[Tensor]:
    return padded(workload, data, workload.attr_int("fill"))


def wide(workload: Workload, data: Tensor, pad: tuple[int, ...]) -> Tensor:
    """The padded image, of int16."""
    image = pad_image("wide", data, pad, workload.attr_int("fill"))
    stage = image.stage
    assert stage is not None
    buffer = Buffer("wide", image.shape, DType.INT16, image.buffer.scope)
    return Tensor(buffer, replace(stage, value=Cast(DType.INT16, stage.value)))


def _pixel(workload: Workload, h: Var, w: Var, kh: Expr, kw: Expr) -> tuple[Expr, Expr]:
    """Row and column of a padded image under a tap of a window."""
    down, across = workload.attr_ints("stride")
    below, beside = workload.attr_ints("dilation")
    return scaled(h, down) + scaled(kh, below), scaled(w, across) + scaled(kw, beside)
