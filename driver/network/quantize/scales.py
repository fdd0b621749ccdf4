"""Ranges of tensors that must have one scale: what is joined by a concatenation moves no byte."""

from __future__ import annotations

from collections.abc import Mapping

from driver.network.graph.ir import Concat, Gather, Graph, MaxPool2d, Reshape
from driver.network.quantize.union_find import Disjoint


class ScaleGroups:
    """Groups of tensors of one scale: the operands and the result of every concatenation.

    Max pooling, moving and reshaping keep the scale of their operand, so they pass it on.
    """

    def __init__(self, graph: Graph) -> None:
        self._groups = Disjoint(graph.shapes)
        joined = []
        for node in graph.nodes:
            if isinstance(node.op, Concat | Gather | MaxPool2d | Reshape):
                for name in node.inputs:
                    self._groups.join(name, node.output)
            if isinstance(node.op, Concat):
                joined.append(node.output)
        self._joined = {self.group(name) for name in joined}

    def group(self, name: str) -> str:
        """The tensor that stands for all of the group."""
        return self._groups.group(name)

    def is_joined(self, name: str) -> bool:
        """Whether the tensor's scale is that of a concatenation."""
        return self.group(name) in self._joined

    def ranges(self, ranges: Mapping[str, float]) -> dict[str, float]:
        """The ranges, where every tensor of a concatenation has the largest of its group."""
        largest: dict[str, float] = {}
        for name, reach in ranges.items():
            group = self.group(name)
            largest[group] = max(largest.get(group, 0.0), reach)
        return {
            name: largest[self.group(name)] if self.is_joined(name) else reach
            for name, reach in ranges.items()
        }
