"""Along one axis of float32 [A, R, B]: reductions, softmax, normalization, term after term."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.dtype import DType
from tilefarm.real import LOWEST
from tilefarm.workload import Workload

from compile_worker.ir.expr import Add, Const, Expr, Max, Min, Mul, Var
from compile_worker.te.operators.real_words import applied, number, output
from compile_worker.te.tensor import Combine, Reduction, Tensor, compute

_KINDS: Final[Mapping[str, tuple[Combine, float]]] = {
    "sum": (Add, 0.0),
    "mean": (Add, 0.0),
    "prod": (Mul, 1.0),
    "max": (Max, LOWEST),
    "min": (Min, -LOWEST),
}
"""How values are combined, and what they are combined with first."""


def real_reduce(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stage all and the output [A, B]."""
    (x,) = inputs
    kind, count = workload.attr_str("kind"), number(x.shape[1])
    whole = _along(x, "all", kind, lambda a, r, b: x[a, r, b])

    def element(a: Var, b: Var) -> Expr:
        return whole[a, b] / count if kind == "mean" else whole[a, b]

    return [whole, output(workload, "a b", element)]


def real_softmax(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages top, power, total and the output."""
    (x,) = inputs
    top = _along(x, "top", "max", lambda a, r, b: x[a, r, b])
    power = _like(x, "power", lambda a, r, b: applied("exp", x[a, r, b] - top[a, b]))
    total = _along(x, "total", "sum", lambda a, r, b: power[a, r, b])
    return [
        top,
        power,
        total,
        output(workload, "a r b", lambda a, r, b: power[a, r, b] / total[a, b]),
    ]


def real_normalize(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [total, mean, away], squares, root and the output."""
    (x,) = inputs
    count, epsilon = number(x.shape[1]), workload.attr_float("epsilon")
    before: list[Tensor] = []
    away = x
    if workload.attr_int("centered"):
        total = _along(x, "total", "sum", lambda a, r, b: x[a, r, b])
        mean = _rows(x, "mean", lambda a, b: total[a, b] / count)
        away = _like(x, "away", lambda a, r, b: x[a, r, b] - mean[a, b])
        before = [total, mean, away]
    squares = _along(x, "squares", "sum", lambda a, r, b: away[a, r, b] * away[a, r, b])
    root = _rows(x, "root", lambda a, b: applied("sqrt", squares[a, b] / count + epsilon))
    out = output(workload, "a r b", lambda a, r, b: away[a, r, b] / root[a, b])
    return [*before, squares, root, out]


def _along(x: Tensor, name: str, kind: str, element: Callable[..., Expr]) -> Tensor:
    """A stage [A, B] that combines what `element` gives for every place of the middle axis."""
    combine, start = _KINDS[kind]
    a, r, b = x.shape

    def value(a: Var, b: Var) -> Reduction:
        first = Const(start, DType.FLOAT32)
        return Reduction(combine, first, {"r": r}, lambda r: element(a, r, b))

    return compute(name, {"a": a, "b": b}, value)


def _like(x: Tensor, name: str, element: Callable[..., Expr]) -> Tensor:
    return compute(name, dict(zip("arb", x.shape, strict=True)), element)


def _rows(x: Tensor, name: str, element: Callable[..., Expr]) -> Tensor:
    return compute(name, {"a": x.shape[0], "b": x.shape[2]}, element)
