"""Which values of an integer network are never negative."""

from __future__ import annotations

from driver.network.integer.qir import (
    Dequantize,
    QAvgPool2d,
    QConcat,
    QGather,
    QLookup,
    QMatMul,
    QMaxPool2d,
    QProduct,
    QRescale,
    QReshape,
    QSlice,
    QSoftmax,
    QuantGraph,
    Quantize,
    QuantNode,
    Real,
)
from driver.network.integer.qlinear import QLinearOperator


def never_negative(graph: QuantGraph) -> frozenset[str]:
    """The int8 tensors that are at least 0 whatever the input: behind a ReLU or a clip at 0."""
    found: set[str] = set()
    for node in graph.nodes:
        if _is_never_negative(node, found):
            found.add(node.output)
    return frozenset(found)


def _is_never_negative(node: QuantNode, known: set[str]) -> bool:
    match node.op:
        case Quantize() | Dequantize() | QSoftmax() | Real():
            return False
        case QLookup(table=table):
            return bool((table >= 0).all())
        case QProduct():
            return False
        case QGather(fill=fill) if fill < 0:
            return False
        case QGather() | QMatMul() | QMaxPool2d() | QReshape() | QRescale() | QSlice() | QConcat():
            return all(name in known for name in node.inputs)
        case QAvgPool2d():
            return node.op.lo >= 0 or node.inputs[0] in known
    return not isinstance(node.op, QLinearOperator) and node.op.lo >= 0
