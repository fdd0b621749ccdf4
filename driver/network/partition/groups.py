"""Values of several groups of channels that are stored group by group, each in blocks of its own.

A product of two activations sums over the channels of a group, a block at a time. Where groups do
not fill whole blocks, [N, G*K, J] is stored as if it were [N*G, K, J]; to the processor, which has
plain float32, both are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilefarm.target import Target

from driver.network.integer.qir import (
    Dequantize,
    QMatMul,
    QReshape,
    QuantGraph,
    Quantize,
    QuantNode,
)


def plan_groups(graph: QuantGraph, target: Target) -> Mapping[str, int]:
    """How many groups the values have that are stored group by group.

    These are the int8 values that a product or the processor makes, and only products of as many
    groups or the processor read, if the channels of a group do not fill whole blocks.
    """
    if target.lanes.batch > 1:
        return {}
    readers: dict[str, list[QuantNode]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    planned = {}
    for node in graph.nodes:
        groups = {*_groups(node), *_groups_of_readers(node.output, readers)}
        if isinstance(node.op, Quantize | QMatMul) and len(groups) == 1 and 0 not in groups:
            (count,) = groups
            if graph.tensors[node.output].shape[1] // count % target.lanes.block:
                planned[node.output] = count
    return planned


def _groups(node: QuantNode) -> set[int]:
    return {node.op.groups} if isinstance(node.op, QMatMul) else set()


def _groups_of_readers(name: str, readers: Mapping[str, list[QuantNode]]) -> Iterator[int]:
    """The groups of the products that read a value; 0 for a reader that needs it in blocks."""
    for node in readers.get(name, []):
        match node.op:
            case QMatMul(groups=groups):
                yield groups
            case Dequantize():
                pass
            case QReshape():
                if any(True for _ in _groups_of_readers(node.output, readers)):
                    yield 0
            case _:
                yield 0
