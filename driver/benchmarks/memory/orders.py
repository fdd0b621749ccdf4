"""Cells that no person wired: the peak of live bytes in usual orders, by that in the best one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import geometric_mean
from typing import Final

from driver.benchmarks.figures import Figure
from driver.benchmarks.memory.random_cells import CELL_KINDS, Cell
from driver.memory.order import PeakOrder, least_peak_order

SEEDS: Final = {"random wires": 10, "searched cells": 2, "unlike branches": 6}
"""Cells of each kind: twice as many as among the nine networks of SERENITY (arXiv 2003.02369)."""
_SERENITY: Final = 1.68
"""What SERENITY gains there by the order alone: the geometric mean of the peak in the order of
TensorFlow Lite by that in its own.
"""
_SECONDS: Final = 30.0
"""Of one cell, in Python; SERENITY takes less than a minute."""

ORDERS: Final = {
    "breadth-first": Cell.breadth_first,
    "depth-first": Cell.depth_first,
    "as written": Cell.as_written,
}
"""Breadth-first is the baseline: what exporters give. The others are there so that nobody takes a
gain on a poor order for a gain on any: the order of a model's code often is a good one.
"""


def figures(clock: Callable[[], float]) -> list[Figure]:
    """Gains on the usual orders by kind and over all, proven optima, and seconds."""
    cells = {kind: [CELL_KINDS[kind](seed) for seed in range(n)] for kind, n in SEEDS.items()}
    found: dict[str, list[PeakOrder]] = {}
    longest = 0.0
    for kind, mine in cells.items():
        found[kind] = []
        for cell in mine:
            began = clock()
            found[kind].append(least_peak_order(cell.graph(cell.breadth_first())))
            longest = max(longest, clock() - began)
    rows = []
    for order in ORDERS:
        gains = {kind: _gains(order, mine, found[kind]) for kind, mine in cells.items()}
        rows += [
            Figure(name=f"{order}, {kind}", value=geometric_mean(each), unit="x")
            for kind, each in gains.items()
        ]
        rows.append(
            Figure(
                name=f"{order}, all",
                value=geometric_mean([gain for each in gains.values() for gain in each]),
                unit="x",
                goal=_SERENITY if order == "breadth-first" else None,
                more_is_better=True,
            )
        )
    proven = sum(each.is_optimal for mine in found.values() for each in mine)
    return [
        *rows,
        Figure(name="proven orders", value=proven, unit=f"of {sum(SEEDS.values())}"),
        Figure(name="longest search of an order", value=longest, unit="s", goal=_SECONDS),
    ]


def _gains(order: str, cells: Sequence[Cell], found: Sequence[PeakOrder]) -> list[float]:
    """The peak of each cell in an order by the best one."""
    gains = []
    for cell, best in zip(cells, found, strict=True):
        graph = cell.graph(ORDERS[order](cell))
        gains.append(graph.peak_nbytes(range(len(best.order))) / best.peak_nbytes)
    return gains
