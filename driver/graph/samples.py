"""Inputs to try a kernel on: full-range operands whose results use the whole int8 range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec, Workload

_WANTED_SPREAD = 64.0
_INT8_SPREAD = 74.0
"""Standard deviation of integers that are uniform over -128..127."""
_MAX_SHIFT = 30


def sample_inputs(workload: Workload, seed: int) -> dict[str, NDArray[Any]]:
    """An array for every input by name; the same for equal workloads and seeds.

    int8 operands are uniform over their whole range. Shifts differ between lanes and are chosen so
    that the spread of most results is about half of int8: a kernel that drops a term, a lane or the
    rounding is seen.
    """
    rng = np.random.default_rng([seed, int(workload.digest.hex[:8], 16)])
    arrays = {spec.name: _operand(spec, rng) for spec in workload.inputs}
    match workload.operator:
        case "conv2d" | "dense":
            arrays |= _layer_lanes(workload, rng)
        case "affine":
            arrays |= _affine_lanes(workload, rng)
        case "avg_pool2d":
            arrays["mul"] = _mean_multipliers(workload, rng)
        case "softmax":
            scale = float(rng.uniform(0.02, 0.2))
            arrays["table"] = np.exp(-np.arange(256) * scale).astype(np.float32)
        case "quantize":
            reach = 140.0 / workload.attr_float("inv_scale")
            shape = workload.inputs[0].shape
            arrays["x"] = rng.uniform(-reach, reach, shape).astype(np.float32)
    return arrays


def _operand(spec: TensorSpec, rng: np.random.Generator) -> NDArray[Any]:
    if spec.dtype is DType.INT8:
        return rng.integers(-128, 128, spec.shape, dtype=np.int8)
    return np.zeros(spec.shape, spec.dtype.numpy)


def _layer_lanes(workload: Workload, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Biases of about the size of the sums, rounding included, and shifts that fit them."""
    weight, lanes = workload.inputs[1], workload.inputs[2]
    terms = math.prod(weight.shape[1:-2]) * weight.shape[-1]
    spread = _INT8_SPREAD**2 * math.sqrt(terms)
    base = round(math.log2(spread / _WANTED_SPREAD))
    shift = np.clip(base + _lane_values(lanes, rng, -1, 2), 0, _MAX_SHIFT)
    bias = _lane_values(lanes, rng, -int(spread), int(spread) + 1)
    return {"bias": bias + _half(shift), "shift": shift}


def _affine_lanes(workload: Workload, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    lanes = workload.inputs[1]
    shift = _lane_values(lanes, rng, 5, 8)
    add = _lane_values(lanes, rng, -2048, 2049)
    mul = _lane_values(lanes, rng, -127, 128)
    return {"mul": mul, "add": add + _half(shift), "shift": shift}


def _mean_multipliers(workload: Workload, rng: np.random.Generator) -> NDArray[np.int32]:
    """Multipliers near the true mean's, so that `(sum * mul) >> shift` stays within int8."""
    elements = math.prod(workload.attr_ints("kernel"))
    mean = max(1, (1 << workload.attr_int("shift")) // elements)
    return rng.integers(max(1, mean - mean // 4), mean + 1, workload.inputs[1].shape, np.int32)


def _lane_values(
    spec: TensorSpec, rng: np.random.Generator, low: int, high: int
) -> NDArray[np.int32]:
    """Random values per channel [C/c, b, c], equal over b."""
    groups, batch, block = spec.shape
    values = rng.integers(low, high, (groups, 1, block), dtype=np.int32)
    return np.ascontiguousarray(np.broadcast_to(values, (groups, batch, block)))


def _half(shift: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0).astype(np.int32)
