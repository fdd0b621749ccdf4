"""Element by element on float32: functions, two tensors combined, columns taken."""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Cast, Const, Expr, Lt, Max, Min, Select, Var
from compile_worker.te.operators.real_words import COMBINED, applied, number, output
from compile_worker.te.tensor import Tensor


def real_map(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. x [N, M]."""
    (x,) = inputs
    function = workload.attr_str("function")
    return [output(workload, "n m", lambda n, m: applied(function, x[n, m], workload.parameters))]


def real_zip(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. Where an operand has extent 1 it is read at 0."""
    a, b = inputs
    function = workload.attr_str("function")

    def element(*at: Var) -> Expr:
        return COMBINED[function](a[repeated(a, at)], b[repeated(b, at)])

    axes = " ".join(f"i{axis}" for axis in range(len(workload.outputs[0].shape)))
    return [output(workload, axes, element)]


def real_take(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. places [N, K], x [Z, C, V]."""
    places, x = inputs
    count = x.shape[2]

    def element(n: Var, c: Var, k: Var) -> Expr:
        place = places[n, k]
        from_start = Select(Lt(place, number(0)), place + number(count), place)
        inside = Min(Max(from_start, number(0)), number(count - 1))
        row = n if x.shape[0] > 1 else Const(0, INDEX)
        return x[row, c, Cast(INDEX, Cast(DType.INT32, inside))]

    return [output(workload, "n c k", element)]


def repeated(tensor: Tensor, at: tuple[Var, ...]) -> tuple[Expr, ...]:
    """Where a tensor is read whose extents of 1 are repeated."""
    zero = Const(0, INDEX)
    return tuple(zero if extent == 1 else var for var, extent in zip(at, tensor.shape, strict=True))
