"""Element by element on float32: functions, two tensors combined, tensors next to one another."""

from __future__ import annotations

from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, Const, Expr, Lt, Select, Var
from compile_worker.te.operators.real_words import COMBINED, applied, output
from compile_worker.te.operators.window import shifted
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
        return COMBINED[function](a[_repeated(a, at)], b[_repeated(b, at)])

    axes = " ".join(f"i{axis}" for axis in range(len(workload.outputs[0].shape)))
    return [output(workload, axes, element)]


def real_concat(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. Operands are [N, M]; a condition for each but the last says whose it is."""

    def element(n: Var, m: Var) -> Expr:
        ends = [sum(x.shape[1] for x in inputs[: i + 1]) for i in range(len(inputs))]
        value: Expr = inputs[-1][n, shifted(m, ends[-1] - inputs[-1].shape[1])]
        for x, end in reversed(list(zip(inputs[:-1], ends[:-1], strict=True))):
            value = Select(Lt(m, Const(end, INDEX)), x[n, shifted(m, end - x.shape[1])], value)
        return value

    return [output(workload, "n m", element)]


def _repeated(tensor: Tensor, at: tuple[Var, ...]) -> tuple[Expr, ...]:
    zero = Const(0, INDEX)
    return tuple(zero if extent == 1 else var for var, extent in zip(at, tensor.shape, strict=True))
