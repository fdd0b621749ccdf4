"""Where a result goes: the moves between it and operators that want their operand as it is."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from driver.network.graph import ir
from driver.network.graph.ir import Graph, IndexArray
from driver.network.rewrites.rearranged import is_bijective

_PASSING: Final = (
    ir.Unary,
    ir.Clip,
    ir.FakeQuantize,
    ir.ScaleSums,
    ir.Affine,
    ir.Slopes,
    ir.Normalize,
    ir.Softmax,
    ir.Add,
    ir.Product,
)
"""Operators whose result can have the order of their operand."""

_MOST_ENDS: Final = 4
"""Ends of a result's paths that are looked for, the nearest ones."""


class Paths:
    """The paths that the results of one graph take."""

    def __init__(self, graph: Graph) -> None:
        self._shapes = graph.shapes
        self._users = graph.users()
        self._outputs = {output.tensor for output in graph.outputs}

    def behind(self, result: str) -> list[IndexArray]:
        """Places in a result as they are read at the nearest ends of its paths."""
        shape = self._shapes[result][1:]
        waiting = deque([(result, np.arange(math.prod(shape), dtype=np.int32).reshape(shape))])
        ends: list[IndexArray] = []
        while waiting and len(ends) < _MOST_ENDS:
            name, places = waiting.popleft()
            if name in self._outputs:
                ends.append(places)
            for node in self._users[name]:
                shape = self._shapes[node.output][1:]
                match node.op:
                    case ir.Reshape():
                        waiting.append((node.output, places.reshape(shape)))
                    case ir.Gather(index=index) if is_bijective(index, places.size):
                        waiting.append((node.output, places.reshape(-1)[index]))
                    case ir.Gather() | ir.Slice():
                        pass  # takes its elements from any order
                    case op if isinstance(op, _PASSING) and shape == places.shape:
                        waiting.append((node.output, places))
                    case _:
                        ends.append(places)
        return ends


def suited(ends: Sequence[IndexArray], order: IndexArray | None = None) -> int:
    """How many ends have every channel where they read it, whatever the order of the pixels.

    `order` has the places of the result's elements where they are instead, if that is elsewhere.
    """
    there = ends if order is None else [order.reshape(-1)[places] for places in ends]
    return sum(map(_lies_well, there))


def _lies_well(places: IndexArray) -> bool:
    """Whether the rows are the channels in their order, all with their pixels in one order."""
    rows = places.reshape(places.shape[0], -1)
    channels = np.arange(rows.shape[0], dtype=np.int32)[:, None] * rows.shape[1]
    return np.array_equal(rows, channels + rows[0])
