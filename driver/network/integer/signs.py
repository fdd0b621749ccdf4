"""Which values of an integer network are never negative."""

from __future__ import annotations

from typing import Final

from driver.network.integer import qir
from driver.network.integer.qir import QuantGraph, QuantNode
from driver.network.integer.qlinear import QLinearOperator

KEEP_SIGNS: Final = (
    qir.QConcat,
    qir.QGather,
    qir.QMaxPool2d,
    qir.QRescale,
    qir.QReshape,
    qir.QSlice,
)
"""Operators that make nothing negative of what is never negative."""


def never_negative(graph: QuantGraph) -> frozenset[str]:
    """The int8 tensors that are at least 0 whatever the input: behind a ReLU or a clip at 0."""
    found: set[str] = set()
    for node in graph.nodes:
        if _is_never_negative(node, found):
            found.add(node.output)
    return frozenset(found)


def _is_never_negative(node: QuantNode, known: set[str]) -> bool:
    match node.op:
        case qir.Quantize() | qir.Dequantize() | qir.QSoftmax() | qir.Real():
            return False
        case qir.QLookup(table=table):
            return bool((table >= 0).all())
        case qir.QProduct():
            return False
        case qir.QGather(fill=fill) if fill < 0:
            return False
        case op if isinstance(op, (*KEEP_SIGNS, qir.QMatMul)):
            return all(name in known for name in node.inputs)
        case qir.QAvgPool2d():
            return node.op.lo >= 0 or node.inputs[0] in known
    return not isinstance(node.op, QLinearOperator) and node.op.lo >= 0
