"""What the operators on float32 share: functions, two values combined, bounds, the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Add, Call, Const, Div, Expr, Lt, Mul, Select, Sub
from compile_worker.te.extremes import maximum, minimum
from compile_worker.te.tensor import Tensor, compute


def number(value: float) -> Const:
    """A literal."""
    return Const(float(value), DType.FLOAT32)


def applied(function: str, x: Expr, parameters: Sequence[float] = ()) -> Expr:
    """A function of `tilefarm.real.FUNCTIONS` of an expression."""
    return Call(function, (x, *map(number, parameters)), DType.FLOAT32)


def _slope(a: Expr, b: Expr) -> Expr:
    return Select(Lt(a, number(0)), a * b, a)


COMBINED: Final[Mapping[str, Callable[[Expr, Expr], Expr]]] = {
    "add": Add,
    "sub": Sub,
    "mul": Mul,
    "div": Div,
    "max": maximum,
    "min": minimum,
    "slope": _slope,
}
"""Those of `tilefarm.real.COMBINATIONS`, of two expressions."""


def bounded(workload: Workload, value: Expr) -> Expr:
    """min(max(value, lo), hi), of what the workload has of these; NaN for NaN."""
    attrs = dict(workload.attrs)
    if "lo" in attrs:
        value = maximum(number(workload.attr_float("lo")), value)
    if "hi" in attrs:
        value = minimum(number(workload.attr_float("hi")), value)
    return value


def output(workload: Workload, names: str, element: Callable[..., Expr]) -> Tensor:
    """The output, whose axes have the names, separated by spaces."""
    spec = workload.outputs[0]
    axes = dict(zip(names.split(), spec.shape, strict=True))
    return compute(spec.name, axes, lambda *at: bounded(workload, element(*at)), scope="dram")
