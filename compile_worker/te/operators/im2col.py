"""quantize_windows: the windows of a plain image side by side in channels, quantized.

A first convolution reads three channels, and a vector has sixteen lanes. With the whole window in
the channels it is a convolution of kernel 1 that fills the lanes: 7x7 windows of three channels
are 10 blocks of input instead of 49 taps of one block each.
"""

from __future__ import annotations

from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Const, Expr, Var
from compile_worker.te.operators.elementwise import data_axes
from compile_worker.te.operators.layout import logical_index, present, quantized
from compile_worker.te.operators.window import guarded, scaled, shifted, within
from compile_worker.te.tensor import Tensor, compute


def quantize_windows(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages pixels, windows and the output.

    x [N, C, H, W] is float32. Every pixel is quantized once, however many windows it is in: pixels
    is int8 [N, H, W, C] with the padding around, and windows [N, OH, OW, Kh, Kw, C] copies of it.
    """
    (x,) = inputs
    spec = workload.outputs[0]
    images, channels = x.shape[:2]
    kernel_h, kernel_w = workload.attr_ints("kernel")
    pixels = _pixels(workload, x)
    windows = _windows(workload, pixels)

    def element(*at: Var) -> Expr:
        n, channel, h, w = logical_index(at, spec.shape)
        tap, ci = (channel // channels, channel % channels) if channels > 1 else (channel, _ZERO)
        kh, kw = (tap // kernel_w, tap % kernel_w) if kernel_w > 1 else (tap, _ZERO)
        inside = present((n, channel), (images, kernel_h * kernel_w * channels), spec.shape)
        return guarded(inside, windows[n, h, w, kh, kw, ci], 0)

    out = compute(spec.name, data_axes(spec.shape), element, scope="dram")
    return [pixels, windows, out]


_ZERO = Const(0, INDEX)


def _pixels(workload: Workload, x: Tensor) -> Tensor:
    n, c, height, width = x.shape
    top, left, bottom, right = workload.attr_ints("pad")

    def element(n: Var, h: Var, w: Var, c: Var) -> Expr:
        inside = within(h, top, height, bottom) + within(w, left, width, right)
        pixel = quantized(x[n, c, shifted(h, top), shifted(w, left)], workload)
        return guarded(inside, pixel, int(workload.fill))

    axes = {"n": n, "h": height + top + bottom, "w": width + left + right, "c": c}
    return compute("pixels", axes, element)


def _windows(workload: Workload, pixels: Tensor) -> Tensor:
    out_h, out_w = workload.outputs[0].shape[2:4]
    kernel_h, kernel_w = workload.attr_ints("kernel")
    stride_h, stride_w = workload.attr_ints("stride")
    dilation_h, dilation_w = workload.attr_ints("dilation")

    def element(n: Var, h: Var, w: Var, kh: Var, kw: Var, c: Var) -> Expr:
        row = scaled(h, stride_h) + scaled(kh, dilation_h)
        return pixels[n, row, scaled(w, stride_w) + scaled(kw, dilation_w), c]

    axes = {"n": pixels.shape[0], "h": out_h, "w": out_w, "kh": kernel_h, "kw": kernel_w}
    return compute("windows", {**axes, "c": pixels.shape[3]}, element)
