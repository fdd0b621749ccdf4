"""A float operator of the integer network as steps on the processor, its kernel calls in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilefarm.dtype import DType

from driver.network.graph.ir import Shape
from driver.network.integer.qir import QuantNode, Real
from driver.network.integer.real_calls import real_calls_of
from driver.network.partition.assembly import Assembly, Constant


def add_real_steps(
    node: QuantNode,
    op: Real,
    operands: Sequence[tuple[str, Shape]],
    made: Assembly,
    result_of: Callable[[], str],
) -> None:
    """Adds the steps of one node; what only they know is named after its result.

    Args:
        operands: the tensors that the node reads, row-major, and their logical shapes.
        result_of: makes the tensor of the node's result, when that is next.
    """
    tensors = [tensor for tensor, _ in operands]
    calls = real_calls_of(op.op, [shape for _, shape in operands])
    for number, call in enumerate(calls):
        is_last = number == len(calls) - 1
        result = result_of() if is_last else made.fresh(f"{node.output}.{number}")
        made.call(
            node.name if is_last else f"{node.name}.{number}",
            call.operator,
            {name: (tensors[each.source], each.shape) for name, each in call.operands.items()},
            {name: Constant(f"{node.name}.{name}", each) for name, each in call.constants.items()},
            call.attrs,
            result=result,
            shape=call.shape,
            dtype=DType.FLOAT32,
            why=op.why,
            macs=call.macs,
        )
        tensors.append(result)
