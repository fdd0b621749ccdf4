"""Lifetimes as those of a network's tensors: most are read soon, some skip far ahead."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from driver.benchmarks.figures import Figure
from driver.memory.allocate import Allocation, Interval, allocate

GRAPHS: Final = 500
_ALIGNMENT: Final = 64
_NODES: Final = 200_000


def figures(clock: Callable[[], float]) -> list[Figure]:
    """How many have a proven optimum, and how long one takes."""
    graphs = [everyday_graph(seed) for seed in range(GRAPHS)]
    began = clock()
    answers = [allocate(graph, nodes=_NODES, seconds=60.0) for graph in graphs]
    seconds = clock() - began
    proven = sum(isinstance(each, Allocation) and each.is_optimal for each in answers)
    return [
        Figure(name="proven", value=proven, unit="graphs", goal=len(graphs), more_is_better=True),
        Figure(name="without the search", value=sum(not a.nodes for a in answers), unit="graphs"),
        Figure(name="mean of a graph", value=seconds / len(graphs) * 1e6, unit="us", goal=1000.0),
    ]


def everyday_graph(seed: int) -> list[Interval]:
    """20 to 200 tensors in the order in which they are written."""
    random_ = random.Random(seed)
    count = random_.randint(20, 200)
    channel_nbytes = random_.choice((1024, 4096, 50176, 100352))
    graph = []
    for at in range(count):
        readers = random_.choice((1, 1, 1, 2, 3))
        last = max(at + 1 + int(random_.expovariate(0.5)) for _ in range(readers))
        if random_.random() < 0.05:
            last = at + random_.randint(5, 40)
        nbytes = channel_nbytes * random_.choice((1, 1, 2, 2, 3, 4)) >> random_.randint(0, 3)
        graph.append(
            Interval(
                lower=at, upper=min(last, count) + 1, nbytes=max(nbytes, 64), alignment=_ALIGNMENT
            )
        )
    return graph
