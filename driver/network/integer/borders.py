"""Outputs with a border: what is written of them, and what fills the border.

A single workload's output is zero where nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.workload import Workload

Array: TypeAlias = NDArray[Any]


def written(workload: Workload) -> NDArray[np.bool_]:
    """Which rows and columns of its output [..., H, W, b, c] a workload writes, as [H, W, 1, 1].

    Without a border it writes all, whatever the output's rank.
    """
    top, left, bottom, right = workload.border
    if not any(workload.border):
        return np.ones((), np.bool_)
    rows, columns = workload.outputs[0].shape[-4:-2]
    inside = np.zeros((rows, columns, 1, 1), np.bool_)
    inside[top : rows - bottom, left : columns - right] = True
    return ~inside if workload.operator == "border" else inside


def surrounded(workload: Workload, results: Array) -> Array:
    """Results within the workload's border, if it has one."""
    top, left, bottom, right = workload.border
    around = ((top, bottom), (left, right), (0, 0), (0, 0))
    outer = ((0, 0),) * (results.ndim - len(around))
    return np.pad(results, (*outer, *around)) if any(workload.border) else results


def border(workload: Workload, arrays: Mapping[str, Array]) -> Array:
    """The bytes of a border."""
    del arrays
    filled = np.full(workload.outputs[0].shape, workload.attr_int("fill"), np.int8)
    return np.asarray(np.where(written(workload), filled, 0), np.int8)
