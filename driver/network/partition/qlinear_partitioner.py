"""Network in ONNX's own arithmetic to kernel calls on a processor alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from tilefarm.dtype import DType
from tilefarm.errors import ModelError
from tilefarm.target import Target
from tilefarm.workload import AttrValue

from compile_worker.isa import isa_of
from driver.network.graph.grid import Grid
from driver.network.graph.ir import Gather, IndexArray, Shape, Window
from driver.network.integer.blocks import blocked_places, blocked_shape, channel_rows
from driver.network.integer.network import Network
from driver.network.integer.qir import (
    QConcat,
    QGather,
    QMaxPool2d,
    QReshape,
    QSlice,
    QuantGraph,
    QuantNode,
    Real,
)
from driver.network.integer.qlinear import (
    DequantizeLinear,
    DynamicGrid,
    DynamicLayer,
    DynamicQuantizeLinear,
    QLinearAvgPool2d,
    QLinearBinary,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearDense,
    QLinearFused,
    QLinearLayer,
    QLinearLookup,
    QLinearMatMul,
    QuantizeLinear,
)
from driver.network.integer.real_views import flat, merged
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.concat import channel_order
from driver.network.partition.data_signs import with_data_of
from driver.network.partition.layers import pool_attrs
from driver.network.partition.layout_choice import ROW_MAJOR
from driver.network.partition.qlinear_calls import WHY, LayerCalls
from driver.network.partition.qlinear_fusion import with_fused_operands
from driver.network.partition.qlinear_layers import LANES
from driver.network.partition.qlinear_requantization import (
    binary_attrs,
    grid_attrs,
    requantization_attrs,
)
from driver.network.partition.qlinear_values import QLinearValues
from driver.network.partition.real_steps import add_real_steps
from driver.network.partition.strided import strided_form
from driver.network.partition.transposed_spread import with_spread_data

_MOVES: Final = "moves elements between lanes and pixels"


def partition_qlinear(graph: QuantGraph, target: Target) -> Network:
    """The network as kernel calls in the graph's order.

    Raises:
        ModelError: an operator has no kernel.
    """
    graph = with_data_of(graph, isa_of(target.host).data)
    graph = with_fused_operands(with_spread_data(graph))
    partitioner = _Partitioner(graph, target)
    for node in graph.nodes:
        partitioner.take(node)
    return partitioner.finish()


class _Partitioner:
    """Walks the network in order."""

    def __init__(self, graph: QuantGraph, target: Target) -> None:
        self._graph = graph
        self._isa = isa_of(target.host)
        self._made = Assembly(graph, target)
        self._values = QLinearValues(graph, self._made)
        self._layers = LayerCalls(graph, target, self._made, self._values)

    def take(self, node: QuantNode) -> None:
        """Adds the steps of one node, if it needs any."""
        match node.op:
            case QReshape():
                self._values.reshape(node)
            case QSlice():
                self._slice(node, node.op)
            case QConcat():
                self._concat(node)
            case QGather(index=index, fill=fill):
                self._gather(node, index, fill)
            case QMaxPool2d(window=window):
                self._max_pool(node, window)
            case QLinearFused(layer=layer):
                self._layer(node, layer)
            case QLinearConv2d() | QLinearConvTranspose2d() | QLinearDense():
                self._layer(node, node.op)
            case QLinearMatMul():
                self._matmul(node, node.op)
            case QLinearAvgPool2d():
                self._avg_pool(node, node.op)
            case QLinearBinary():
                self._binary(node, node.op)
            case QLinearLookup():
                self._lookup(node, node.op)
            case QuantizeLinear(grid=grid):
                self._quantize(node, grid)
            case DequantizeLinear(grid=grid):
                self._dequantize(node, grid)
            case Real(op=Gather(index=index, fill=fill)):
                self._gather(node, index, fill)
            case Real():
                self._real(node, node.op)
            case DynamicGrid():
                self._dynamic_grid(node)
            case DynamicQuantizeLinear(pad=pad):
                self._dynamic_quantize(node, pad)
            case DynamicLayer(layer=QLinearConv2d() as layer):
                self._layers.conv(node, layer)
            case DynamicLayer(layer=QLinearDense() as layer):
                self._layers.dense(node, layer)
            case _:
                raise TypeError(f"{type(node.op).__name__} is not in ONNX's own arithmetic")

    def finish(self) -> Network:
        """The network of everything taken so far."""
        return self._made.network(self._values.as_output)

    def _layer(self, node: QuantNode, op: QLinearLayer) -> None:
        """A layer, alone or with another operand."""
        match op:
            case QLinearConv2d():
                self._layers.conv(node, op)
            case QLinearConvTranspose2d():
                self._layers.transposed(node, op)
            case QLinearDense():
                self._layers.dense(node, op)

    def _step(
        self,
        node: QuantNode,
        operator: str,
        attrs: Mapping[str, AttrValue],
        constants: Mapping[str, Constant] | None = None,
        *,
        block: int = LANES,
    ) -> None:
        """A step on one operand in such blocks, which makes the same blocks."""
        source = self._values.read(node.inputs[0], block)
        result, shape = self._values.result(node.output, block)
        self._made.call(
            node.name,
            operator,
            {"x": source},
            constants or {},
            attrs,
            result=result,
            shape=shape,
            dtype=self._values.dtype(node.output),
            why=WHY,
        )

    def _slice(self, node: QuantNode, op: QSlice) -> None:
        """Channels: a view where they begin with a block of the only sample."""
        if self._values.way(node).in_place:
            self._values.slice(node, op)
        else:
            source = self._values.shape(node.inputs[0])
            places = np.arange(math.prod(source[1:]), dtype=np.int32).reshape(source[1:])
            self._gather(node, places[op.start : op.stop], 0)

    def _gather(self, node: QuantNode, index: IndexArray, fill: float) -> None:
        """Places in data as they lie, sample by sample; nothing where no byte moves."""
        shape, way = self._values.shape(node.inputs[0]), self._values.way(node)
        source, before = self._values.read(node.inputs[0], way.reads)
        places = blocked_places(index, shape, 1, way.reads, way.makes)
        if np.array_equal(places, np.arange(math.prod(before[1:]))):
            self._values.hold(node.output, source, way.makes)
            return
        self._take(node, (source, flat(before)), places, way.makes, fill)

    def _take(
        self,
        node: QuantNode,
        source: tuple[str, Shape],
        places: IndexArray,
        block: int,
        fill: float = 0.0,
    ) -> None:
        """Makes a result of what lies at some places of a tensor's rows."""
        result, after = self._values.result(node.output, block)
        dtype = self._values.dtype(node.output)
        form = strided_form(places)
        if form is None:
            self._made.call(
                node.name,
                "gather",
                {"x": source},
                {"index": Constant(f"{node.name}.index", places)},
                {"fill": fill} if fill else {},
                result=result,
                shape=flat(after),
                dtype=dtype,
                why=_MOVES,
            )
        else:
            self._made.call(
                node.name,
                "as_strided",
                {"x": source},
                {},
                {"strides": form.strides, "offset": form.offset},
                result=result,
                shape=(source[1][0], *form.extents),
                dtype=dtype,
                why=_MOVES,
            )

    def _concat(self, node: QuantNode) -> None:
        """Nothing where the parts were made in their places, blocks side by side elsewhere."""
        join = self._values.joins.get(node.output)
        if join is not None and join.is_dense:
            self._values.whole(join)
            return
        channels: list[int] = []
        if join is not None:
            whole = self._values.whole(join)
            n, _, *rest = self._values.shape(node.output)
            seen = (n, join.channels, *rest)
            channels = channel_order(join, self._graph, LANES)
            self._sorted(node, whole, seen, channels)
            return
        parts = [(name, self._values.read(name, ROW_MAJOR)) for name in node.inputs]
        result, after = self._values.result(node.output, ROW_MAJOR)
        self._made.call(
            node.name,
            "concat",
            {f"x{at}": (tensor, flat(shape)) for at, (_, (tensor, shape)) in enumerate(parts)},
            {},
            {},
            result=result,
            shape=flat(after),
            dtype=self._values.dtype(node.output),
            why="joins channels that are not made in one place",
        )

    def _sorted(
        self, node: QuantNode, whole: str, seen: tuple[int, ...], channels: list[int]
    ) -> None:
        """Channels in order, of a tensor in blocks with gaps between them."""
        places = np.arange(math.prod(seen[1:]), dtype=np.int32).reshape(seen[1:])
        index = blocked_places(places[channels], seen, 1, LANES)
        self._take(node, (whole, (1, math.prod(seen))), index, LANES)

    def _max_pool(self, node: QuantNode, window: Window) -> None:
        if window.dilation != (1, 1):
            raise ModelError(
                f"{node.name}: a pooling window with gaps has no kernel on a processor",
                "export it without dilations",
            )
        self._step(node, "max_pool2d", pool_attrs(window))

    def _avg_pool(self, node: QuantNode, op: QLinearAvgPool2d) -> None:
        pixels = self._values.shape(node.output)[2:]
        scale = np.ascontiguousarray(np.broadcast_to(op.to.scale, pixels))
        attrs = {**pool_attrs(op.window), "x_zero": op.x_zero, **requantization_attrs(op.to)}
        self._step(
            node, "qlinear_avg_pool2d", attrs, {"scale": Constant(f"{node.name}.scale", scale)}
        )

    def _matmul(self, node: QuantNode, op: QLinearMatMul) -> None:
        """Products of row-major operands, head by head."""
        groups = op.groups
        seen = []
        for name in node.inputs:
            n, channels, columns = self._values.shape(name)
            tensor, _ = self._values.read(name, ROW_MAJOR)
            seen.append((tensor, (n * groups, channels // groups, columns)))
        (z, k, i), j = seen[0][1], seen[1][1][2]
        result, _ = self._values.result(node.output, ROW_MAJOR)
        attrs: dict[str, AttrValue] = {
            "a_zero": op.a_zero,
            "b_zero": op.b_zero,
            "scale": float(op.to.scale.reshape(-1)[0]),
            **requantization_attrs(op.to),
        }
        if self._isa.matrix:
            attrs["depth"] = self._isa.depth
        self._made.call(
            node.name,
            "qlinear_matmul",
            dict(zip(("a", "b"), seen, strict=True)),
            {},
            attrs,
            result=result,
            shape=(z, i, j),
            dtype=op.to.dtype,
            why=WHY,
            macs=z * i * j * k,
        )

    def _binary(self, node: QuantNode, op: QLinearBinary) -> None:
        """Two operands in the same blocks; one channel that meets many is not in blocks."""
        channels, way = self._values.shape(node.output)[1], self._values.way(node)
        single = [self._values.shape(name)[1] < channels for name in node.inputs]
        operands = [
            self._values.read(name, ROW_MAJOR if alone else way.reads)
            for name, alone in zip(node.inputs, single, strict=True)
        ]
        tensor, shape = self._values.result(node.output, way.makes)
        a, b, seen = merged(operands[0][1], operands[1][1], shape)
        self._made.call(
            node.name,
            "qlinear_zip",
            {"a": (operands[0][0], a), "b": (operands[1][0], b)},
            {},
            binary_attrs(op),
            result=tensor,
            shape=seen,
            dtype=self._values.dtype(node.output),
            why=WHY,
        )

    def _lookup(self, node: QuantNode, op: QLinearLookup) -> None:
        """A table of all 256 values, or one for each channel."""
        block = self._values.way(node).reads
        table = op.table if op.table.ndim == 1 else channel_rows(op.table, block)
        self._step(
            node, "lookup", {}, {"table": Constant(f"{node.name}.table", table)}, block=block
        )

    def _quantize(self, node: QuantNode, grid: Grid) -> None:
        source, result, shape = self._quantized(node)
        self._made.call(
            node.name,
            "quantize_linear",
            {"x": source},
            {},
            grid_attrs("", grid),
            result=result,
            shape=shape,
            dtype=DType(grid.held),
            why="turns float32 into 8 bits",
        )

    def _dequantize(self, node: QuantNode, grid: Grid) -> None:
        source = self._values.read(node.inputs[0], self._values.way(node).reads)
        result, _ = self._values.result(node.output, ROW_MAJOR)
        self._made.call(
            node.name,
            "dequantize_linear",
            {"x": source},
            {},
            grid_attrs("", grid),
            result=result,
            shape=self._values.shape(node.output),
            dtype=DType.FLOAT32,
            why="turns 8 bits into float32",
        )

    def _quantized(self, node: QuantNode) -> tuple[tuple[str, Shape], str, Shape]:
        """What is quantized, the tensor of the integers, and its shape in memory.

        In blocks, where all channels fill some, it is a row as any other.
        """
        (name, *_), way = node.inputs, self._values.way(node)
        source, before = self._values.read(name, way.reads)
        result, after = self._values.result(node.output, way.makes)
        if way.reads == ROW_MAJOR:
            return (source, self._values.shape(name)), result, after
        row = (1, math.prod(before))
        return (source, row), result, blocked_shape(row, 1, ROW_MAJOR)

    def _dynamic_grid(self, node: QuantNode) -> None:
        source, _ = self._values.read(node.inputs[0], self._values.way(node).reads)
        result, _ = self._values.result(node.output, ROW_MAJOR)
        self._made.call(
            node.name,
            "dynamic_grid",
            {"x": (source, flat(self._values.shape(node.inputs[0])))},
            {},
            {},
            result=result,
            shape=self._values.shape(node.output),
            dtype=DType.FLOAT32,
            why="finds the scale and the zero point of the sample",
        )

    def _dynamic_quantize(self, node: QuantNode, pad: tuple[int, int, int, int]) -> None:
        source, result, shape = self._quantized(node)
        grid = node.inputs[1]
        self._made.call(
            node.name,
            "dynamic_quantize_linear",
            {
                "x": source,
                "grid": (self._values.read(grid, ROW_MAJOR)[0], self._values.shape(grid)),
            },
            {},
            {"pad": pad} if any(pad) else {},
            result=result,
            shape=shape,
            dtype=DType.UINT8,
            why="turns float32 into 8 bits",
        )

    def _real(self, node: QuantNode, op: Real) -> None:
        """A float operator as its kernel calls; one element by element takes blocks as rows."""
        way = self._values.way(node)
        operands = [
            (tensor, self._values.shape(name) if way.reads == ROW_MAJOR else flat(stored))
            for name in node.inputs
            for tensor, stored in (self._values.read(name, way.reads),)
        ]
        add_real_steps(
            node, op, operands, self._made, lambda: self._values.result(node.output, way.makes)[0]
        )
