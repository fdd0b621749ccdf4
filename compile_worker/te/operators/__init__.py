"""The operator library: how each operator of a workload is computed, one file per family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.ir.annotations import BATCH, BLOCK, OPERATOR
from compile_worker.ir.func import Func
from compile_worker.te.nest import nest
from compile_worker.te.operators.arithmetic import add, affine
from compile_worker.te.operators.borders import border, bordered
from compile_worker.te.operators.convolution import conv2d, dense
from compile_worker.te.operators.dynamic_grids import (
    dynamic_bias,
    dynamic_grid,
    dynamic_quantize_linear,
)
from compile_worker.te.operators.groups import by_group
from compile_worker.te.operators.im2col import quantize_windows
from compile_worker.te.operators.layout import dequantize, quantize, relayout
from compile_worker.te.operators.matmul import matmul
from compile_worker.te.operators.moves import as_strided, concat, gather
from compile_worker.te.operators.pooling import avg_pool2d, max_pool2d
from compile_worker.te.operators.qlinear import qlinear_conv2d, qlinear_depthwise2d
from compile_worker.te.operators.qlinear_elements import (
    dequantize_linear,
    qlinear_zip,
    quantize_linear,
)
from compile_worker.te.operators.qlinear_matmul import qlinear_matmul
from compile_worker.te.operators.qlinear_pooling import qlinear_avg_pool2d
from compile_worker.te.operators.qlinear_transposed import by_phase, qlinear_conv2d_transpose
from compile_worker.te.operators.real_along import real_normalize, real_reduce, real_softmax
from compile_worker.te.operators.real_elements import real_map, real_take, real_zip
from compile_worker.te.operators.real_layers import real_conv2d, real_matmul, real_pool2d
from compile_worker.te.operators.requantize import check_planes
from compile_worker.te.operators.residual import scaled_add
from compile_worker.te.operators.scripts import scripted
from compile_worker.te.operators.softmax import softmax
from compile_worker.te.operators.tables import lookup, product
from compile_worker.te.operators.transposed import conv2d_transpose
from compile_worker.te.operators.window_max import window_max2d
from compile_worker.te.operators.window_sum import window_sum2d
from compile_worker.te.operators.winograd import by_tile, qlinear_winograd2d
from compile_worker.te.tensor import Tensor, placeholder
from compile_worker.te.work import Work

Stages: TypeAlias = Sequence[Tensor | Work]

STAGES: Final[Mapping[str, Callable[[Workload, list[Tensor]], Stages]]] = {
    "conv2d": conv2d,
    "dense": dense,
    "conv2d_transpose": conv2d_transpose,
    "matmul": matmul,
    "scaled_add": scaled_add,
    "window_max2d": window_max2d,
    "window_sum2d": window_sum2d,
    "quantize": quantize,
    "quantize_windows": quantize_windows,
    "dequantize": dequantize,
    "add": add,
    "affine": affine,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "relayout": relayout,
    "softmax": softmax,
    "lookup": lookup,
    "product": product,
    "border": border,
    "as_strided": as_strided,
    "gather": gather,
    "concat": concat,
    "script": scripted,
    "qlinear_conv2d": qlinear_conv2d,
    "qlinear_depthwise2d": qlinear_depthwise2d,
    "qlinear_conv2d_transpose": qlinear_conv2d_transpose,
    "qlinear_matmul": qlinear_matmul,
    "qlinear_avg_pool2d": qlinear_avg_pool2d,
    "qlinear_zip": qlinear_zip,
    "quantize_linear": quantize_linear,
    "dequantize_linear": dequantize_linear,
    "dynamic_grid": dynamic_grid,
    "dynamic_quantize_linear": dynamic_quantize_linear,
    "dynamic_bias": dynamic_bias,
    "qlinear_winograd2d": qlinear_winograd2d,
    "real_map": real_map,
    "real_zip": real_zip,
    "real_take": real_take,
    "real_reduce": real_reduce,
    "real_normalize": real_normalize,
    "real_softmax": real_softmax,
    "real_matmul": real_matmul,
    "real_conv2d": real_conv2d,
    "real_pool2d": real_pool2d,
}
"""Operator name -> its stages in order, the last one being the output."""


def expressions_of(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The stages of an operator that is made of tensor expressions alone.

    Raises:
        TypeError: it is made of other work as well.
    """
    stages = STAGES[workload.operator](workload, inputs)
    expressions = [each for each in stages if isinstance(each, Tensor)]
    if len(expressions) < len(stages):
        raise TypeError(f"{workload.operator} is not made of tensor expressions alone")
    return expressions


def nest_of(workload: Workload, target: Target) -> Func:
    """The loop nest of a workload: parameters are its tensors, inputs first.

    The function's attributes name the operator and the target's block sizes, which say how many
    values one hardware element holds. A parameter may have another shape than its tensor, with the
    same elements in the same order: groups, phases and tiles are axes of their own.

    Raises:
        ValueError: tensors and attributes do not fit together.
    """
    return _nest_of(workload, workload.to_json(), target.lanes.batch, target.lanes.block)


@lru_cache(maxsize=64)
def _nest_of(workload: Workload, text: str, batch: int, block: int) -> Func:
    """Remembered, for the candidates of a search begin with the same few.

    The text tells workloads apart that Python calls equal, such as those with 1 and 1.0 in them.
    """
    del text
    check_planes(workload)
    is_filled = workload.operator == "border"
    seen = by_tile(by_phase(by_group(workload if is_filled else workload.unbordered)))
    inputs = [placeholder(spec) for spec in seen.inputs]
    stages = STAGES[workload.operator](seen, inputs)
    if any(workload.border) and not is_filled:
        stages = bordered(workload, stages)
    attrs = (OPERATOR(workload.operator), BATCH(batch), BLOCK(block))
    return nest(workload.name, inputs, stages, attrs)
