"""Channels joined, cut and brought to another scale: by addresses, else by multiplications."""

from __future__ import annotations

import math

from tilefarm.dtype import DType
from tilefarm.target import Target

from driver.network.graph.ir import Shape, Window
from driver.network.integer.qir import INT8_MAX, INT8_MIN, QSlice, QuantGraph, QuantNode
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.concat import Join, channel_order
from driver.network.partition.layers import (
    MOVES,
    SCALES,
    conv_attrs,
    diagonal,
    pool_attrs,
    sorting_weight,
)
from driver.network.partition.values import Values

_PIXEL = Window(kernel=(1, 1))


class Channels:
    """Makes the calls, where any are needed."""

    def __init__(self, graph: QuantGraph, target: Target, made: Assembly, values: Values) -> None:
        self._graph = graph
        self._target = target
        self._made = made
        self._values = values

    def join(self, node: QuantNode) -> None:
        """Copies the operands that have another place; moves the channels together over gaps."""
        join = self._values.joins[node.output]
        if join.alternates:
            self._side_by_side(node, join)
        else:
            self._copied(node, join)
        whole = self._values.whole(join)
        if join.is_dense:
            self._values.hold(node.output, whole)
            return
        order = channel_order(join, self._graph, self._target.lanes.block)
        self._sort(node, whole, self._values.image(node.output, join.channels), order)

    def cut(self, node: QuantNode, op: QSlice) -> None:
        """A view where the channels begin with a block; otherwise they are moved."""
        source = self._graph.tensors[node.inputs[0]].shape
        block, holder = self._target.lanes.block, self._values.read(node.inputs[0])
        if op.start % block == 0 and source[0] <= self._target.lanes.batch:
            shape = self._made.blocked(self._graph.tensors[node.output].shape)
            before = math.prod(self._made.blocked((source[0], op.start, *source[2:])))
            self._made.declare(node.output, shape, DType.INT8, "view", parent=holder, offset=before)
            self._values.hold(node.output, node.output)
            return
        lanes = self._values.image(node.inputs[0])
        self._sort(node, holder, lanes, list(range(op.start, op.stop)))

    def scale(
        self, name: str, source: str, value: str, *, mul: int, shift: int, result: str
    ) -> None:
        """One tensor times a number, or copied for 1: a sum over windows of one pixel."""
        shape = self._values.image(value)
        self._made.call(
            name,
            "window_sum2d",
            {"x": (source, shape)},
            {"scale": diagonal(mul, self._target)},
            {**pool_attrs(_PIXEL), "shift": shift, "lo": INT8_MIN, "hi": INT8_MAX},
            result=result,
            shape=shape,
            why=SCALES,
        )

    def _copied(self, node: QuantNode, join: Join) -> None:
        """Copies the operands that are not made in their places."""
        for index, part in enumerate(join.parts):
            if part.is_copied:
                place = self._made.fresh(f"{node.output}.{index}")
                self._values.view(place, part.source, join, part)
                source = self._values.read(part.source)
                self.scale(place, source, part.source, mul=1, shift=0, result=place)

    def _side_by_side(self, node: QuantNode, join: Join) -> None:
        """Copies all operands, a row of blocks of each by turns."""
        parts = [(part.source, self._values.image(part.source)) for part in join.parts]
        whole = self._values.image(node.output, join.channels)
        self._made.call(
            f"{node.name}.parts" if not join.is_dense else node.name,
            "concat",
            {
                f"x{index}": (self._values.read(name), (shape[0], math.prod(shape[1:])))
                for index, (name, shape) in enumerate(parts)
            },
            {},
            {},
            result=self._values.whole(join),
            shape=(whole[0], math.prod(whole[1:])),
            why="joins channels of several rows of samples, which lie by turns",
        )

    def _sort(self, node: QuantNode, source: str, shape: Shape, order: list[int]) -> None:
        """A convolution of one pixel whose output channel k is input channel `order[k]`."""
        weight = sorting_weight(order, shape[1] * self._target.lanes.block, self._target)
        self._made.call(
            node.name,
            "conv2d",
            {"data": (source, shape)},
            {"weight": Constant(f"{node.name}.weight", weight)},
            conv_attrs(_PIXEL),
            result=self._values.result(node.output),
            shape=self._values.image(node.output),
            why=MOVES,
        )
