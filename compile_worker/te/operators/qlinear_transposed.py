"""qlinear_conv2d_transpose: a convolution of 8 bits for each phase of the output's pixels.

    out[h*y + p, w*x + q] = sum over ci, kh, kw of image[ci, y + kh, x + kw] * weight[p, q, kh, kw]

As in `transposed`, phases are axes of their own: the output [N, Co, OH, OW, 1, l] is seen as [N,
Co, OH/h, h, OW/w, w, 1, l], the same bytes.
"""

from __future__ import annotations

from dataclasses import replace

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.qlinear_results import by_channel
from compile_worker.te.operators.window import padded
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def qlinear_conv2d_transpose(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], conv [N, Co, y, p, x, q, 1, l] and the output.

    data [N, Ci, H, W, 1, c], weight [Co, h, w, Ci, Kh, Kw, c/p, l, p], p = 4 or 8.
    """
    data, weight = inputs[:2]
    before = padded(workload, data, workload.attr_int("fill"))
    image = before[0] if before else data
    _, down, across, blocks, kernel_h, kernel_w, groups, _, together = weight.shape
    n, co, out_h, out_w, b, o = workload.outputs[0].shape

    def element(n: Var, co: Var, y: Var, p: Var, x: Var, q: Var, b: Var, o: Var) -> Reduction:
        def product(ci: Var, kh: Var, kw: Var, i: Var, j: Var) -> Expr:
            pixel = widened(image[n, ci, y + kh, x + kw, b, i * together + j])
            return pixel * widened(weight[co, p, q, ci, kh, kw, i, o, j])

        over = {"ci": blocks, "kh": kernel_h, "kw": kernel_w, "i": groups, "j": together}
        return total(DType.INT32, over, product)

    rows = {"h": out_h // down, "p": down}
    columns = {"w": out_w // across, "q": across}
    axes = {"n": n, "co": co, **rows, **columns, "b": b, "o": o}
    conv = compute("conv", axes, element)
    return [*before, conv, by_channel(conv, inputs, workload)]


def by_phase(workload: Workload) -> Workload:
    """The workload whose operand `other` has axes of phases, as the sums do."""
    other = workload.tensor("other")
    if workload.operator != "qlinear_conv2d_transpose" or other is None:
        return workload
    down, across = workload.attr_ints("stride")
    n, co, height, width, *lanes = other.shape
    seen = replace(other, shape=(n, co, height // down, down, width // across, across, *lanes))
    inputs = tuple(seen if each is other else each for each in workload.inputs)
    return replace(workload, inputs=inputs)
