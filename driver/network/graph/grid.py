"""Integers that stand for reals: a scale, a zero point and an integer type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_INT8_MAX: Final = 127
"""What the largest real of a grid becomes in symmetric int8; the smallest may become -128."""

BOUNDS: Final = {
    f"{sign}int{bits}": (0, (1 << bits) - 1) if sign else (-1 << (bits - 1), (1 << (bits - 1)) - 1)
    for bits in (2, 4, 8, 16, 32, 64)
    for sign in ("", "u")
} | {"bool": (0, 1)}
"""The smallest and the largest value of every integer type, by its name; true is 1."""

_WHOLE_REALS: Final = 1 << 53
"""Up to here float64 has every integer."""

_HELD: Final = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}


@dataclass(frozen=True, slots=True)
class Grid:
    """(q - zero) * scale for every q of the integer type `dtype`, one of `BOUNDS`."""

    scale: float
    zero: int
    dtype: str

    @property
    def lo(self) -> float:
        """The smallest real."""
        return (BOUNDS[self.dtype][0] - self.zero) * self.scale

    @property
    def hi(self) -> float:
        """The largest real."""
        return (BOUNDS[self.dtype][1] - self.zero) * self.scale

    @property
    def reach(self) -> float:
        """The magnitude that 127 stands for at the finest symmetric int8 scale that covers it."""
        return max(self.hi, -self.lo * _INT8_MAX / (_INT8_MAX + 1))

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest integer that is told from its neighbours on the way."""
        lowest, highest = BOUNDS[self.dtype]
        return max(lowest, -_WHOLE_REALS), min(highest, _WHOLE_REALS)

    @property
    def held(self) -> str:
        """The type in which numpy holds the integers: those of less than 8 bits come in 8."""
        return _HELD.get(self.dtype, self.dtype)

    @property
    def is_counted(self) -> bool:
        """Whether the type is one for sums and indices, whose ends say nothing of the values."""
        return self.dtype in ("int32", "uint32", "int64", "uint64")

    @property
    def is_whole(self) -> bool:
        """Whether the reals are the integers themselves."""
        return self.scale == 1 and self.zero == 0

    def reals(self, integers: NDArray[Any]) -> NDArray[np.float32]:
        """float32 of the same shape: what ONNX's DequantizeLinear makes."""
        steps = np.asarray(integers).astype(np.int64) - self.zero
        with np.errstate(over="ignore"):
            return np.asarray(steps.astype(np.float32) * np.float32(self.scale), np.float32)

    def integers(self, reals: NDArray[Any]) -> NDArray[Any]:
        """Integers of the same shape, as ONNX's QuantizeLinear makes them: half to even, saturated.

        They come in the type `held`.
        """
        with np.errstate(over="ignore"):
            steps = np.rint(np.asarray(reals, np.float32) / np.float32(self.scale))
        steps = steps.astype(np.float64)
        clipped = np.clip(steps + self.zero, *self.ends)
        return np.asarray(clipped, self.held)

    def __str__(self) -> str:
        return f"{self.dtype} with scale {self.scale:.6g} and zero point {self.zero}"


def own_grid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale and zero point [N, 2] of every sample [N, ...], as DynamicQuantizeLinear makes them.

    They are of uint8 over the range of the sample with 0; of a sample of zeros the scale is 1.
    What is no number counts for nothing; a zero point that is none is 0.
    """
    rows = x.reshape(len(x), -1)
    steps = np.float32(BOUNDS["uint8"][1])
    with np.errstate(all="ignore"):
        lowest = np.fmin.reduce(rows, axis=1, initial=np.float32(0))
        highest = np.fmax.reduce(rows, axis=1, initial=np.float32(0))
        scale = np.where(lowest == highest, np.float32(1), (highest - lowest) / steps)
        zero = whole_within(np.float32(0) - lowest / scale, np.float32(0), steps)
    return np.stack((scale, zero), axis=1).astype(np.float32)


def steps_on_grids(x: NDArray[np.float32], grids: NDArray[np.float32]) -> NDArray[np.int16]:
    """The integers of every sample less their zero point, on the uint8 grids [N, 2] of each."""
    scale, zero = by_sample(grids, x.ndim)
    with np.errstate(all="ignore"):
        steps = whole_within(x / scale, -zero, np.float32(BOUNDS["uint8"][1]) - zero)
    return steps.astype(np.int16)


def by_sample(
    grids: NDArray[np.float32], axes: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Scales and zero points [N, 2] as they meet tensors [N, ...] of so many axes."""
    scale, zero = grids.T.reshape(2, -1, *(1,) * (axes - 1))
    return scale, zero


def whole_within(
    steps: NDArray[np.float32],
    least: NDArray[np.float32] | np.float32,
    most: NDArray[np.float32] | np.float32,
) -> NDArray[np.float32]:
    """Rounded, halves to even, within least..most; the least for what is no number."""
    return np.asarray(np.rint(np.minimum(np.where(steps > least, steps, least), most)))


def on_own_grid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest reals on the grid of each sample."""
    grids = own_grid(x)
    return steps_on_grids(x, grids).astype(np.float32) * by_sample(grids, x.ndim)[0]
