"""scaled_add: two tensors, each multiplied by a tile, added in the accumulators."""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import data_axes, widened
from compile_worker.te.operators.rounding import rounded
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def scaled_add(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages first, both, those of `rounded`, and the output.

    a, b [N, C, ..., b, i], scale_a, scale_b [o, i]. The second product goes on from the first.
    """
    a, b, scale_a, scale_b = inputs
    first = _product("first", a, scale_a)
    both = _product("both", b, scale_b, first)
    return [first, both, *rounded(workload, both)]


def _product(name: str, x: Tensor, scale: Tensor, before: Tensor | None = None) -> Tensor:
    """x·scale for every vector, added to `before`."""

    def element(*at: Var) -> Reduction:
        def term(i: Var) -> Expr:
            return widened(x[(*at[:-1], i)]) * widened(scale[at[-1], i])

        start = None if before is None else before[at]
        return total(DType.INT32, {"i": scale.shape[1]}, term, start=start)

    return compute(name, data_axes(x.shape), element)
