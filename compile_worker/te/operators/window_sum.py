"""window_sum2d: the sum over a window as multiplications by one tile, then shift and clip."""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.rounding import rounded
from compile_worker.te.operators.window import padded, scaled
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def window_sum2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], sum, those of `rounded`, and the output.

    x [N, C, H, W, b, i], scale [o, i]: every pixel of a window is multiplied by the same tile, so
    the whole is a convolution of each block of channels with itself.
    """
    x, scale = inputs
    before = padded(workload, x)
    image = before[-1] if before else x
    wide = _sum(workload, image, scale)
    return [*before, wide, *rounded(workload, wide)]


def _sum(workload: Workload, image: Tensor, scale: Tensor) -> Tensor:
    n, c, height, width, batch, lanes = workload.outputs[0].shape
    kernel_h, kernel_w = workload.attr_ints("kernel")
    stride_h, stride_w = workload.attr_ints("stride")

    def element(n: Var, c: Var, h: Var, w: Var, b: Var, o: Var) -> Reduction:
        def product(kh: Var, kw: Var, i: Var) -> Expr:
            pixel = image[n, c, scaled(h, stride_h) + kh, scaled(w, stride_w) + kw, b, i]
            return widened(pixel) * widened(scale[o, i])

        return total(DType.INT32, {"kh": kernel_h, "kw": kernel_w, "i": lanes}, product)

    axes = {"n": n, "co": c, "h": height, "w": width, "b": batch, "o": lanes}
    return compute("sum", axes, element)
