"""Seeded random inputs for a network without data: they prove bits, not accuracy."""

from __future__ import annotations

import numpy as np

from driver.network.frontend.data import Dataset
from driver.network.graph.grid import Grid
from driver.network.graph.ir import FloatArray, Graph, GraphInput


def seeded_data(graph: Graph, samples: int, seed: int = 0) -> Dataset:
    """Inputs [samples, ...] without labels; the same graph, number and seed give the same.

    Values are uniform over the range that the model gives for an input, integers where it takes
    these; without a range they are normal with deviation 1.
    """
    rng = np.random.default_rng(seed)
    return Dataset({i.name: _values(i, graph, samples, rng) for i in graph.inputs}, None)


def _values(given: GraphInput, graph: Graph, samples: int, rng: np.random.Generator) -> FloatArray:
    shape = (samples, *given.shape[1:])
    reach = graph.ranges.get(given.name)
    if given.grid is not None:
        reals = rng.uniform(*_ends(given.grid, reach), shape)
        return given.grid.reals(given.grid.integers(reals))
    if given.rounding is not None:
        values = rng.uniform(*_ends(given.rounding, reach), shape)
    else:
        values = rng.standard_normal(shape) if reach is None else rng.uniform(-reach, reach, shape)
    return values.astype(np.float32)


def _ends(grid: Grid, reach: float | None) -> tuple[float, float]:
    """The least and the largest real of an input of integers, or one that is rounded to them.

    Ids are entries of what they name. Of other wide integers, masks and kinds of tokens, 0 and 1
    are what any network has a meaning for.
    """
    if reach is not None:
        return max(grid.lo, -reach), min(grid.hi, reach)
    return (0.0, 1.0) if grid.is_counted and grid.is_whole else (grid.lo, grid.hi)
