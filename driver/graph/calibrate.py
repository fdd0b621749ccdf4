"""Ranges of activations over calibration data: how far from zero each tensor goes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from tilefarm.errors import DataError

from driver.graph.float_run import run_float
from driver.graph.ir import FloatArray, Graph


def calibrate(graph: Graph, calibration: FloatArray | Mapping[str, FloatArray]) -> dict[str, float]:
    """The largest magnitude of every tensor over the samples, in the tensor's own unit.

    Args:
        graph: the float network.
        calibration: [samples, ...] per input by name; the array itself for a single input.

    Raises:
        DataError: there are no samples, or a tensor leaves float32 on them.
    """
    arrays = by_name(graph, calibration)
    ranges: dict[str, float] = dict.fromkeys(graph.shapes, 0.0)

    def observe(name: str, values: FloatArray) -> None:
        reach = float(np.abs(values).max())
        if not math.isfinite(reach):
            raise DataError(
                f"calibration drives tensor {name!r} of {graph.name} beyond float32",
                "give data within the range that the network was trained on",
            )
        ranges[name] = max(ranges[name], reach)

    if not all(len(values) for values in arrays.values()):
        raise DataError(f"no samples to calibrate {graph.name} on")
    with np.errstate(over="ignore", invalid="ignore"):
        run_float(graph, arrays, observe=observe)
    return ranges


def by_name(
    graph: Graph, arrays: FloatArray | Mapping[str, FloatArray]
) -> Mapping[str, FloatArray]:
    """Arrays by input name; a lone array belongs to the only input."""
    if isinstance(arrays, Mapping):
        return arrays
    return {graph.inputs[0].name: arrays}
