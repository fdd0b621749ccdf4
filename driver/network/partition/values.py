"""Where every value of an integer network lies: tensors of its own, views, and late relayouts."""

from __future__ import annotations

import math
from dataclasses import replace

from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import AttrValue

from driver.network.graph.ir import Shape
from driver.network.integer.blocks import is_view
from driver.network.integer.qir import QReshape, QuantGraph, QuantNode
from driver.network.partition.assembly import Assembly, as_image
from driver.network.partition.borders import plan_borders
from driver.network.partition.concat import Join, Part, plan_joins
from driver.network.partition.groups import plan_groups


class Values:
    """Knows the tensor that holds each value of `graph`, and makes tensors for results.

    What is concatenated later is made in its place there. A reshape that moves elements is left
    until somebody reads its result as it is.
    """

    def __init__(self, graph: QuantGraph, target: Target, made: Assembly) -> None:
        self._graph = graph
        self._block = target.lanes.block
        self._made = made
        self._holder: dict[str, str] = {i.name: i.name for i in graph.inputs}
        self._flattened: dict[str, QuantNode] = {}
        self._reshaped = {n.output: n.inputs[0] for n in graph.nodes if isinstance(n.op, QReshape)}
        self._groups = plan_groups(graph, target)
        self.borders = plan_borders(graph)
        self.joins = plan_joins(graph, target.lanes.batch, target.lanes.block)
        self._places = {
            part.source: (join, part)
            for join in self.joins.values()
            for part in join.parts
            if not part.is_copied
        }

    def reshape(self, node: QuantNode) -> None:
        """A view where no byte moves; otherwise a relayout, made when somebody needs it."""
        source = self._graph.tensors[node.inputs[0]]
        result = self._graph.tensors[node.output]
        if source.dtype is DType.FLOAT32 or is_view(source.shape, result.shape):
            self._holder[node.output] = self.read(node.inputs[0])
        else:
            self._flattened[node.output] = node

    def read(self, name: str) -> str:
        """The tensor that holds that value in the layout of its own shape."""
        if name not in self._holder:
            node = self._flattened[name]
            shapes: dict[str, AttrValue] = {
                "logical_in": self._graph.tensors[node.inputs[0]].shape,
                "logical_out": self._graph.tensors[name].shape,
            }
            self._made.call(
                node.name,
                "relayout",
                {"x": self.stored(node.inputs[0])},
                {},
                shapes,
                result=self.result(name),
                shape=self._made.blocked(self._graph.tensors[name].shape),
                why="moves elements between lanes",
            )
        return self._holder[name]

    def stored(self, name: str) -> tuple[str, Shape]:
        """The tensor that holds a value, and the shape in which its maker sees it."""
        return self.read(name), self._made.stored(self._graph.tensors[name])

    def is_grouped(self, name: str) -> bool:
        """Whether a value is stored group by group, see `partition.groups`."""
        return name in self._groups

    def logical(self, name: str) -> Shape:
        """The shape as which an int8 value is in blocks."""
        n, channels, *rest = self._graph.tensors[name].shape
        groups = self._groups.get(name, 1)
        return (n * groups, channels // groups, *rest)

    def unshaped(self, name: str) -> str:
        """The value that a value is only another shape of."""
        while name in self._reshaped:
            name = self._reshaped[name]
        return name

    def operand(self, name: str) -> tuple[str, Shape]:
        """The tensor that holds a blocked value, and the shape of an image in which it is seen."""
        return self.read(name), self.image(name)

    def dense_data(self, name: str) -> tuple[str, Shape | None]:
        """Where a dense layer reads, and the shape whose blocked order its weights must follow."""
        if name in self._holder or name not in self._flattened:
            return self.read(name), None
        source = self._flattened[name].inputs[0]
        shape = self._graph.tensors[source].shape
        if shape[0] != self._graph.tensors[name].shape[0] or len(shape) < 3:
            return self.read(name), None
        return self.read(source), shape[1:]

    def hold(self, name: str, tensor: str) -> None:
        """Says which tensor has a value."""
        self._holder[name] = tensor

    def result(self, name: str) -> str:
        """The tensor that gets a value: its own, or a part of what it is joined to."""
        self._holder[name] = name
        if name in self._places and name not in self._made.tensors:
            self.view(name, name, *self._places[name])
        return name

    def view(self, name: str, value: str, join: Join, part: Part) -> None:
        """Makes a tensor the part of a concatenation that holds a value."""
        n, _, *rest = self._graph.tensors[value].shape
        before = self._made.blocked((n, part.first_block * self._block, *rest))
        self._made.declare(
            name,
            self._made.blocked(self._graph.tensors[value].shape),
            DType.INT8,
            "view",
            parent=self.whole(join),
            offset=math.prod(before),
        )

    def whole(self, join: Join) -> str:
        """The tensor of all parts of a concatenation, which may be a part of another."""
        whole = self.result(join.output) if join.is_dense else f"{join.output}.parts"
        if whole not in self._made.tensors:
            n, _, *rest = self._graph.tensors[join.output].shape
            shape = self._made.blocked((n, join.channels, *rest))
            self._made.declare(whole, shape, DType.INT8, "intermediate")
        return whole

    def as_output(self, name: str) -> str:
        """Marks the tensor behind an output; an input, or what is an output already, is copied."""
        return self._made.given_out(self.read(name))

    def image(self, name: str, channels: int | None = None) -> Shape:
        """The shape in memory of a value, or of as many channels, seen as an image."""
        tensor = self._graph.tensors[name]
        n, c, *rest = tensor.shape
        return self._made.stored(replace(tensor, shape=as_image((n, channels or c, *rest))))
