"""Inputs to try a kernel on: full-range operands whose results use the whole int8 range."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.workload import PLANE, TensorSpec, Workload

from driver.network.integer.qir import MAX_WIDE
from driver.network.integer.winograd import COLUMNS, points_of

_WANTED_SPREAD = 64.0
_INT8_SPREAD = 74.0
"""Standard deviation of integers that are uniform over -128..127."""
_MOST_SPREAD: Final = float(1 << 28)
"""Standard deviation of sums that int32 holds: it is eight times as much."""
MOST_SHIFT: Final = 30
_MOST_WEIGHT: Final = 255
"""A weight of 8 bits less its zero point."""
_FILTERED: Final = "qlinear_winograd2d"
"""Its weights of int16 are made of taps of int8."""
_MOST_FACTOR = 300
_MOST_TAPS: Final = 1 << 16
"""Magnitude of sums of weights: 512 of the largest."""


def sample_inputs(
    workload: Workload, seed: int, max_shift: int = MOST_SHIFT
) -> dict[str, NDArray[Any]]:
    """An array for every input by name; the same for equal workloads and seeds.

    int8 operands are uniform over their whole range, float32 ones normal. Shifts differ between
    lanes and are chosen so that the spread of most results is about half of int8: a kernel that
    drops a term, a lane or the rounding is seen. None is above `max_shift`.
    """
    rng = np.random.default_rng([seed, int(workload.digest.hex[:8], 16)])
    arrays = {spec.name: _operand(spec, rng) for spec in workload.inputs}
    match workload.operator:
        case "conv2d" | "dense" | "conv2d_transpose" | "matmul":
            arrays |= _layer_lanes(workload, rng, max_shift)
        case "scaled_add" | "window_max2d" | "window_sum2d":
            arrays |= _diagonal_tiles(workload, rng)
        case "qlinear_conv2d" | "qlinear_depthwise2d" | "qlinear_conv2d_transpose":
            arrays |= _scaled_lanes(workload, rng)
        case "qlinear_avg_pool2d":
            elements = math.prod(workload.attr_ints("kernel"))
            scales = rng.uniform(0.5, 1.0, workload.inputs[1].shape) / elements
            arrays["scale"] = scales.astype(np.float32)
        case "quantize_linear":
            reach = 140.0 * workload.attr_float("scale")
            shape = workload.inputs[0].shape
            arrays["x"] = rng.uniform(-reach, reach, shape).astype(np.float32)
        case "dynamic_quantize_linear" | "dynamic_bias":
            arrays |= _grids(workload, rng)
        case "qlinear_winograd2d":
            arrays |= _scaled_lanes(workload, rng)
            arrays["weight"] = _points(workload, rng)
        case "affine":
            arrays |= _affine_lanes(workload, rng)
        case "avg_pool2d":
            arrays["mul"] = _mean_multipliers(workload, rng)
        case "softmax":
            scale = float(rng.uniform(0.02, 0.2))
            arrays["table"] = np.exp(-np.arange(256) * scale).astype(np.float32)
        case "product":
            most = 1 << workload.attr_int("shift")
            arrays["table"] = rng.integers(-most, most + 1, 256, np.int32)
        case "gather":
            (_, elements), (_, places) = workload.inputs[0].shape, workload.outputs[0].shape
            arrays["index"] = rng.integers(-1, elements, places, np.int32)
        case "real_take":
            many, columns = workload.inputs[0].shape, workload.inputs[1].shape[2]
            arrays["places"] = rng.uniform(-columns - 1, columns + 1, many).astype(np.float32)
        case "quantize" | "quantize_windows":
            reach = 140.0 / workload.attr_float("inv_scale")
            shape = workload.inputs[0].shape
            arrays["x"] = rng.uniform(-reach, reach, shape).astype(np.float32)
    return arrays


def _operand(spec: TensorSpec, rng: np.random.Generator) -> NDArray[Any]:
    if spec.dtype is DType.INT8:
        return rng.integers(-128, 128, spec.shape, dtype=np.int8)
    if spec.dtype is DType.UINT8:
        return rng.integers(0, 256, spec.shape, dtype=np.uint8)
    if spec.dtype is DType.INT16:
        return rng.integers(-_MOST_WEIGHT, _MOST_WEIGHT + 1, spec.shape, dtype=np.int16)
    if spec.dtype.is_float:
        return rng.standard_normal(spec.shape).astype(np.float32)
    return np.zeros(spec.shape, spec.dtype.value)


def _layer_lanes(
    workload: Workload, rng: np.random.Generator, max_shift: int
) -> dict[str, NDArray[Any]]:
    """Factors, and shifts that fit the sums. Biases are uniform, as are the rows for them.

    Data, weights and biases in planes are smaller where no shift, or no int32, fits their sums.
    """
    factor, shift = workload.tensor("factor"), workload.tensor("shift")
    lanes: dict[str, NDArray[Any]] = {}
    spread = _INT8_SPREAD**2 * math.sqrt(_terms(workload)) / (1 << workload.first_shift)
    if factor is not None:
        lanes["factor"] = _lane_values(factor, rng, -_MOST_FACTOR, _MOST_FACTOR + 1)
        spread *= _MOST_FACTOR / math.sqrt(3)
    results = _WANTED_SPREAD * (PLANE if workload.out_planes > 1 else 1)
    if workload.is_in_planes:
        most = min(max_shift, MOST_SHIFT) - 1  # shifts differ by one
        wanted = min(_MOST_SPREAD, results * (1 << most)) if shift else _MOST_SPREAD
        names = [*["weight"] * (workload.planes > 1), *["data"] * (workload.data_planes > 1)]
        part = min(1.0, wanted / (spread * PLANE ** len(names)))
        several = (workload.tensor(name) for name in (*names, "bias"))
        each = part ** (1 / len(names))
        lanes |= {spec.name: _planes(spec, rng, each) for spec in several if spec is not None}
        spread *= PLANE ** len(names) * part
    if shift is not None:
        base = round(math.log2(spread / results))
        moved = np.clip(base + _lane_values(shift, rng, -1, 2), 0, min(max_shift, MOST_SHIFT))
        lanes["shift"] = moved.astype(np.int32)
    return lanes


def _scaled_lanes(workload: Workload, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Scales that give most results half of what 8 bits hold, and biases that move none much."""
    scale, bias = workload.inputs[3], workload.inputs[2]
    weight = workload.inputs[1].shape
    phases = 3 if workload.operator == "qlinear_conv2d_transpose" else 1
    terms = math.prod(weight[phases:]) // weight[-2]
    wider = 2 if workload.inputs[1].dtype is DType.INT16 and workload.operator != _FILTERED else 1
    spread = wider * _INT8_SPREAD**2 * math.sqrt(terms)
    lanes = rng.uniform(0.5, 2.0, scale.shape) * _WANTED_SPREAD / spread
    biases = rng.normal(0, spread, bias.shape)
    found = {"scale": lanes.astype(np.float32), "bias": biases.astype(np.int32)}
    if (addend := workload.tensor("addend")) is not None:
        found["addend"] = rng.normal(0, _WANTED_SPREAD, addend.shape).astype(np.float32)
    return found


def _grids(workload: Workload, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Grids of uint8 that normal data mostly stay within; sums of weights, and biases."""
    found: dict[str, NDArray[Any]] = {
        spec.name: rng.integers(-_MOST_TAPS, _MOST_TAPS, spec.shape, np.int32)
        for spec in workload.inputs
        if spec.dtype is DType.INT32
    }
    for spec in workload.inputs:
        if spec.name == "grid":
            scales = rng.uniform(0.01, 0.03, spec.shape[0])
            zeros = rng.integers(0, 256, spec.shape[0])
            found["grid"] = np.stack((scales, zeros), axis=1).astype(np.float32)
    return found


def _points(workload: Workload, rng: np.random.Generator) -> NDArray[np.int16]:
    """Weights of minimal filtering, of uniform taps."""
    co, _, *rest = workload.inputs[1].shape
    taps = rng.integers(-128, 128, (co, *rest, COLUMNS), dtype=np.int8)
    return np.ascontiguousarray(np.moveaxis(points_of(taps), -1, 1))


def _planes(spec: TensorSpec, rng: np.random.Generator, part: float) -> NDArray[np.int8]:
    """Data or weights in two planes, uniform over a part of what 16 bits hold."""
    most = max(1, int(part * MAX_WIDE))
    values = rng.integers(-most, most + 1, (spec.shape[0], *spec.shape[2:]), np.int32)
    low = ((values + PLANE // 2) & (PLANE - 1)) - PLANE // 2
    return np.stack((values - low >> 8, low), axis=1).astype(np.int8)


def _terms(workload: Workload) -> int:
    """How many products one result is the sum of."""
    *axes, _, lanes = workload.inputs[1].shape
    match workload.operator:
        case "conv2d_transpose":
            axes = axes[3:]
        case "matmul":
            axes = axes[1:2]
        case _ if workload.planes > 1:
            axes = axes[2:]
        case _:
            axes = axes[1:]
    return math.prod(axes) * lanes


def _diagonal_tiles(workload: Workload, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Diagonals whose products fit the workload's shift; an identity is one."""
    tiles = {}
    for spec in workload.inputs:
        if spec.name == "identity":
            tiles[spec.name] = np.eye(spec.shape[0], dtype=np.int8)
        elif len(spec.shape) == 2:
            most = _largest_scale(workload)
            scales = rng.integers(-most, most + 1, spec.shape[0])
            tiles[spec.name] = np.diag(np.where(scales, scales, 1)).astype(np.int8)
    return tiles


def _largest_scale(workload: Workload) -> int:
    """The multiplier that the shift takes back from a sum over the whole window."""
    window = workload.attr_ints("kernel") if workload.operator == "window_sum2d" else (1,)
    terms = math.prod(window)
    gain = (1 << workload.attr_int("shift")) / math.sqrt(terms)
    return int(np.clip(gain, 1, 127))


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
    """Random values per channel [C/c, b, c], equal over b, or any of another shape."""
    if len(spec.shape) != 3:
        return rng.integers(low, high, spec.shape, dtype=np.int32)
    groups, batch, block = spec.shape
    values = rng.integers(low, high, (groups, 1, block), dtype=np.int32)
    return np.ascontiguousarray(np.broadcast_to(values, (groups, batch, block)))


def _half(shift: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0).astype(np.int32)
