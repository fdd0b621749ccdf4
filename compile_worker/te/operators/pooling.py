"""Maximum and average over sliding windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import elementwise, narrowed, shifted_down, widened
from compile_worker.te.operators.window import padded, scaled
from compile_worker.te.tensor import Reduction, Tensor, compute, largest, total

_LEAST: Final = {DType.INT8: -128, DType.UINT8: 0}
"""Of a type: what lies outside of an image never is the maximum."""


def max_pool2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded] and the output, which is the maximum itself. x [N, C, H, W, b, c]."""
    before = padded(workload, inputs[0], outside=_LEAST[inputs[0].dtype])
    image = before[-1] if before else inputs[0]
    spec = workload.outputs[0]
    out = pooled(spec.name, workload, lambda *at: image[at], largest, spec.dtype, scope="dram")
    return [*before, out]


def avg_pool2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], sum, scaled, lower, upper and the output. mul [OH, OW] is int32."""
    x, mul = inputs
    before = padded(workload, x)
    image = before[-1] if before else x
    window = pooled("sum", workload, lambda *at: widened(image[at]), total, DType.INT32)
    shift = workload.attr_int("shift")

    def value(*at: Var) -> Expr:
        return shifted_down(window[at] * mul[at[2], at[3]], shift)

    out = workload.outputs[0].name
    mean = elementwise("scaled", window, value)
    return [
        *before,
        window,
        mean,
        *narrowed(out, mean, workload.attr_int("lo"), workload.attr_int("hi")),
    ]


def pooled(
    name: str,
    workload: Workload,
    image: Callable[..., Expr],
    reduce: Callable[..., Reduction],
    dtype: DType,
    *,
    scope: str = "local",
) -> Tensor:
    """The stage that combines a window of `image` for each output element."""
    n, c, height, width, batch, lane = workload.outputs[0].shape
    kernel_h, kernel_w = workload.attr_ints("kernel")
    stride_h, stride_w = workload.attr_ints("stride")

    def element(n: Var, c: Var, h: Var, w: Var, b: Var, o: Var) -> Reduction:
        def pixel(kh: Var, kw: Var) -> Expr:
            return image(n, c, scaled(h, stride_h) + kh, scaled(w, stride_w) + kw, b, o)

        return reduce(dtype, {"kh": kernel_h, "kw": kernel_w}, pixel)

    axes = {"n": n, "co": c, "h": height, "w": width, "b": batch, "o": lane}
    return compute(name, axes, element, scope=scope)
