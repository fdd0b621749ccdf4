"""Where every value of a network in ONNX's own arithmetic lies on a processor, and in what blocks.

A value [N, C, H, W] lies in blocks of some of its channels, [N, C/c, H, W, 1, c]: of 16, as sums
of convolutions come; of 1, which is row-major, as float32 and products want it; of all channels,
pixel by pixel, as a first layer reads an image. It is brought into other blocks where somebody
reads it so, unless no byte moves for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from tilefarm.dtype import DType

from driver.network.graph.ir import Shape
from driver.network.integer.blocks import blocked_shape, stored_places
from driver.network.integer.qir import QConcat, QSlice, QuantGraph, QuantNode
from driver.network.integer.qlinear import (
    DynamicLayer,
    QLinearConv2d,
    QLinearDense,
    QLinearFused,
    QLinearMatMul,
    QLinearOperator,
)
from driver.network.partition.assembly import Assembly
from driver.network.partition.concat import Join, Part, plan_joins
from driver.network.partition.qlinear_layers import LANES, PIXEL, is_along_rows

ROW_MAJOR: Final = 1
"""The width of blocks that are no blocks."""


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor of the program that has a value of the graph, of this shape, in such blocks."""

    tensor: str
    shape: Shape
    block: int

    @property
    def stored(self) -> Shape:
        """The shape in memory."""
        return blocked_shape(self.shape, 1, self.block)


class QLinearValues:
    """Knows the tensors that hold each value of `graph`, and makes tensors for results.

    What is concatenated later is made in its place there, where every part can be.
    """

    def __init__(self, graph: QuantGraph, made: Assembly) -> None:
        self._graph = graph
        self._made = made
        self._held: dict[str, list[Held]] = {}
        self._readers: dict[str, list[QuantNode]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)
        for each in graph.inputs:
            self._held[each.name] = [Held(each.name, each.shape, ROW_MAJOR)]
        self.joins = {
            name: join
            for name, join in plan_joins(graph, 1, LANES).items()
            if self._can_be_in_place(join)
        }
        self._places = {
            part.source: (join, part) for join in self.joins.values() for part in join.parts
        }

    def shape(self, name: str) -> Shape:
        """The logical shape of a value."""
        return self._graph.tensors[name].shape

    def dtype(self, name: str) -> DType:
        """The type of its elements."""
        return self._graph.tensors[name].dtype

    def wanted_block(self, name: str) -> int:
        """The blocks in which all readers of a value want it, if they agree; else of 16."""
        if self.dtype(name) is DType.FLOAT32:
            return ROW_MAJOR
        readers = self._readers.get(name, [])
        if readers and all(isinstance(each.op, QLinearMatMul) for each in readers):
            return ROW_MAJOR
        shape = self.shape(name)
        if readers and all(_reads_rows(each, name, shape) for each in readers):
            return shape[1]
        return LANES

    def held_block(self, name: str) -> int:
        """Blocks in which a value is without a step for it.

        What is row-major is so under any shape.
        """
        known = self._held[name]
        wanted = self.wanted_block(name)
        mine = [
            each.block
            for each in known
            if each.shape == self.shape(name) or each.block == ROW_MAJOR
        ]
        return wanted if wanted in mine or not mine else mine[0]

    def reshape(self, node: QuantNode) -> None:
        """The same elements under another shape; they move when somebody reads them so."""
        self._held[node.output] = list(self._held[node.inputs[0]])

    def unflattened(self, name: str) -> Held:
        """Where the elements of a value are, maybe under the shape that they had before."""
        known = self._held[name]
        return next((each for each in known if each.block == LANES), known[0])

    def read(self, name: str, block: int) -> tuple[str, Shape]:
        """The tensor that has a value in such blocks, and its shape in memory."""
        shape = self.shape(name)
        wanted = blocked_shape(shape, 1, block)
        for each in self._held[name]:
            if _are_the_same_bytes(each, shape, block):
                return each.tensor, wanted
        source = self.unflattened(name)
        tensor = self._made.fresh(f"{name}.in{block}")
        self._made.call(
            tensor,
            "relayout",
            {"x": (source.tensor, source.stored)},
            {},
            {"logical_in": source.shape, "logical_out": shape},
            result=tensor,
            shape=wanted,
            dtype=self.dtype(name),
            why="brings channels into the blocks in which they are read",
        )
        self._held[name].append(Held(tensor, shape, block))
        return tensor, wanted

    def result(self, name: str, block: int) -> tuple[str, Shape]:
        """The tensor that gets a value in such blocks, and its shape in memory."""
        self.hold(name, name, block)
        shape = blocked_shape(self.shape(name), 1, block)
        if name in self._places and name not in self._made.tensors:
            self._view(name, *self._places[name])
        return name, shape

    def hold(self, name: str, tensor: str, block: int) -> None:
        """Says which tensor has a value."""
        self._held.setdefault(name, []).append(Held(tensor, self.shape(name), block))

    def slice(self, node: QuantNode, op: QSlice) -> bool:
        """Makes a part of the channels a view; whether that can be."""
        (source,) = node.inputs
        shape = self.shape(source)
        if shape[0] > 1 or op.start % LANES or self.held_block(source) != LANES:
            return False
        tensor, _ = self.read(source, LANES)
        before = blocked_shape((1, op.start, *shape[2:]), 1, LANES)
        dtype = self.dtype(source)
        self._made.declare(
            node.output,
            blocked_shape(self.shape(node.output), 1, LANES),
            dtype,
            "view",
            parent=tensor,
            offset=math.prod(before) * dtype.nbytes,
        )
        self.hold(node.output, node.output, LANES)
        return True

    def whole(self, join: Join) -> str:
        """The tensor of all parts of a concatenation, which may be a part of another."""
        name = join.output if join.is_dense else f"{join.output}.parts"
        if name not in self._made.tensors:
            n, _, *rest = self.shape(join.output)
            if join.is_dense:
                self.result(join.output, LANES)
            if name not in self._made.tensors:
                shape = blocked_shape((n, join.channels, *rest), 1, LANES)
                self._made.declare(name, shape, self.dtype(join.output), "intermediate")
        return name

    def as_output(self, name: str) -> str:
        """Marks the float32 tensor behind an output; an input, or an output already, is copied."""
        tensor, _ = self.read(name, ROW_MAJOR)
        return self._made.given_out(tensor)

    def only_reader(self, name: str) -> QuantNode | None:
        """The one node that reads a value once, unless it is given out."""
        readers = self._readers.get(name, [])
        is_given = any(each.tensor == name for each in self._graph.outputs)
        return readers[0] if len(readers) == 1 and not is_given else None

    def _view(self, name: str, join: Join, part: Part) -> None:
        n, _, *rest = self.shape(name)
        before = blocked_shape((n, part.first_block * LANES, *rest), 1, LANES)
        whole = self.whole(join)
        dtype = self.dtype(name)
        self._made.declare(
            name,
            blocked_shape(self.shape(name), 1, LANES),
            dtype,
            "view",
            parent=whole,
            offset=math.prod(before) * dtype.nbytes,
        )

    def _can_be_in_place(self, join: Join) -> bool:
        """Whether all parts are made in blocks of 16 by operators, each in a place of its own."""
        makers = {node.output: node for node in self._graph.nodes}
        return not join.alternates and all(
            not part.is_copied
            and self.wanted_block(part.source) == LANES
            and (
                isinstance(makers[part.source].op, QConcat | QLinearOperator)
                and not isinstance(makers[part.source].op, QLinearMatMul)
            )
            for part in join.parts
        )


def _reads_rows(node: QuantNode, name: str, shape: Shape) -> bool:
    """Whether a layer has a value as its data, all channels of a pixel side by side."""
    if node.inputs[0] != name:
        return False
    match node.op.layer if isinstance(node.op, QLinearFused | DynamicLayer) else node.op:
        case QLinearConv2d(groups=1, window=window):
            return is_along_rows(shape[1], window)
        case QLinearDense():
            return is_along_rows(shape[1], PIXEL)
    return False


def _are_the_same_bytes(held: Held, shape: Shape, block: int) -> bool:
    """Whether a tensor under another shape and in other blocks is the same row of bytes."""
    if (held.shape, held.block) == (shape, block):
        return True
    if math.prod(held.stored) != math.prod(blocked_shape(shape, 1, block)):
        return False
    before = stored_places(held.shape, 1, held.block).reshape(-1)
    return np.array_equal(before, stored_places(shape, 1, block).reshape(-1))
