"""What the weights of a layer meet in calibration data: mean and covariance of its operands.

A channel of the result is a sum of products of its weights with a patch of the operand. Its mean
and its variance follow from the mean and the covariance of the patches, for any weights: so what
other weights would do to the layer's results is known without running it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.columns import padded, patches
from driver.network.graph.ir import Affine, Conv2d, ConvTranspose2d, Dense, Window
from driver.network.quantize.channel_weights import Weighted
from driver.network.quantize.weight_chunks import bands

Reals: TypeAlias = NDArray[np.float64]

_MOST_COLUMNS: Final = 2304
"""Of a covariance: beyond it, what it costs is seconds a layer, and only variances are taken."""
_MOST_PRODUCTS: Final = 8 << 30
"""Of a covariance, about two seconds of one core; patches are left out to keep within it."""
_LEAST_PATCHES: Final = 1024
_MOST_PATCHES: Final = 8192
"""Neighbouring patches are alike: more of them say little more."""

_MEAN_OF_HALF: Final = 2 / (math.pi - 2)
"""Of half a normal distribution, the square of the mean over the variance."""
_ALIKE: Final = 0.5
"""The correlation of neighbouring pixels: that of photographs is about 0.9, of features less."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Of the operands of each group of channels, in the operand's own unit.

    Attributes:
        mean: [G, K], over all patches.
        covariance: [G, K, K]; [G, K, 1], the variances, where K is large or no more is known.
    """

    mean: Reals
    covariance: Reals

    @property
    def is_wide(self) -> bool:
        """Whether only the variances are known."""
        return bool(self.covariance.shape[2] != self.covariance.shape[1])

    def about_zero(self) -> Moments:
        """The same as if the mean were an error too: what is not taken from biases."""
        others = self.mean[..., None] if self.is_wide else self.mean[:, None, :]
        square = self.mean[..., None] * others
        return Moments(mean=self.mean, covariance=self.covariance + square)

    def variance_of(self, rows: Reals) -> Reals:
        """[G, R]: the variance of sums with these weights [G, R, K]."""
        if self.is_wide:
            return np.asarray((np.square(rows) @ self.covariance)[..., 0])
        return np.asarray(np.einsum("grk,grk->gr", rows @ self.covariance, rows, optimize=True))


def grouped_rows(op: Weighted, values: NDArray[Any]) -> NDArray[Any]:
    """Weights in the form of the operator's, as rows [G, R, K] of products that are summed."""
    match op:
        case Affine():
            return values.reshape(-1, 1, 1)
        case Conv2d(groups=groups):
            return values.reshape(groups, len(values) // groups, -1)
        case ConvTranspose2d(weight=weight):
            return values.reshape(1, math.prod(weight.shape[:3]), -1)
        case Dense():
            return values[None]


def mean_operands(op: Weighted, mean: Reals) -> Reals:
    """[G, K]: the mean patch, of the operand's mean over samples [C, ...]."""
    return _Patches.of(op, mean[None]).mean()


def mean_sums(op: Weighted, weight: NDArray[Any], mean: Reals) -> Reals:
    """[Co]: the mean of the sums with these weights, in the form of the operator's."""
    rows = grouped_rows(op, weight)
    found = np.empty(rows.shape[:2])
    for band in bands(rows[0]):
        found[:, band] = np.einsum("grk,gk->gr", rows[:, band].astype(np.float64), mean)
    return np.asarray(found.reshape(len(weight), -1).mean(axis=1))


def is_large(op: Weighted) -> bool:
    """Whether its sums have so many operands that shifts and rounding are a small part of it."""
    return bool(grouped_rows(op, op.weight).shape[2] > _MOST_COLUMNS)


def moments(op: Weighted, x: NDArray[Any]) -> Moments:
    """The moments of the operands that the layer reads in x [N, C, ...]."""
    mean = mean_operands(op, x.mean(axis=0, dtype=np.float64))
    all_patches = _Patches.of(op, x)
    groups, columns = mean.shape
    wide = columns > _MOST_COLUMNS
    most = _MOST_PRODUCTS // (groups * columns * (1 if wide else columns))
    most = min(max(most, _LEAST_PATCHES), _MOST_PATCHES)
    rows = all_patches.rows(slice(None, None, max(1, -(-all_patches.count // most))))
    # BLAS makes covariances, in an order of its own, which must not show; numpy makes variances.
    precision = np.float32 if wide else np.float64
    rows = rows.astype(precision) - mean[:, None, :].astype(precision)
    if wide:
        covariance = np.square(rows).mean(axis=1, dtype=np.float64)[..., None]
    else:
        covariance = rows.swapaxes(1, 2) @ rows / rows.shape[1]
    return Moments(mean=mean, covariance=covariance)


def assumed(op: Weighted, *, is_positive: bool) -> Moments:
    """Those of operands of which nothing is known but whether they are ever negative.

    They vary alike, neighbouring pixels of a channel together and channels independently; those
    that are never negative have half of a normal distribution, whose mean counts as an error.
    """
    groups, _, columns = grouped_rows(op, op.weight).shape
    taps = math.prod(op.window.kernel) if isinstance(op, Conv2d | ConvTranspose2d) else 1
    mean = np.full((groups, columns), math.sqrt(_MEAN_OF_HALF) if is_positive else 0.0)
    if columns > _MOST_COLUMNS:
        return Moments(mean=mean, covariance=np.ones((groups, columns, 1)))
    channel = np.kron(np.eye(columns // taps), np.ones((taps, taps)))
    square = _ALIKE * channel + (1 - _ALIKE) * np.eye(columns)
    square = np.broadcast_to(square, (groups, columns, columns))
    return Moments(mean=mean, covariance=square)


@dataclass(frozen=True, slots=True, eq=False)
class _Patches:
    """A view [N, OH, OW, G, ...] of all patches, each group's in the order of its weights."""

    view: NDArray[Any]

    @classmethod
    def of(cls, op: Weighted, x: NDArray[Any]) -> _Patches:
        """The patches of x [N, C, ...] that the layer reads."""
        match op:
            case Affine():
                return cls(np.moveaxis(x.reshape(*x.shape[:2], -1, 1, 1), 1, 3))
            case Dense():
                return cls(x[:, None, None, None])
            case Conv2d(window=window, groups=groups):
                return cls(_windows(x, window, groups))
            case ConvTranspose2d():
                return cls(_windows(x, op.window, 1))

    @property
    def count(self) -> int:
        """How many there are."""
        return math.prod(self.view.shape[:3])

    def mean(self) -> Reals:
        """[G, K]: over all of them; tap by tap, without a copy of every patch."""
        groups, *taps = self.view.shape[3:]
        found = np.empty((groups, *taps))
        for tap in np.ndindex(*taps[1:]):
            at = (..., *tap)
            found[at] = self.view[at].mean(axis=(0, 1, 2))
        return found.reshape(groups, -1)

    def rows(self, some: slice) -> NDArray[Any]:
        """[G, patches, K]: some of them, in their order."""
        at = np.unravel_index(np.arange(self.count)[some], self.view.shape[:3])
        taken = self.view[at]
        return np.moveaxis(taken, 0, 1).reshape(taken.shape[1], taken.shape[0], -1)


def _windows(x: NDArray[Any], window: Window, groups: int) -> NDArray[Any]:
    """[N, OH, OW, G, C/G, Kh, Kw], a view of the padded image."""
    image = padded(x, window)
    n, channels, *extents = image.shape
    parts = image.reshape(n, groups, channels // groups, *extents)
    view = patches(parts.reshape(n * groups, -1, *extents), window)
    return np.moveaxis(view.reshape(n, groups, *view.shape[1:]), (3, 4), (1, 2))
