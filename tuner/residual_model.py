"""How far a space's estimate is off: a Gaussian process over the features of measured candidates.

It learns from one candidate on, says how sure it is, and takes milliseconds where trees take
hundreds. On our spaces it predicts the estimate's errors as well as boosted trees or better, from 8
to 40 measured candidates. (Rasmussen and Williams 2006, algorithm 2.1; Matérn kernel, 3/2, and a
linear one.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tuner.cost_model import Floats

_LENGTH: Final = 2.0
"""In standard deviations of the features."""
_NOISE: Final = 0.05
"""Of a candidate's error, what its features do not tell: a share of the variance."""
_USUAL_WEIGHT: Final = 4.0
"""For how many measured candidates that counts which is usually missed."""


@dataclass(slots=True)
class Prediction:
    """What candidates are expected to miss their estimates by [n], and how unsure that is [n].

    As log2, which is a share: 0.1 is 7 %.
    """

    means: Floats
    doubts: Floats


class ResidualModel:
    """What measured candidates say of others.

    Args:
        candidates: features [n, f] of those that may be tried.
        measured: features [m, f] of those that were.
        missed: log2(cost) - log2(estimate) of these [m].
        noises: of each, what is to be added to the usual noise [m].
        usual: what is missed before anything is known, a standard deviation.
    """

    def __init__(
        self,
        candidates: Floats,
        measured: Floats,
        missed: Floats,
        noises: Floats,
        *,
        usual: float = 0.1,
    ) -> None:
        both = np.concatenate([candidates, measured])
        spread = both.std(axis=0)
        varies = spread > 0
        scaled = (both[:, varies] - both[:, varies].mean(axis=0)) / spread[varies]
        scaled /= np.sqrt(max(1.0, float(varies.sum())))
        self._candidates, known = scaled[: len(candidates)], scaled[len(candidates) :]
        self._mean = float(missed.mean()) if len(missed) else 0.0
        rest = missed - self._mean
        own = noises == 0.0
        squares = float(rest[own] @ rest[own])
        self._variance = (_USUAL_WEIGHT * usual**2 + squares) / (_USUAL_WEIGHT + own.sum())
        self._squares = (self._candidates**2).sum(axis=1)
        squares_known = (known**2).sum(axis=1)
        near = _kernel(known, squares_known, known, squares_known) + np.diag(_NOISE + noises)
        whiten = np.linalg.inv(np.linalg.cholesky(near))
        like = _kernel(known, squares_known, self._candidates, self._squares)
        self._half = whiten @ like
        self._means = self._mean + self._half.T @ (whiten @ rest)
        self._left = np.maximum(1.0 - (self._half**2).sum(axis=0), 0.0)

    @property
    def prediction(self) -> Prediction:
        """Of the candidates, as far as is known."""
        return Prediction(self._means, np.sqrt(self._variance * self._left))

    def suppose(self, at: int) -> None:
        """That one candidate turns out as it is expected to: its like are less unsure then."""
        here = slice(at, at + 1)
        like = _kernel(
            self._candidates[here], self._squares[here], self._candidates, self._squares
        )[0]
        like -= self._half[:, at] @ self._half
        row = like / np.sqrt(self._left[at] + _NOISE)
        self._half = np.concatenate([self._half, row[None]])
        self._left = np.maximum(self._left - row**2, 0.0)


def _kernel(a: Floats, squares_a: Floats, b: Floats, squares_b: Floats) -> NDArray[np.float64]:
    """Likeness of rows to others, by their squared lengths: Matérn, and product; 1 to itself."""
    product, of_a, of_b = a @ b.T, squares_a[:, None], squares_b[None]
    far = np.sqrt(3.0 * np.maximum(of_a + of_b - 2.0 * product, 0.0)) / _LENGTH
    like = (1.0 + far) * np.exp(-far) + product
    return np.asarray(like / np.sqrt((1.0 + of_a) * (1.0 + of_b)))
