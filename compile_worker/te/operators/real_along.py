"""Along one axis of float32 [A, R, B]: reductions, softmax, normalization.

Terms are combined one after the other; where B is 1, some neighbours side by side, so that vectors
can, and then these (`tilefarm.real.sums_of_neighbours`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.dtype import DType
from tilefarm.real import sums_of_neighbours
from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Add, Const, Expr, Lt, Max, Mul, Select, Var
from compile_worker.te.extremes import maximum, minimum
from compile_worker.te.operators.real_words import applied, number, output
from compile_worker.te.tensor import Combine, Reduction, Tensor, compute

_KINDS: Final[Mapping[str, tuple[Combine, float]]] = {
    "sum": (Add, 0.0),
    "mean": (Add, 0.0),
    "prod": (Mul, 1.0),
    "max": (maximum, -math.inf),
    "min": (minimum, math.inf),
    "top": (Max, -math.inf),
}
"""How values are combined, and what they are combined with first.

Of `top` NaN is not kept: where it is taken away, NaN makes a sum NaN that all results depend on.
"""


def real_reduce(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages all and the output [A, B]."""
    (x,) = inputs
    kind, count = workload.attr_str("kind"), number(x.shape[1])
    whole = _along(x, "all", kind, lambda a, r, b: x[a, r, b])

    def element(a: Var, b: Var) -> Expr:
        return whole[-1][a, b] / count if kind == "mean" else whole[-1][a, b]

    return [*whole, output(workload, "a b", element)]


def real_softmax(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages top, power, total, share and the output; share is subtracted with attr log = 1."""
    (x,) = inputs
    top = _along(x, "top", "top", lambda a, r, b: x[a, r, b])
    power = _like(x, "power", lambda a, r, b: applied("exp", x[a, r, b] - top[-1][a, b]))
    total = _along(x, "total", "sum", lambda a, r, b: power[a, r, b])
    if dict(workload.attrs).get("log"):
        share = _rows(x, "share", lambda a, b: applied("log", total[-1][a, b]))

        def element(a: Var, r: Var, b: Var) -> Expr:
            return x[a, r, b] - top[-1][a, b] - share[a, b]

    else:
        share = _rows(x, "share", lambda a, b: number(1) / total[-1][a, b])

        def element(a: Var, r: Var, b: Var) -> Expr:
            return power[a, r, b] * share[a, b]

    out = output(workload, "a r b", element)
    return [*top, power, *total, share, out]


def real_normalize(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [total, mean, away], squares, share and the output."""
    (x,) = inputs
    count, epsilon = number(x.shape[1]), workload.attr_float("epsilon")
    before: list[Tensor] = []
    away = x
    if workload.attr_int("centered"):
        total = _along(x, "total", "sum", lambda a, r, b: x[a, r, b])
        mean = _rows(x, "mean", lambda a, b: total[-1][a, b] / count)
        away = _like(x, "away", lambda a, r, b: x[a, r, b] - mean[a, b])
        before = [*total, mean, away]
    squares = _along(x, "squares", "sum", lambda a, r, b: away[a, r, b] * away[a, r, b])

    def inverse(a: Var, b: Var) -> Expr:
        return number(1) / applied("sqrt", squares[-1][a, b] / count + epsilon)

    share = _rows(x, "share", inverse)
    out = output(workload, "a r b", lambda a, r, b: away[a, r, b] * share[a, b])
    return [*before, *squares, share, out]


def stages_along(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """The stages that combine what is along the middle axis of such a shape, the last one first."""
    together = sums_of_neighbours(shape[1]) if shape[2] == 1 else 1
    if together == 1:
        return (name,)
    halves = [f"{name}_{1 << bit}" for bit in range(1, together.bit_length())]
    return (name, *halves, *([f"{name}_lines"] if shape[1] % together else []))


def _along(x: Tensor, name: str, kind: str, element: Callable[..., Expr]) -> list[Tensor]:
    """Stages, of which the last one [A, B] combines what `element` gives along the middle axis."""
    combine, start = _KINDS[kind]
    first = Const(start, DType.FLOAT32)
    a, r, b = x.shape
    *first_names, last = reversed(stages_along(name, x.shape))
    if not first_names:

        def value(a: Var, b: Var) -> Reduction:
            return Reduction(combine, first, {"r": r}, lambda r: element(a, r, b))

        return [compute(last, {"a": a, "b": b}, value)]
    together = sums_of_neighbours(r)
    whole = r - r % together
    zero = Const(0, INDEX)

    def line(a: Var, i: Var) -> Reduction:
        lines = {"r": whole // together}
        return Reduction(combine, first, lines, lambda r: element(a, r * together + i, zero))

    stages = [compute(first_names[0], {"a": a, "i": together}, line)]
    if whole < r:

        def with_rest(a: Var, i: Var) -> Expr:
            sums = stages[-1][a, i]
            one_more = combine(sums, element(a, i + whole, zero))
            return Select(Lt(i, Const(r - whole, INDEX)), one_more, sums)

        stages.append(compute(first_names[1], {"a": a, "i": together}, with_rest))
    for half in first_names[len(stages) :]:
        stages.append(_half(half, stages[-1], combine))

    def both(a: Var, b: Var) -> Expr:
        del b
        return combine(stages[-1][a, zero], stages[-1][a, Const(1, INDEX)])

    return [*stages, compute(last, {"a": a, "b": b}, both)]


def _half(name: str, sums: Tensor, combine: Combine) -> Tensor:
    """Each of the first half of sums [A, n] with the one that is n / 2 further."""
    a, many = sums.shape
    axes = {"a": a, "i": many // 2}
    return compute(name, axes, lambda a, i: combine(sums[a, i], sums[a, i + many // 2]))


def _like(x: Tensor, name: str, element: Callable[..., Expr]) -> Tensor:
    return compute(name, dict(zip("arb", x.shape, strict=True)), element)


def _rows(x: Tensor, name: str, element: Callable[..., Expr]) -> Tensor:
    return compute(name, {"a": x.shape[0], "b": x.shape[2]}, element)
