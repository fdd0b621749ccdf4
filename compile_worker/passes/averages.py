"""The average of an expression over the loops that it depends on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compile_worker.ir.evaluate import evaluate
from compile_worker.ir.expr import Const, Expr, Var
from compile_worker.ir.visit import variables


def mean(expr: Expr, extents: Mapping[Var, int]) -> float:
    """The mean over all iterations; of a condition, how often it holds."""
    if isinstance(expr, Const):
        return float(expr.value)
    axes = sorted(variables(expr), key=lambda var: var.name)
    grids = np.meshgrid(*(np.arange(extents[var]) for var in axes), indexing="ij")
    return float(np.mean(evaluate(expr, dict(zip(axes, grids, strict=True)), {})))
