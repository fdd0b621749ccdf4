"""The operator library: how each operator of a workload is computed, one file per family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.ir.func import Func
from compile_worker.te.nest import nest
from compile_worker.te.operators.arithmetic import add, affine
from compile_worker.te.operators.convolution import conv2d, dense
from compile_worker.te.operators.layout import dequantize, quantize, relayout
from compile_worker.te.operators.pooling import avg_pool2d, max_pool2d
from compile_worker.te.operators.softmax import softmax
from compile_worker.te.tensor import Tensor, placeholder

Stages: TypeAlias = list[Tensor]

STAGES: Final[Mapping[str, Callable[[Workload, list[Tensor]], Stages]]] = {
    "conv2d": conv2d,
    "dense": dense,
    "quantize": quantize,
    "dequantize": dequantize,
    "add": add,
    "affine": affine,
    "max_pool2d": max_pool2d,
    "avg_pool2d": avg_pool2d,
    "relayout": relayout,
    "softmax": softmax,
}
"""Operator name -> its stages in order, the last one being the output."""


def nest_of(workload: Workload, target: Target) -> Func:
    """The loop nest of a workload: parameters are its tensors, inputs first.

    The function's attributes name the operator and the target's block sizes, which say how many
    values one hardware element holds.
    """
    inputs = [placeholder(spec) for spec in workload.inputs]
    stages = STAGES[workload.operator](workload, inputs)
    attrs = (
        ("operator", workload.operator),
        ("batch", target.vta.batch),
        ("block", target.vta.block),
    )
    return nest(workload.name, inputs, stages, attrs)
