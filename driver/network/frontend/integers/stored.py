"""Scales and zero points of ONNX, and constants that are quantized with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray

from driver.network.frontend.call import Array, OnnxCall, RefusedError, axis_within
from driver.network.graph.grid import BOUNDS, Grid
from driver.network.graph.ir import FloatArray, Shape

_MADE: Final = frozenset(BOUNDS) - {"int32", "uint32"}
"""The types that QuantizeLinear makes."""


@dataclass(frozen=True, slots=True)
class QuantizationParameters:
    """An integer type, and scales and zero points in shapes that broadcast over its values."""

    scale: FloatArray
    zero: NDArray[np.int64]
    dtype: str

    @property
    def grid(self) -> Grid | None:
        """The grid of all values, None where parts have grids of their own."""
        if self.scale.size != 1 or self.zero.size != 1:
            return None
        return Grid(float(self.scale.reshape(-1)[0]), int(self.zero.reshape(-1)[0]), self.dtype)

    def reals(self, values: Array) -> FloatArray:
        """What the integers stand for."""
        steps = values.astype(np.int64) - self.zero
        return np.asarray(steps * self.scale.astype(np.float64), np.float32)

    def integers(self, reals: Array) -> Array:
        """The nearest integers, half to even, saturated; narrow types come in int8 or uint8."""
        whole = Grid(1.0, 0, self.dtype)
        return whole.integers(np.rint(reals / self.scale).astype(np.float64) + self.zero)


def steps_of(
    call: OnnxCall, scale: Array, zero: Array | None, shape: Shape, dtype: str | None = None
) -> QuantizationParameters:
    """The steps of values of `shape`: one, one for each entry of the call's axis, or for blocks.

    Args:
        call: whose second input is the scale, with the attributes of De/QuantizeLinear.
        scale: as the model has it.
        zero: as the model has it; None where it is left out.
        shape: of the values.
        dtype: of integers that are there already; None for those that the zero point's type says.

    Raises:
        RefusedError: scales are not positive and finite, the integers are not of a type with equal
            steps, zero points are not of that type, or scales and zero points do not fit the shape
            or each other. All that is wrong is said.
    """
    scale = np.asarray(scale, np.float32)
    made = _made_type(call, zero) if dtype is None else dtype
    reasons = [*_faults_of_scale(scale, repr(call.inputs[1])), *_faults_of_zero(zero, made)]
    if zero is not None and zero.size not in (1, scale.size):
        reasons.append(f"{zero.size} zero points for {scale.size} scales")
    if made not in BOUNDS:
        reasons = [f"its values are {made}; only integers of up to 32 bits are supported", *reasons]
    if reasons:
        raise RefusedError("; ".join(reasons))
    zero = np.zeros(scale.shape, np.int64) if zero is None else zero
    return QuantizationParameters(
        _over(scale, shape, call), _over(zero.astype(np.int64), shape, call), made
    )


def _faults_of_zero(zero: Array | None, dtype: str) -> list[str]:
    """What is wrong with the zero points of integers of that type."""
    if zero is None or dtype not in BOUNDS or zero.dtype.name == dtype:
        return []
    if zero.dtype.name not in BOUNDS:
        return [f"its zero point is {zero.dtype}, not an integer of up to 32 bits"]
    lowest, highest = BOUNDS[dtype]
    beyond = [int(each) for each in zero.reshape(-1) if not lowest <= each <= highest]
    if beyond:
        return [f"its zero point {beyond[0]} is outside {dtype}, {lowest} to {highest}"]
    return [f"its zero point is {zero.dtype}, and its values are {dtype}; give both one type"]


def _faults_of_scale(scale: FloatArray, shown: str) -> list[str]:
    """What is wrong with scales: each kind of fault once."""
    reasons = [] if np.isfinite(scale).all() else [f"scale {shown} is not finite"]
    wrong = scale[scale <= 0]
    if wrong.size:
        reasons.append(f"scale {shown} is {float(wrong.min()):g}; it must be positive")
    return reasons


def positive(scale: FloatArray, shown: str) -> FloatArray:
    """The scales.

    Raises:
        RefusedError: one of them is zero, negative or not finite.
    """
    reasons = _faults_of_scale(scale, shown)
    if reasons:
        raise RefusedError("; ".join(reasons))
    return scale


def dequantized(call: OnnxCall, operands: list[Array]) -> Array:
    """DequantizeLinear of a constant."""
    return parameters_of(call, operands).reals(operands[0])


def parameters_of(call: OnnxCall, operands: list[Array]) -> QuantizationParameters:
    """The steps of the constant of a DequantizeLinear."""
    values, scale, zero = _operands(operands)
    return steps_of(call, scale, zero, values.shape, values.dtype.name)


def quantized(call: OnnxCall, operands: list[Array]) -> Array:
    """QuantizeLinear of a constant."""
    values, scale, zero = _operands(operands)
    if not np.isfinite(values).all():
        raise RefusedError("its values are not all finite")
    return steps_of(call, scale, zero, values.shape).integers(values)


def _operands(operands: list[Array]) -> tuple[Array, Array, Array | None]:
    zero = operands[2] if len(operands) > 2 and operands[2].size else None
    return operands[0], operands[1], zero


def _made_type(call: OnnxCall, zero: Array | None) -> str:
    """The type that QuantizeLinear makes."""
    number = call.integer("output_dtype", 0)
    if zero is not None:
        dtype = zero.dtype.name
    elif number:
        dtype = _type_name(number)
    else:
        dtype = "uint8"
    if dtype not in _MADE:
        raise RefusedError(f"quantizes to {dtype}; only integers of up to 16 bits are supported")
    return dtype


def _type_name(number: int) -> str:
    try:
        return str(onnx.TensorProto.DataType.Name(number)).lower()
    except ValueError:
        raise RefusedError(f"quantizes to the unknown type {number}") from None


def _over(parameter: NDArray[Any], shape: Shape, call: OnnxCall) -> NDArray[Any]:
    """One value, one for each entry of an axis, or one for each block, as it meets an array."""
    block = call.integer("block_size", 0)
    if parameter.size == 1 and not block:
        return parameter.reshape(())
    axis = axis_within(call.integer("axis", 1), len(shape))
    if block and parameter.ndim == len(shape):
        over = np.repeat(parameter, block, axis)
        if over.shape == shape:
            return over
    elif not block and parameter.shape == shape[axis : axis + 1]:
        return parameter.reshape(tuple(-1 if at == axis else 1 for at in range(len(shape))))
    blocks = f" in blocks of {block}" if block else ""
    raise RefusedError(
        f"scales or zero points {list(parameter.shape)} do not fit axis {axis} of"
        f" {list(shape)}{blocks}"
    )
