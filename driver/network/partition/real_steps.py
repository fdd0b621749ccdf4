"""A float operator of the integer network as steps on the processor, its kernel calls in order."""

from __future__ import annotations

from tilefarm.dtype import DType

from driver.network.integer.qir import QuantGraph, QuantNode, Real
from driver.network.integer.real_calls import real_calls_of
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.values import Values


def add_real_steps(
    node: QuantNode, op: Real, graph: QuantGraph, made: Assembly, values: Values
) -> None:
    """Adds the steps of one node; what only they know is named after its result."""
    tensors = [values.read(name) for name in node.inputs]
    calls = real_calls_of(op.op, [graph.tensors[name].shape for name in node.inputs])
    for number, call in enumerate(calls):
        is_last = number == len(calls) - 1
        result = values.result(node.output) if is_last else made.fresh(f"{node.output}.{number}")
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
