"""Elements taken from the places of an index, and tensors next to one another; of any type."""

from __future__ import annotations

from tilefarm.workload import Workload

from compile_worker.ir.expr import INDEX, And, Cast, Const, Expr, Le, Lt, Select, Var, index
from compile_worker.te.operators.window import shifted
from compile_worker.te.tensor import Tensor, compute


def gather(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. x [N, M], index int32 [K], out [N, K]; `fill` where there is no place."""
    x, places = inputs
    spec = workload.outputs[0]
    rows, many = spec.shape
    last = index(x.shape[1] - 1)
    nothing = Const(workload.fill if x.dtype.is_float else int(workload.fill), x.dtype)

    def element(n: Var, k: Var) -> Expr:
        place = Cast(INDEX, places[k])
        exists = And(Le(index(0), place), Le(place, last))
        return Select(exists, x[n, place], nothing)

    return [compute(spec.name, {"n": rows, "k": many}, element, scope="dram")]


def as_strided(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. x [N, M]; a step along an axis of the output is a stride in x."""
    (x,) = inputs
    spec = workload.outputs[0]
    strides, offset = workload.attr_ints("strides"), workload.attr_int("offset")

    def element(n: Var, *at: Var) -> Expr:
        place = index(offset)
        for each, stride in zip(at, strides, strict=True):
            place = place + each * stride
        return x[n, place]

    axes = {"n": spec.shape[0], **{f"i{axis}": each for axis, each in enumerate(spec.shape[1:])}}
    return [compute(spec.name, axes, element, scope="dram")]


def concat(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """The output alone. Operands are [N, M]; a condition for each but the last says whose it is."""

    def element(n: Var, m: Var) -> Expr:
        ends = [sum(x.shape[1] for x in inputs[: i + 1]) for i in range(len(inputs))]
        value: Expr = inputs[-1][n, shifted(m, ends[-1] - inputs[-1].shape[1])]
        for x, end in reversed(list(zip(inputs[:-1], ends[:-1], strict=True))):
            value = Select(Lt(m, Const(end, INDEX)), x[n, shifted(m, end - x.shape[1])], value)
        return value

    spec = workload.outputs[0]
    rows, many = spec.shape
    return [compute(spec.name, {"n": rows, "m": many}, element, scope="dram")]
