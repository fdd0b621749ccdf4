"""matmul: the product of two activations, for every one of a batch.

A dense layer with a row of vectors for an image, and with weights of its own for each of a batch. A
tile of the second operand is c vectors of c lanes, which is how activations lie in memory.
"""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Expr, Var
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.requantize import requantized
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def matmul(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages dot [B, No, M, b, o] and those of `requantized`.

    data [B, Ki, M, b, i], weight [B, Ki, No, o, i].
    """
    data, weight = inputs[:2]
    n, ci, w, b, i = data.shape
    co, o = weight.shape[2:4]

    def element(n: Var, co: Var, w: Var, b: Var, o: Var) -> Reduction:
        def product(ci: Var, i: Var) -> Expr:
            return widened(data[n, ci, w, b, i]) * widened(weight[n, ci, co, o, i])

        return total(DType.INT32, {"ci": ci, "i": i}, product)

    dot = compute("dot", {"n": n, "co": co, "w": w, "b": b, "o": o}, element)
    return [dot, *requantized(workload, dot, inputs)]
