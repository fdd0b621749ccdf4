"""Ranges of activations over calibration data: how far from zero each tensor has to go."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from tilefarm.errors import DataError

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import FloatArray, Graph
from driver.network.quantize.entropy import entropy_range
from driver.network.quantize.histograms import Histogram, percentile
from driver.network.quantize.methods import MIN_MAX, CalibrationMethod
from driver.network.quantize.observed import Calibration, Observed


def calibrate(
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray],
    method: CalibrationMethod = MIN_MAX,
) -> dict[str, float]:
    """The largest magnitude of every tensor that must not saturate, in the tensor's own unit.

    Args:
        graph: the float network.
        calibration: [samples, ...] per input by name; the array itself for a single input.
            A `Calibration` remembers what else the run tells.
        method: what decides it; by default the largest magnitude over the samples.

    Raises:
        DataError: there are no samples, all of an input are zero, or a tensor leaves float32.
    """
    arrays = by_name(graph, calibration)
    if not all(len(values) for values in arrays.values()):
        raise DataError(
            f"no samples to calibrate {graph.name} on", "give a file with at least one sample"
        )
    ranges: dict[str, float] = dict.fromkeys(graph.shapes, 0.0)
    histograms = {name: Histogram() for name in graph.shapes} if method.kind != "minmax" else {}
    samples = min(map(len, arrays.values()))
    observed = Observed(graph, samples) if isinstance(arrays, Calibration) else None

    def observe(name: str, values: FloatArray) -> None:
        reach = float(max(values.max(), -values.min()))
        if not math.isfinite(reach):
            raise DataError(
                f"calibration drives tensor {name!r} of {graph.name} beyond float32",
                "give data within the range that the network was trained on",
            )
        ranges[name] = max(ranges[name], reach)
        if name in histograms:
            histograms[name].add(values)
        if observed is not None:
            observed.observe(name, values)

    with np.errstate(over="ignore", invalid="ignore"):
        answers = run_float(graph, arrays, observe=observe)
    if isinstance(arrays, Calibration) and observed is not None:
        observed.end(answers)
        arrays.observed = observed
    for i in graph.inputs:
        if i.grid is not None and i.grid.is_whole:
            ranges[i.name] = max(ranges[i.name], 1.0)  # zeros may be all that there is to count
        elif not ranges[i.name]:
            raise DataError(
                f"all {len(arrays[i.name])} samples of input {i.name!r} are zero: no scale fits",
                "calibrate with data like those that the network will see",
            )
    return ranges | {name: _range(each, method) for name, each in histograms.items()}


def _range(histogram: Histogram, method: CalibrationMethod) -> float:
    if method.kind == "entropy":
        return entropy_range(histogram)
    return percentile(histogram, method.percent)


def by_name(
    graph: Graph, arrays: FloatArray | Mapping[str, FloatArray]
) -> Mapping[str, FloatArray]:
    """Arrays by input name; a lone array belongs to the only input."""
    if isinstance(arrays, Mapping):
        return arrays
    return {graph.inputs[0].name: arrays}
