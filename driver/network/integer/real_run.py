"""What a float operator of the integer network makes: its kernel calls, run in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec, Workload

from driver.network.graph.custom_run import run_custom
from driver.network.graph.ir import Custom, FloatArray, Operator
from driver.network.graph.shapes import result_shape
from driver.network.integer.cpu_kernels import CPU_KERNELS
from driver.network.integer.real_calls import RealCall, real_calls_of


def run_real(op: Operator, operands: Sequence[FloatArray]) -> FloatArray:
    """The result of an operator on float32 operands, bit for bit what its kernels compute."""
    if isinstance(op, Custom):
        return run_custom(op, operands)
    shapes = [x.shape for x in operands]
    values: list[NDArray[Any]] = list(operands)
    for call in real_calls_of(op, shapes):
        arrays = {
            name: values[each.source].reshape(each.shape) for name, each in call.operands.items()
        }
        kernel = CPU_KERNELS[call.operator]
        values.append(kernel(real_workload(call), {**arrays, **call.constants}))
    return np.asarray(values[-1], np.float32).reshape(result_shape(op, shapes))


def real_workload(call: RealCall) -> Workload:
    """What a kernel call computes, as the compiler is told."""
    data = [TensorSpec(n, each.shape, DType.FLOAT32) for n, each in call.operands.items()]
    fixed = [
        TensorSpec(name, values.shape, DType(str(values.dtype)))
        for name, values in call.constants.items()
    ]
    out = TensorSpec("out", call.shape, DType.FLOAT32)
    return Workload(call.operator, (*data, *fixed), (out,), tuple(call.attrs.items()))
