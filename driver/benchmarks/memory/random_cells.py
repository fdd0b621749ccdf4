"""Cells that no person wired: where the order of operations decides how much memory they need.

The kinds are those that SERENITY (arXiv 2003.02369) schedules; wires and widths are drawn from a
seed. Operations are written down as networks are exported: every weighted sum is multiplications
and additions, every separable convolution a depthwise and a pointwise one.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from driver.memory.order import LiveBuffer, OpGraph

_TENSOR_NBYTES: Final = 78 * 16 * 16
"""An int8 tensor of RandWire's small regime: 78 channels. All that counts here are ratios."""


@dataclass(slots=True)
class Cell:
    """Operations as they are written down: each makes one tensor out of others."""

    reads: list[tuple[int, ...]] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)

    def add(self, nbytes: int, *reads: int) -> int:
        """One operation more: its number, which is that of its tensor as well."""
        self.reads.append(reads)
        self.nbytes.append(nbytes)
        return len(self.reads) - 1

    def chain(self, read: int, *nbytes: int) -> int:
        """Operations one after the other; the last one."""
        for each in nbytes:
            read = self.add(each, read)
        return read

    def as_written(self) -> Sequence[int]:
        """The operations in the order in which a model's code makes them."""
        return range(len(self.reads))

    def breadth_first(self) -> Sequence[int]:
        """What was ready first runs first (Kahn, 1962): how exporters sort a graph, and the
        baseline of SERENITY.
        """
        return self._sorted(deque.popleft)

    def depth_first(self) -> Sequence[int]:
        """What was ready last runs first."""
        return self._sorted(deque.pop)

    def graph(self, order: Sequence[int]) -> OpGraph:
        """The cell with its operations given in an order; its last tensor is kept."""
        at = {op: position for position, op in enumerate(order)}
        users = {op: {at[op]} for op in order}
        for op in order:
            for read in self.reads[op]:
                users[read].add(at[op])
        last = len(self.reads) - 1
        return OpGraph(
            waits_for=tuple(frozenset(at[read] for read in self.reads[op]) for op in order),
            buffers=tuple(
                LiveBuffer(nbytes=self.nbytes[op], users=frozenset(users[op]), to_end=op == last)
                for op in order
            ),
        )

    def _sorted(self, take: Callable[[deque[int]], int]) -> list[int]:
        waiting = [len(set(reads)) for reads in self.reads]
        readers: list[list[int]] = [[] for _ in self.reads]
        for op, reads in enumerate(self.reads):
            for read in set(reads):
                readers[read].append(op)
        ready = deque(op for op, count in enumerate(waiting) if not count)
        order = []
        while ready:
            op = take(ready)
            order.append(op)
            for reader in readers[op]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        return order


def random_wires(seed: int, nodes: int = 32) -> Cell:
    """RandWire (arXiv 1904.01569): a graph of Watts and Strogatz with 4 neighbours, rewired with
    probability 0.75. A node is a weighted sum of what it reads, ReLU and a separable convolution.
    """
    size, cell, made = _TENSOR_NBYTES, Cell(), list[int]()
    wires = _small_world(random.Random(seed), nodes, neighbours=4, rewired=0.75)
    cell.add(size)
    for node in range(nodes):
        read = [made[other] for other in sorted(wires[node]) if other < node] or [0]
        total = _weighted_sum(cell, size, read) if len(read) > 1 else read[0]
        made.append(cell.chain(total, size, size, size))
    ends = [made[node] for node in range(nodes) if max(wires[node]) < node]
    cell.chain(_weighted_sum(cell, size, ends), size)
    return cell


def searched_cells(seed: int, cells: int = 8, nodes: int = 4) -> Cell:
    """DARTS (arXiv 1806.09055): a cell reads the two before it; each of its nodes sums two
    operations on earlier tensors, and all nodes are concatenated.
    """
    draw, size, net = random.Random(seed), _TENSOR_NBYTES, Cell()
    older = net.add(size)
    newer = net.add(size, older)
    for _ in range(cells):
        made = [net.chain(read, net.nbytes[read], size) for read in (older, newer)]
        for _ in range(nodes):
            read = draw.sample(made, 2)
            lengths = [draw.choice(_SEARCHED) for _ in read]
            parts = [net.chain(r, *[size] * n) for r, n in zip(read, lengths, strict=True)]
            made.append(net.add(size, *parts))
        older, newer = newer, net.add(nodes * size, *made[2:])
    return net


_SEARCHED: Final = (6, 6, 6, 3, 1, 0)
"""Operations of DARTS in kernels: separable convolutions (twice ReLU, depthwise, pointwise), which
it finds most, dilated ones, pooling, none.
"""


def unlike_branches(seed: int, branches: int = 24) -> Cell:
    """As in SwiftNet: branches of one to three convolutions, wide and narrow, that read and add one
    another; what nobody reads is concatenated.
    """
    draw, cell = random.Random(seed), Cell()
    made = [cell.add(32 * 256)]
    for _ in range(branches):
        narrow = draw.choice((8, 16, 24, 32)) * 256
        wide = draw.choice((1, 2, 3)) * narrow
        widths = [wide] * draw.choice((0, 1, 2, 2)) + [narrow]
        branch = cell.chain(draw.choice(made[-8:]), *widths)
        made.append(cell.add(narrow, branch, cell.add(narrow, draw.choice(made))))
    read = {tensor for reads in cell.reads for tensor in reads}
    ends = [tensor for tensor in made if tensor not in read]
    cell.add(sum(cell.nbytes[end] for end in ends), *ends)
    return cell


CELL_KINDS: Final[Mapping[str, Callable[[int], Cell]]] = {
    "random wires": random_wires,
    "searched cells": searched_cells,
    "unlike branches": unlike_branches,
}
"""The kinds by name: from a seed to a cell."""


def _weighted_sum(cell: Cell, size: int, read: Sequence[int]) -> int:
    total = cell.add(size, read[0])
    for other in read[1:]:
        total = cell.add(size, total, cell.add(size, other))
    return total


def _small_world(
    draw: random.Random, nodes: int, *, neighbours: int, rewired: float
) -> list[set[int]]:
    """A ring in which each node knows its nearest, with some wires led elsewhere (Watts, 1998)."""
    ring = [
        (node, (node + distance) % nodes)
        for distance in range(1, neighbours // 2 + 1)
        for node in range(nodes)
    ]
    wires: list[set[int]] = [set() for _ in range(nodes)]
    for node, other in ring:
        wires[node].add(other)
        wires[other].add(node)
    for node, other in ring:
        strangers = [n for n in range(nodes) if n != node and n not in wires[node]]
        if draw.random() < rewired and strangers:
            new = draw.choice(strangers)
            wires[node].remove(other)
            wires[other].remove(node)
            wires[node].add(new)
            wires[new].add(node)
    return wires
