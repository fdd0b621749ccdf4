"""The average of an expression over the loops that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

import numpy as np

from compile_worker.ir.evaluate import Value, evaluate
from compile_worker.ir.expr import Const, Expr, Load, Var
from compile_worker.ir.visit import find, variables

_MOST: Final = 1 << 20
"""Iterations that are all looked at; of more, so many are drawn."""

_UNKNOWN: Final = 0.5


def mean(expr: Expr, extents: Mapping[Var, int]) -> float:
    """The mean over all iterations; of a condition, how often it holds.

    What elements say is not known before there are any: taken for true one time in two.
    """
    if isinstance(expr, Const):
        return float(expr.value)
    if next(find(expr, Load), None) is not None:
        return _UNKNOWN
    axes = sorted(variables(expr), key=lambda var: var.name)
    return float(np.mean(evaluate(expr, _iterations({var: extents[var] for var in axes}), {})))


def _iterations(extents: Mapping[Var, int]) -> dict[Var, Value]:
    """Values of loop variables, an array each: all there are, or some drawn alike every time."""
    if prod(extents.values()) > _MOST:
        rng = np.random.default_rng(0)
        return {var: rng.integers(0, extent, _MOST) for var, extent in extents.items()}
    grids = np.meshgrid(*map(np.arange, extents.values()), indexing="ij", sparse=True)
    return dict(zip(extents, grids, strict=True))
