"""Convolutions of 8 bits as ONNX's QLinearConv defines them, by blocks of channels or one by one.

Sums are exact int32; what zero points of data add to them is in the bias, weights are less theirs.
Channels come as the processor's dot products take them: quads of int8, weights [..., o, 4], or
pairs of int8 or int16, [..., o, 2]. `qlinear_results` says what follows the sums.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Buffer, Cast, Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.qlinear_results import by_channel
from compile_worker.te.operators.window import pad_image, padded, scaled, under_tap
from compile_worker.te.tensor import Reduction, Tensor, compute, total

QUAD: Final = 4
"""Products that one lane of a dot product sums."""

PAIR: Final = 2
"""Those of int16."""


def qlinear_conv2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded] or wide, conv, [zeros] and the output.

    data [N, Ci, H, W, 1, c], weight [Co, Ci, Kh, Kw, c/p, l, p], p = 8, 4 or 2, or by groups: [N,
    G, Ci, ...] and [G, Co, Ci, ...]. Data of c = 1 have neighbours along the row, [Co, Ci, Kh,
    Kw/p, 1, l, p]: an image of three channels is rows of W*3 bytes. Pairs are for instructions that
    multiply int16: `wide` is the padded image of int16. Where weights have a zero point [l, p],
    `zeros` are what it adds to the sums: the same for all blocks of channels.
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
            row, column = under_tap(workload, h, w, kh, tap)
            pixel = widened(image[n, *g, ci, row, column, b, channel])
            return pixel * widened(weight[*g, co, ci, kh, kw, q, o, j])

        over = {"ci": blocks, "kh": kernel_h, "kw": kernel_w, "q": groups, "j": together}
        return total(DType.INT32, over, product)

    conv = compute("conv", _axes(workload), element)
    zero = next((each for each in inputs if each.buffer.name == "weight_zero"), None)
    if zero is None:
        return [*before, conv, by_channel(conv, inputs, workload)]

    def zeros_under(*at: Var) -> Reduction:
        n, *g, h, w, b, o = at

        def product(ci: Var, kh: Var, kw: Var, q: Var, j: Var) -> Expr:
            row, column = under_tap(workload, h, w, kh, kw)
            pixel = widened(image[n, *g, ci, row, column, b, q * together + j])
            return pixel * widened(zero[o, j])

        over = {"ci": blocks, "kh": kernel_h, "kw": kernel_w, "q": groups, "j": together}
        return total(DType.INT32, over, product)

    axes = {name: extent for name, extent in _axes(workload).items() if name != "co"}
    zeros = compute("zeros", axes, zeros_under)
    return [*before, conv, zeros, by_channel(conv, inputs, workload, zeros)]


def qlinear_depthwise2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], taps, conv and the output: each channel has a kernel of its own.

    data [N, C, H, W, 1, c], weight [C, Kh, Kw/p, c, p], p = 4, or 2 of int16; or planes of int8
    that add up to it, [C, Kh, Kw/4, P, c, 4]. `taps` has so many pixels that a row of the kernel
    sees side by side, for every channel, from every column on which such a part of the kernel
    begins.
    """
    data, weight = inputs[:2]
    before = _padded(workload, data)
    image = before[0] if before else data
    _, kernel_h, kernel_w, *planes, _, together = weight.shape
    n, blocks, height, _, batch, lanes = image.shape
    apart = workload.attr_ints("dilation")[1]
    step, (across, further) = taps_apart(workload)

    def tap(*at: Var) -> Expr:
        *outer, w, b, o, j = at
        pixel = image[*outer, scaled(w, step) + scaled(j, apart), b, o]
        return Cast(DType.INT16, pixel) if together == PAIR else pixel

    columns = (workload.outputs[0].shape[3] - 1) * across + (kernel_w - 1) * further + 1
    axes = {"n": n, "co": blocks, "h": height, "w": columns, "b": batch, "o": lanes}
    taps = compute("taps", {**axes, "j": together}, tap)

    def element(n: Var, co: Var, h: Var, w: Var, b: Var, o: Var) -> Reduction:
        def product(kh: Var, kw: Var, *rest: Var) -> Expr:
            *plane, j = rest
            row, _ = under_tap(workload, h, w, kh, kw)
            column = scaled(w, across) + scaled(kw, further)
            tap = widened(taps[n, co, row, column, b, o, j])
            return tap * widened(weight[co, kh, kw, *plane, o, j])

        over = {"kh": kernel_h, "kw": kernel_w, **dict(zip("p", planes, strict=False))}
        return total(DType.INT32, {**over, "j": together}, product)

    conv = compute("conv", _axes(workload), element)
    return [*before, taps, conv, by_channel(conv, inputs, workload)]


def taps_apart(workload: Workload) -> tuple[int, tuple[int, int]]:
    """How far `taps` of a depthwise layer are apart.

    Pixels from one to the next; and how many of them from a pixel of the output, and from a part
    of a row of the kernel, to the next.
    """
    stride, dilation = workload.attr_ints("stride")[1], workload.attr_ints("dilation")[1]
    part = workload.inputs[1].shape[-1] * dilation
    step = gcd(stride, part)
    return step, (stride // step, part // step)


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
