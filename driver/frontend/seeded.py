"""Seeded random inputs for a network without data: they prove bits, not accuracy."""

from __future__ import annotations

import numpy as np

from driver.frontend.data import Dataset
from driver.graph.ir import FloatArray, Graph, GraphInput


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
        least = given.grid.lo if reach is None or given.grid.lo >= 0 else -reach
        most = given.grid.hi if reach is None else min(given.grid.hi, reach)
        reals = rng.uniform(least, most, shape)
        return given.grid.reals(given.grid.integers(reals))
    values = rng.standard_normal(shape) if reach is None else rng.uniform(-reach, reach, shape)
    return values.astype(np.float32)
