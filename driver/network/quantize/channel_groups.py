"""Which channels can be scaled, and which only together: what a factor passes through.

f(x * r) = f(x) * r for every r > 0 is true of a ReLU, of pooling, of sums, and of what only moves
channels, so a factor for each channel of their operand is one of their result. Between two layers
it can be taken out of the weights of the one and into those of the other. A clip such as ReLU6 cuts
all channels at one number: there it is true of channels that stay below it before and after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from driver.network.graph import ir
from driver.network.graph.ir import Graph, GraphNode
from driver.network.quantize.union_find import Disjoint


class ChannelGroups:
    """Every channel of every tensor, by numbers; those of a group have one factor.

    Attributes:
        count: how many channels there are.
        group: int64 [count], the channel that stands for each one's group.
        is_free: bool [count], whether its factor may be other than 1.
        top: float [count], what no value of it may exceed; infinite where nothing is cut.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._first: dict[str, int] = {}
        self.count = 0
        for name, shape in graph.shapes.items():
            self._first[name] = self.count
            self.count += shape[1] if len(shape) > 1 else 1
        self._joined = Disjoint(range(self.count))
        self.top: NDArray[np.float64] = np.full(self.count, math.inf)
        fixed = [i.name for i in graph.inputs] + [output.tensor for output in graph.outputs]
        fixed += graph.ranges
        for node in graph.nodes:
            fixed += self._take(node)
        self.group: NDArray[np.int64] = np.array([*map(self._joined.group, range(self.count))])
        self.is_free: NDArray[np.bool_] = np.ones(self.count, np.bool_)
        for name in fixed:
            self.is_free[self.group[self.channels(name)]] = False
        self.is_free = self.is_free[self.group]

    def channels(self, name: str) -> slice:
        """The numbers of a tensor's channels."""
        shape = self._graph.shapes[name]
        return slice(self._first[name], self._first[name] + (shape[1] if len(shape) > 1 else 1))

    def _take(self, node: GraphNode) -> tuple[str, ...]:
        """Joins what has one factor; the tensors that must keep their values."""
        shapes = [self._graph.shapes[name] for name in node.inputs]
        before, after = [self._numbers(name) for name in node.inputs], self._numbers(node.output)
        if isinstance(node.op, ir.Clipped | ir.Clip) and _passes(node.op):
            self.top[self.channels(node.output)] = node.op.hi or math.inf
        match node.op:
            case ir.Conv2d() | ir.ConvTranspose2d() | ir.Dense() | ir.Affine() if _passes(node.op):
                return ()
            case ir.Clip() | ir.AvgPool2d() if _passes(node.op):
                self._join(before[0], after)
            case ir.MaxPool2d() | ir.Slopes():
                self._join(before[0], after)
            case ir.Add() if _passes(node.op) and shapes[0] == shapes[1]:
                self._join(before[0], after)
                self._join(before[1], after)
            case ir.Concat():
                self._join([number for part in before for number in part], after)
            case ir.Slice(start=start, stop=stop):
                self._join(before[0][start:stop], after)
            case ir.Reshape(shape=shape) if len(shape) == 1:
                pixels = math.prod(shapes[0][2:])
                self._join([number for number in before[0] for _ in range(pixels)], after)
            case _:
                return (*node.inputs, node.output)
        return ()

    def _numbers(self, name: str) -> range:
        channels = self.channels(name)
        return range(channels.start, channels.stop)

    def _join(self, some: Sequence[int], others: Sequence[int]) -> None:
        for one, other in zip(some, others, strict=True):
            self._joined.join(one, other)


def _passes(op: ir.Clipped | ir.Clip) -> bool:
    """Whether the clip is none, or a ReLU that may end: a least value would differ by channel."""
    return (op.lo == 0 or math.isinf(op.lo)) and (op.hi >= 0 or math.isinf(op.hi))
