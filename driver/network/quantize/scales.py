"""Ranges of tensors that must have one scale: what is joined by a concatenation moves no byte."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from driver.network.graph.ir import Concat, Gather, Graph, MaxPool2d, Reshape
from driver.network.quantize.union_find import Disjoint

_MOVES: Final = (Gather, MaxPool2d, Reshape)
_FAR: Final = 4.0
"""By which a range is far wider than another: two bits are worth a pass over the tensor."""
_THE_USER: Final = ""
"""The reader of outputs; nodes have names."""


def is_wider(wide: float, own: float) -> bool:
    """Whether a range is so much wider that what is within the other one loses its levels in it."""
    return 0 < _FAR * own < wide


class ScaleGroups:
    """Groups of tensors of one scale: the operands and the result of every concatenation.

    Max pooling, moving and reshaping keep the scale of their operand, so they pass it on. What
    others read as well is not joined to a range that is far wider: it keeps its levels, and is
    brought to the other scale where it is concatenated.
    """

    def __init__(self, graph: Graph, ranges: Mapping[str, float] = MappingProxyType({})) -> None:
        self._groups = Disjoint(graph.shapes)
        for node in graph.nodes:
            if isinstance(node.op, _MOVES):
                self._groups.join(node.inputs[0], node.output)
        readers = self._readers(graph)
        reaches = self._largest(ranges)
        joins = [node for node in graph.nodes if isinstance(node.op, Concat)]
        for node in reversed(joins):  # a result has met what is wider before its operands meet it
            for name in node.inputs:
                wide, own = (reaches.get(self.group(t), 0.0) for t in (node.output, name))
                if is_wider(wide, own) and readers[name] != {node.name}:
                    continue
                self._groups.join(name, node.output)
                reaches[self.group(name)] = max(own, wide)
        self._joined = {self.group(node.output) for node in joins}

    def group(self, name: str) -> str:
        """The tensor that stands for all of the group."""
        return self._groups.group(name)

    def is_joined(self, name: str) -> bool:
        """Whether the tensor's scale is that of a concatenation."""
        return self.group(name) in self._joined

    def ranges(self, ranges: Mapping[str, float]) -> dict[str, float]:
        """The ranges, where every tensor of a concatenation has the largest of its group."""
        largest = self._largest(ranges)
        return {
            name: largest[self.group(name)] if self.is_joined(name) else reach
            for name, reach in ranges.items()
        }

    def _largest(self, ranges: Mapping[str, float]) -> dict[str, float]:
        """The widest range of every group that has any."""
        largest: dict[str, float] = {}
        for name, reach in ranges.items():
            group = self.group(name)
            largest[group] = max(largest.get(group, 0.0), reach)
        return largest

    def _readers(self, graph: Graph) -> dict[str, set[str]]:
        """For each tensor the names of those who read any of its group, through moves or not."""
        readers: dict[str, set[str]] = {self.group(name): set() for name in graph.shapes}
        for node in graph.nodes:
            if not isinstance(node.op, _MOVES):
                for name in node.inputs:
                    readers[self.group(name)].add(node.name)
        for output in graph.outputs:
            readers[self.group(output.tensor)].add(_THE_USER)
        return {name: readers[self.group(name)] for name in graph.shapes}
