"""Attributes of a processor's kernels in ONNX's own arithmetic."""

from __future__ import annotations

import numpy as np
from tilefarm.dtype import DType
from tilefarm.workload import AttrValue

from driver.network.graph.grid import Grid
from driver.network.graph.ir import Add
from driver.network.integer.qlinear import QLinearBinary, Requantization
from driver.network.integer.qlinear_arithmetic import quantized


def binary_attrs(op: QLinearBinary) -> dict[str, AttrValue]:
    """Attributes of `qlinear_zip`; clips of reals are of integers: rounding is monotone."""
    lo, hi = op.lo, op.hi
    if isinstance(op.op, Add):
        function = "sub" if op.op.subtracts else "add"
        ends = quantized(np.array([op.op.lo, op.op.hi], np.float32), op.to)
        lo, hi = max(lo, int(ends[0])), min(hi, int(ends[1]))
    else:
        function = "div" if op.op.divides else "mul"
    return {
        "function": function,
        **grid_attrs("a_", op.a),
        **grid_attrs("b_", op.b),
        **grid_attrs("", op.to),
        "lo": lo,
        "hi": hi,
    }


def fused_attrs(op: QLinearBinary) -> dict[str, AttrValue]:
    """The same, behind a layer's own: what the result is of has names of its own."""
    own = {"scale", "zero", "lo", "hi"}
    return {
        f"to_{name}" if name in own else name: value for name, value in binary_attrs(op).items()
    }


def grid_attrs(prefix: str, grid: Grid) -> dict[str, AttrValue]:
    """Attributes of a grid."""
    return {f"{prefix}scale": float(grid.scale), f"{prefix}zero": grid.zero}


def requantization_attrs(to: Requantization) -> dict[str, AttrValue]:
    """Attributes of what becomes of sums, but for the scale; of reals there are none."""
    if to.dtype is DType.FLOAT32:
        return {}
    return {"zero": to.zero, "lo": to.lo, "hi": to.hi}
