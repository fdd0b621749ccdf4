"""conv2d and dense: multiply, accumulate in int32, add bias, shift, clip, narrow to int8."""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import channelwise, elementwise, narrowed, widened
from compile_worker.te.operators.window import padded, scaled
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def conv2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], conv, biased, shifted, lower, upper and the output of a convolution.

    data [N, Ci, H, W, b, i], weight [Co, Ci, Kh, Kw, o, i], bias and shift [Co, b, o].
    """
    data, weight, bias, shift = inputs
    before = padded(workload, data)
    image = before[0] if before else data
    conv = _conv(workload, image, weight)
    return [*before, conv, *_requantized(workload, conv, bias, shift)]


def dense(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages dot, biased, shifted, lower, upper and the output of a fully connected layer.

    data [N, Ci, b, i], weight [Co, Ci, o, i], bias and shift [Co, b, o].
    """
    data, weight, bias, shift = inputs
    n, ci, b, i = data.shape
    co, _, o, _ = weight.shape

    def element(n: Var, co: Var, b: Var, o: Var) -> Reduction:
        return total(
            DType.INT32,
            {"ci": ci, "i": i},
            lambda ci, i: widened(data[n, ci, b, i]) * widened(weight[co, ci, o, i]),
        )

    dot = compute("dot", {"n": n, "co": co, "b": b, "o": o}, element)
    return [dot, *_requantized(workload, dot, bias, shift)]


def _conv(workload: Workload, image: Tensor, weight: Tensor) -> Tensor:
    n, ci, _, _, b, i = image.shape
    co, _, kernel_h, kernel_w, o, _ = weight.shape
    out_h, out_w = workload.outputs[0].shape[2:4]
    stride_h, stride_w = workload.attr_ints("stride")
    dilation_h, dilation_w = workload.attr_ints("dilation")

    def element(n: Var, co: Var, h: Var, w: Var, b: Var, o: Var) -> Reduction:
        def product(ci: Var, kh: Var, kw: Var, i: Var) -> Expr:
            row = scaled(h, stride_h) + scaled(kh, dilation_h)
            column = scaled(w, stride_w) + scaled(kw, dilation_w)
            pixel = widened(image[n, ci, row, column, b, i])
            return pixel * widened(weight[co, ci, kh, kw, o, i])

        window = {"ci": ci, "kh": kernel_h, "kw": kernel_w, "i": i}
        return total(DType.INT32, window, product)

    return compute("conv", {"n": n, "co": co, "h": out_h, "w": out_w, "b": b, "o": o}, element)


def _requantized(workload: Workload, wide: Tensor, bias: Tensor, shift: Tensor) -> list[Tensor]:
    biased = elementwise("biased", wide, lambda *at: wide[at] + bias[channelwise(at)])
    down = elementwise("shifted", wide, lambda *at: biased[at] >> shift[channelwise(at)])
    name = workload.outputs[0].name
    low, high = workload.attr_int("lo"), workload.attr_int("hi")
    return [biased, down, *narrowed(name, down, low, high)]
