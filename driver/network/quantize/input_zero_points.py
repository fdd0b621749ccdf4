"""Where the middle of what the user gives is: said by the model, or seen in the calibration data.

Images of 256 levels become the very same integers, where around zero every second level would be
lost. So do the inputs of a model that was quantized before, whether it takes integers or rounds
reals to them: what is beyond their ends becomes an end, as it does in the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from driver.network.graph.ir import FloatArray, Graph
from driver.network.integer.qir import INT8_MAX, INT8_MIN
from driver.network.quantize.zero_points import LEVELS, ZeroPoint, middle_of_ends

_OFF_GRID: Final = 1e-3
"""Of a step: what rounding to float32 makes of a grid at most."""
_LOOKED_AT: Final = 1 << 14
_MUCH_FINER: Final = 0.8
"""Of a step around zero: where a middle gains less, room for values beyond the data is worth more.
"""


def input_zero_points(
    graph: Graph, ranges: Mapping[str, float], calibration: Mapping[str, FloatArray] | None
) -> dict[str, ZeroPoint]:
    """What could be taken from what the user gives, by its type or by the calibration data.

    Zero is among the values in any case, as layers pad with it; values that lie on a grid of 256
    levels keep it.
    """
    found = {}
    for i in graph.inputs:
        middle = None
        grid = i.grid or i.rounding
        if grid is not None and grid.hi - grid.lo <= (LEVELS + 0.5) * grid.scale:
            middle = middle_of_ends(grid.lo, grid.hi)
        elif calibration is not None and i.name not in graph.ranges:
            middle = _middle_of_values(calibration[i.name], ranges[i.name])
        if middle is not None:
            found[i.name] = middle
    return found


def _middle_of_values(values: FloatArray, reach: float) -> ZeroPoint | None:
    lo = min(max(float(values.min()), -reach), 0.0)
    hi = max(min(float(values.max()), reach), 0.0)
    grid = _step_of_grid(values)
    if grid is not None and hi - lo <= LEVELS * grid:
        # as many levels between those of the grid as there is room for: other data may need them
        step = grid / math.floor(LEVELS * grid / (hi - lo))
        return ZeroPoint(real=lo - INT8_MIN * step, reach=INT8_MAX * step)
    step = (hi - lo) / LEVELS
    if step > _MUCH_FINER * max(-lo, hi) / INT8_MAX:
        return None
    return ZeroPoint(real=round(lo / step - INT8_MIN) * step, reach=INT8_MAX * step)


def _step_of_grid(values: FloatArray) -> float | None:
    """The distance of neighbours if values lie on a grid of at most 256 levels, else None.

    Some of them are looked at: a stray one would be rounded, as any value is.
    """
    some = values.reshape(-1)[:: max(1, values.size // _LOOKED_AT)]
    levels = np.unique(some).astype(np.float64)
    if not 1 < len(levels) <= LEVELS + 1:
        return None
    places = (levels - levels[0]) / np.diff(levels).min()
    count = round(places[-1])
    is_even = np.abs(places - np.rint(places)).max() < _OFF_GRID
    return float((levels[-1] - levels[0]) / count) if is_even and count <= LEVELS else None
