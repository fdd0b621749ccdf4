"""Interpolation between the entries of one axis, as a matrix: linear and cubic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.frontend.call import OnnxCall
from driver.network.graph.ir import FloatArray

_CUBIC: Final = -0.75


@dataclass(frozen=True, slots=True)
class Interpolation:
    """How much an entry counts by its distance: 1 - |t|, or a cubic where `cubic` is its slope.

    Distances are shrunk by `shrink`, so that an axis that gets shorter is smoothed. With
    `leaves_out`, what lies outside counts nothing; otherwise it is the entry at the border.
    """

    cubic: float | None
    shrink: float
    leaves_out: bool

    @property
    def reach(self) -> float:
        """The distance from which on entries count nothing."""
        return (1 if self.cubic is None else 2) / self.shrink

    def weights(self, away: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much entries so far away count."""
        t = np.abs(away * self.shrink)
        if self.cubic is None:
            return np.asarray(np.maximum(0, 1 - t))
        a = self.cubic
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = (((t - 5) * t + 8) * t - 4) * a
        return np.where(t < 1, near, np.where(t < 2, far, 0))


def interpolation_of(call: OnnxCall, scale: float) -> Interpolation:
    """The kernel of a Resize along an axis that grows by `scale`."""
    cubic = call.text("mode", "") == "cubic"
    smooths = bool(call.integer("antialias", 0))
    return Interpolation(
        call.number("cubic_coeff_a", _CUBIC) if cubic else None,
        min(1.0, scale) if smooths else 1.0,
        bool(call.integer("exclude_outside", 0)),
    )


def weights_between(where: NDArray[np.float64], extent: int, kernel: Interpolation) -> FloatArray:
    """The matrix [places, extent] whose rows sum to 1.

    Args:
        where: the coordinate of every place along the axis.
        extent: how many entries the axis has.
    """
    reach = int(np.ceil(kernel.reach))
    taps = np.floor(where)[:, None].astype(np.int64) + np.arange(1 - reach, reach + 1)
    weights = kernel.weights(taps - where[:, None])
    if kernel.leaves_out:
        weights = np.where((taps >= 0) & (taps < extent), weights, 0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    matrix = np.zeros((len(where), extent))
    rows = np.broadcast_to(np.arange(len(where))[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, extent - 1)), weights)
    return matrix.astype(np.float32)
