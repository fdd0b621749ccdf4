"""Where every value of a network in ONNX's own arithmetic lies on a processor, and in what blocks.

A value [N, C, H, W] lies in blocks of some of its channels, [N, C/c, H, W, 1, c]: of 16, as sums
of convolutions come; of 1, which is row-major, as float32 and products want it; of all channels,
pixel by pixel, as a first layer reads an image. In which ones it is made is chosen for the network
as a whole (`layout_choice`). It is brought into other blocks where somebody reads it so, unless no
byte moves for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from tilefarm.dtype import DType

from driver.network.graph.ir import Shape
from driver.network.integer.blocks import blocked_shape, stored_places
from driver.network.integer.qir import QSlice, QuantGraph, QuantNode
from driver.network.partition.assembly import Assembly
from driver.network.partition.concat import Join, Part, plan_joins
from driver.network.partition.layout_choice import ROW_MAJOR, Way, chosen_ways
from driver.network.partition.qlinear_layers import LANES


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
        self._ways = chosen_ways(graph)
        self._held: dict[str, list[Held]] = {}
        for each in graph.inputs:
            self._held[each.name] = [Held(each.name, each.shape, ROW_MAJOR)]
        self.joins = {
            name: join
            for name, join in plan_joins(graph, 1, LANES).items()
            if self._ways[name].in_place
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

    def way(self, node: QuantNode) -> Way:
        """The blocks that an operator reads and makes."""
        return self._ways[node.output]

    def reshape(self, node: QuantNode) -> None:
        """The same elements under another shape; they move when somebody reads them so.

        What holds one of the values holds the other.
        """
        self._held[node.output] = self._held[node.inputs[0]]

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
        source = self._held[name][0]
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

    def slice(self, node: QuantNode, op: QSlice) -> None:
        """Makes a part of the channels a view."""
        (source,) = node.inputs
        shape, block = self.shape(source), self.way(node).reads
        tensor, _ = self.read(source, block)
        before = blocked_shape((1, op.start, *shape[2:]), 1, block)
        dtype = self.dtype(source)
        self._made.declare(
            node.output,
            blocked_shape(self.shape(node.output), 1, block),
            dtype,
            "view",
            parent=tensor,
            offset=math.prod(before) * dtype.nbytes,
        )
        self.hold(node.output, node.output, block)

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


def _are_the_same_bytes(held: Held, shape: Shape, block: int) -> bool:
    """Whether a tensor under another shape and in other blocks is the same row of bytes."""
    if (held.shape, held.block) == (shape, block):
        return True
    if math.prod(held.stored) != math.prod(blocked_shape(shape, 1, block)):
        return False
    before = stored_places(held.shape, 1, held.block).reshape(-1)
    return np.array_equal(before, stored_places(shape, 1, block).reshape(-1))
