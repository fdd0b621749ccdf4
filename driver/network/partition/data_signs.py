"""Data of 8 bits with the sign that a processor's dot products take, in ONNX's own arithmetic.

    int8 q with zero point z    ->    uint8 q + 128 with zero point z + 128         or back

Both stand for the same reals, (q - z) * scale, so no layer's sums change. Where data have the other
sign, a kernel would move every quad of them by 128 itself, each time it multiplies it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from tilefarm.dtype import DType

from driver.network.graph.grid import Grid
from driver.network.integer.qir import QGather, QuantGraph, QuantNode, QuantTensor
from driver.network.integer.qlinear import (
    ByteArray,
    DequantizeLinear,
    DynamicQuantizeLinear,
    QLinearAvgPool2d,
    QLinearBinary,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearDense,
    QLinearLookup,
    QLinearMatMul,
    QuantizeLinear,
    Requantization,
)

_MIDDLE: Final = 128
_MOVED_BY: Final = {DType.INT8: -_MIDDLE, DType.UINT8: _MIDDLE}
"""What data of the other sign are moved by to become of this one."""


def with_data_of(graph: QuantGraph, wanted: DType | None) -> QuantGraph:
    """The same network on data of the wanted sign, if there is one.

    It stays as it is where data are uint8 by definition, or on a grid of fewer bits than 8.
    """
    if wanted is None or not all(_can_move(node, wanted) for node in graph.nodes):
        return graph
    move = _Move(graph.tensors, wanted)
    return replace(
        graph,
        nodes=tuple(map(move.node, graph.nodes)),
        tensors={name: move.tensor(tensor) for name, tensor in graph.tensors.items()},
    )


def _can_move(node: QuantNode, wanted: DType) -> bool:
    match node.op:
        case DynamicQuantizeLinear():
            return wanted is DType.UINT8
        case QuantizeLinear(grid=grid) | DequantizeLinear(grid=grid):
            return grid.dtype == grid.held
        case QLinearBinary(a=a, b=b, to=to):
            return all(grid.dtype == grid.held for grid in (a, b, to))
    return True


class _Move:
    """Gives tensors and operators the wanted sign."""

    def __init__(self, tensors: Mapping[str, QuantTensor], wanted: DType) -> None:
        self._tensors = tensors
        self._wanted = wanted

    def tensor(self, tensor: QuantTensor) -> QuantTensor:
        return replace(
            tensor,
            dtype=self._wanted if self._moved_by(tensor.dtype) else tensor.dtype,
            zero=tensor.zero + self._moved_by(tensor.dtype),
        )

    def node(self, node: QuantNode) -> QuantNode:
        change = _CHANGES.get(type(node.op))
        if change is None:
            return node
        by = [self._moved_by(self._tensors[name].dtype) for name in node.inputs]
        return replace(node, op=change(self, node.op, *by))

    def layer(self, op: Any, by: int) -> Any:
        """A layer, or a pool, of data that are moved so far."""
        return replace(op, x_zero=op.x_zero + by, to=self._requantization(op.to))

    def matmul(self, op: QLinearMatMul, a: int, b: int) -> QLinearMatMul:
        to = self._requantization(op.to)
        return replace(op, a_zero=op.a_zero + a, b_zero=op.b_zero + b, to=to)

    def binary(self, op: QLinearBinary, _a: int, _b: int) -> QLinearBinary:
        a, b, to = map(self._grid, (op.a, op.b, op.to))
        by = to.zero - op.to.zero
        return replace(op, a=a, b=b, to=to, lo=op.lo + by, hi=op.hi + by)

    def lookup(self, op: QLinearLookup, _by: int) -> QLinearLookup:
        """Entries count from the least of the type, whatever that is."""
        by = self._moved_by(DType(op.table.dtype.name))
        return replace(op, table=self._entries(op.table, by)) if by else op

    def gather(self, op: QGather, by: int) -> QGather:
        return replace(op, fill=op.fill + by)

    def on_grid(
        self, op: QuantizeLinear | DequantizeLinear, _by: int
    ) -> QuantizeLinear | DequantizeLinear:
        return replace(op, grid=self._grid(op.grid))

    def _entries(self, table: Any, by: int) -> ByteArray:
        moved: ByteArray = (table.astype("int16") + by).astype(self._wanted.value)
        return moved

    def _requantization(self, to: Requantization) -> Requantization:
        by = self._moved_by(to.dtype)
        if not by:
            return to
        return replace(to, dtype=self._wanted, zero=to.zero + by, lo=to.lo + by, hi=to.hi + by)

    def _grid(self, grid: Grid) -> Grid:
        by = self._moved_by(DType(grid.dtype))
        return Grid(grid.scale, grid.zero + by, self._wanted.value) if by else grid

    def _moved_by(self, dtype: DType) -> int:
        is_other = dtype in _MOVED_BY and dtype is not self._wanted
        return _MOVED_BY[self._wanted] if is_other else 0


_CHANGES: Final[Mapping[type[Any], Callable[..., Any]]] = {
    QLinearConv2d: _Move.layer,
    QLinearConvTranspose2d: _Move.layer,
    QLinearDense: _Move.layer,
    QLinearAvgPool2d: _Move.layer,
    QLinearMatMul: _Move.matmul,
    QLinearBinary: _Move.binary,
    QLinearLookup: _Move.lookup,
    QGather: _Move.gather,
    QuantizeLinear: _Move.on_grid,
    DequantizeLinear: _Move.on_grid,
}
"""How an operator changes with its data; others move elements, or compute with float32."""
