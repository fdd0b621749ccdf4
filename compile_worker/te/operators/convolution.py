"""conv2d and dense: multiply, accumulate in int32, add bias, shift, clip, narrow to int8."""

from __future__ import annotations

from collections.abc import Sequence

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.groups import is_depthwise
from compile_worker.te.operators.requantize import plane_axes, requantized
from compile_worker.te.operators.window import padded, scaled
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def conv2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], conv and those of `requantized`.

    data [N, Ci, H, W, b, i], weight [Co, Ci, Kh, Kw, o, i], or by groups: [N, G, Ci, ...] and
    [G, Co, Ci, ...]. In planes: weight [..., Co, P, Ci, ...], data [N, P, ...], sums for each.
    """
    data, weight = inputs[:2]
    before = padded(workload, data)
    image = before[0] if before else data
    conv = _conv(workload, image, weight)
    return [*before, conv, *requantized(workload, conv, inputs)]


def dense(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages dot and those of `requantized`: data [N, [P], Ci, b, i], weight [Co, [P], Ci, ...]."""
    data, weight = inputs[:2]
    n, *_, ci, b, i = data.shape
    co, o = weight.shape[0], weight.shape[-2]

    def element(*at: Var) -> Reduction:
        n, *planes, co, b, o = at
        of_data, of_weight = _planes_of(workload, planes)
        return total(
            DType.INT32,
            {"ci": ci, "i": i},
            lambda ci, i: (
                widened(data[n, *of_data, ci, b, i]) * widened(weight[co, *of_weight, ci, o, i])
            ),
        )

    axes = {"n": n, **plane_axes(workload), "co": co, "b": b, "o": o}
    dot = compute("dot", axes, element)
    return [dot, *requantized(workload, dot, inputs)]


def _conv(workload: Workload, image: Tensor, weight: Tensor) -> Tensor:
    """Sums for [N, [P], [P], [G], Co, OH, OW, b, o].

    G is there if the groups are an axis of the tensors, a P if the data, and one if the weights are
    planes.
    """
    n, *outer, ci, _, _, b, i = image.shape
    group = outer[int(workload.data_planes > 1) :]
    co, kernel_h, kernel_w, o = (weight.shape[at] for at in (len(group), -4, -3, -2))
    planes = plane_axes(workload)
    out_h, out_w = workload.outputs[0].shape[-4:-2]
    stride_h, stride_w = workload.attr_ints("stride")
    dilation_h, dilation_w = workload.attr_ints("dilation")
    depthwise = is_depthwise(workload)

    def element(*at: Var) -> Reduction:
        n, *outer, co, h, w, b, o = at
        g = outer[len(planes) :]
        of_data, of_weight = _planes_of(workload, outer[: len(planes)])

        def product(ci: Var, kh: Var, kw: Var, i: Var) -> Expr:
            row = scaled(h, stride_h) + scaled(kh, dilation_h)
            column = scaled(w, stride_w) + scaled(kw, dilation_w)
            channels = co if depthwise else ci
            pixel = widened(image[n, *of_data, *g, channels, row, column, b, i])
            return pixel * widened(weight[*g, co, *of_weight, ci, kh, kw, o, i])

        window = {"ci": 1 if depthwise else ci, "kh": kernel_h, "kw": kernel_w, "i": i}
        return total(DType.INT32, window, product)

    blocks = {"g": group[0], "co": co} if group else {"co": co}
    return compute(
        "conv", {"n": n, **planes, **blocks, "h": out_h, "w": out_w, "b": b, "o": o}, element
    )


def _planes_of(workload: Workload, planes: Sequence[Var]) -> tuple[Sequence[Var], Sequence[Var]]:
    """The planes of data and of weights that sums are of, none where there is only one."""
    of_data = int(workload.data_planes > 1)
    return planes[:of_data], planes[of_data:]
