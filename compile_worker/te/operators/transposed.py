"""conv2d_transpose: a convolution for each phase of the output's pixels.

    out[h*y + p, w*x + q] = sum over ci, kh, kw of image[ci, y + kh, x + kw] * weight[p, q, kh, kw]

Phases are axes of their own, so every index stays a sum of loop variables: the output
[N, Co, OH, OW, b, c] is seen as [N, Co, OH/h, h, OW/w, w, b, c], the same bytes.
"""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.requantize import requantized
from compile_worker.te.operators.window import padded
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def conv2d_transpose(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], conv [N, Co, y, p, x, q, b, o] and those of `requantized`.

    data [N, Ci, H, W, b, i], weight [Co, h, w, Ci, Kh, Kw, o, i].
    """
    data, weight = inputs[:2]
    before = padded(workload, data)
    conv = _conv(workload, before[0] if before else data, weight)
    return [*before, conv, *requantized(workload, conv, inputs)]


def _conv(workload: Workload, image: Tensor, weight: Tensor) -> Tensor:
    n, ci, _, _, b, i = image.shape
    co, down, across, _, kernel_h, kernel_w, o, _ = weight.shape
    out_h, out_w = workload.outputs[0].shape[2:4]

    def element(n: Var, co: Var, y: Var, p: Var, x: Var, q: Var, b: Var, o: Var) -> Reduction:
        def product(ci: Var, kh: Var, kw: Var, i: Var) -> Expr:
            pixel = widened(image[n, ci, y + kh, x + kw, b, i])
            return pixel * widened(weight[co, p, q, ci, kh, kw, o, i])

        window = {"ci": ci, "kh": kernel_h, "kw": kernel_w, "i": i}
        return total(DType.INT32, window, product)

    rows = {"h": out_h // down, "p": down}
    columns = {"w": out_w // across, "q": across}
    return compute("conv", {"n": n, "co": co, **rows, **columns, "b": b, "o": o}, element)
