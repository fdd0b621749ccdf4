"""Normalizations that exporters write as several operators, as one.

    d = x - mean(x);  d / sqrt(mean(d * d) + epsilon)  ->  Normalize(x)

Without the subtraction it is the division by the root of the mean square.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from driver.network.graph import ir
from driver.network.graph.ir import Graph, GraphNode, Shape
from driver.network.graph.shapes import graph_of


def with_whole_normalizations(graph: Graph) -> Graph:
    """The graph where what is divided by the root of its mean square is one operator."""
    finder = _Finder(graph, {node.output: node for node in graph.nodes})
    nodes = [finder.normalization(node) or node for node in graph.nodes]
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Looks backward from a division."""

    graph: Graph
    makers: Mapping[str, GraphNode]

    def normalization(self, node: GraphNode) -> GraphNode | None:
        """The node as a normalization of what it is computed from, if it is one."""
        if not isinstance(node.op, ir.Product):
            return None
        orders = [node.inputs] if node.op.divides else [node.inputs, node.inputs[::-1]]
        found = (self._in_order(node, *order, divides=node.op.divides) for order in orders)
        return next((each for each in found if each is not None), None)

    def _in_order(
        self, node: GraphNode, away: str, divisor: str, *, divides: bool
    ) -> GraphNode | None:
        """The node as a normalization of `away`, if the other operand belongs to one."""
        square = self._under_root(divisor, divides=divides)
        spread = self.makers.get(square or "")
        if spread is None or not isinstance(spread.op, ir.Affine):
            return None
        mul, add = spread.op.weight, spread.op.bias
        mean = self._mean(spread.inputs[0])
        if (mul != 1).any() or (add != add[0]).any() or mean is None:
            return None
        squared, axes = mean
        if self._root_of_square(squared) != away:
            return None
        source, centered = away, False
        start = self.makers.get(away)
        if start is not None and start.op == ir.Add(subtracts=True):
            centered = self._mean(start.inputs[1]) == (start.inputs[0], axes)
            source = start.inputs[0] if centered else away
        op = ir.Normalize(axes=axes, epsilon=float(add[0]), centered=centered)
        return replace(node, op=op, inputs=(source,))

    def _under_root(self, name: str, *, divides: bool) -> str | None:
        """What a divisor is the root of; what a factor is one over the root of."""
        if not divides:
            inverse = self._of(name, "reciprocal of a root", -0.5)
            root = self._of(name, "reciprocal", -1.0)
            if inverse is not None or root is None:
                return inverse
            name = root
        return self._of(name, "sqrt", 0.5)

    def _of(self, name: str, function: str, power: float) -> str | None:
        """What a tensor is that function of, or that power."""
        node = self.makers.get(name)
        if node is None or not isinstance(node.op, ir.Unary):
            return None
        same = node.op.function == function or node.op == ir.Unary(
            function="power", parameters=(power,)
        )
        return node.inputs[0] if same else None

    def _root_of_square(self, name: str) -> str | None:
        """What a tensor is the square of."""
        node = self.makers.get(name)
        if node is not None and node.op == ir.Product() and node.inputs[0] == node.inputs[1]:
            return node.inputs[0]
        return self._of(name, "square", 2.0)

    def _mean(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """What a tensor is the mean of, and along which axes."""
        node = self.makers.get(name)
        if node is not None and isinstance(node.op, ir.Reduce) and node.op.kind == "mean":
            return node.inputs[0], node.op.axes
        return self._pooled(name)

    def _pooled(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """The same of a mean over trailing axes that is a pooling of one window."""
        pool = self.makers.get(self._unshaped(name))
        if pool is None or not isinstance(pool.op, ir.AvgPool2d):
            return None
        area = math.prod(pool.op.window.kernel)
        image = self.graph.shapes[pool.inputs[0]]
        bare = pool.op.lo == -math.inf and pool.op.hi == math.inf
        if image[2:] != pool.op.window.kernel or (pool.op.divisor != area).any() or not bare:
            return None
        source, kept = pool.inputs[0], self.graph.shapes[name]
        while (axes := _trailing(self.graph.shapes[source], kept, area)) is None:
            maker = self.makers.get(source)
            if maker is None or not isinstance(maker.op, ir.Reshape):
                return None
            source = maker.inputs[0]
        return source, axes

    def _unshaped(self, name: str) -> str:
        while isinstance(self.makers[name].op if name in self.makers else None, ir.Reshape):
            name = self.makers[name].inputs[0]
        return name


def _trailing(shape: Shape, kept: Shape, area: int) -> tuple[int, ...] | None:
    """The last axes of a shape, of so many elements, if `kept` has extents of 1 in their place."""
    for first in range(1, len(shape)):
        ones = (1,) * (len(shape) - first)
        if math.prod(shape[first:]) == area and kept == (*shape[:first], *ones):
            return tuple(range(first, len(shape)))
    return None
