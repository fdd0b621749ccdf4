"""Weights rounded to fit: the whole numbers whose sums are nearest to those of the real weights.

Rounding each weight to the nearest number is best for the weights, not for the sums: errors of
weights whose operands rise and fall together add up, or cancel if one of them is rounded the other
way. Sums are compared by the covariance of the operands. Starting from the nearest numbers, one
weight after the other takes the number that is best beside the others, which never makes the sums
worse. Sources: M. Nagel et al., Up or Down? Adaptive Rounding for Post-Training Quantization, ICML
2020, for the aim; coordinate descent as in K. Behdin et al., QuantEase, 2023.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64]

_SWEEPS: Final = 4
"""Over all weights; few change in the last ones."""
_BAND: Final = 64
"""Weights whose changes are brought to the others at once: a product of matrices."""
_OWN_SHARE: Final = 0.05
"""Of the mean variance, what every operand varies by itself besides: data that calibration has not
seen have other covariances."""


def fitted(rows: Reals, covariance: Reals, most: int) -> Reals:
    """Whole numbers [G, R, K] within -most..most for real rows and the covariance [G, K, K]."""
    spread = np.trace(covariance, axis1=1, axis2=2) / covariance.shape[1]
    own = (_OWN_SHARE * spread)[:, None, None] * np.eye(covariance.shape[1])
    return np.stack([_fitted(r, h, most) for r, h in zip(rows, covariance + own, strict=True)])


def _fitted(rows: Reals, h: Reals, most: int) -> Reals:
    """That of one group."""
    whole = np.clip(np.rint(rows), -most, most)
    if not np.diag(h).any():
        return whole
    for _ in range(_SWEEPS):
        pull = (whole - rows) @ h
        moved = False
        for start in range(0, rows.shape[1], _BAND):
            band = slice(start, start + _BAND)
            change = _band_changes(whole[:, band], pull[:, band], h[band, band], most)
            if change.any():
                moved = True
                whole[:, band] += change
                pull[:, start + _BAND :] += change @ h[band, start + _BAND :]
        if not moved:
            break
    return whole


def _band_changes(whole: Reals, pull: Reals, h: Reals, most: int) -> Reals:
    """What each weight of some columns changes by, one column after the other."""
    change, pull = np.zeros_like(whole), pull.copy()
    for k, own in enumerate(np.diag(h)):
        step = np.clip(whole[:, k] + np.rint(-pull[:, k] / own), -most, most) - whole[:, k]
        rows = np.flatnonzero(step)
        if rows.size:
            change[rows, k] = step[rows]
            pull[rows, k + 1 :] += step[rows, None] * h[k, k + 1 :]
    return change
