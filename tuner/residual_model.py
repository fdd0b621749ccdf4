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
_LEAST_OWN: Final = 3
"""Errors of one's own that say whether others' are like them."""
_USUAL_WEIGHT: Final = 4.0
"""For how many measured candidates that counts which is usually missed."""
_SMALL: Final = 16
"""Rows of a matrix that is not worth halving."""
_ROOM: Final = 16
"""Rows that are made room for at once, at least."""
_APART: Final = 16
"""Candidates in order are alike: so far apart they tell most features from constants."""


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
        missed: log2(cost) - log2(estimate) of these [m]; of other workloads' around a mean of 0.
        noises: of each, what is to be added to the usual noise [m]; of other workloads' above 0.
        out: features [k, f] of those that are being tried; they are supposed to end as expected.
        usual: what is missed before anything is known, a standard deviation.
    """

    def __init__(
        self,
        candidates: Floats,
        measured: Floats,
        missed: Floats,
        noises: Floats,
        *,
        out: Floats | None = None,
        usual: float = 0.1,
    ) -> None:
        known = measured if out is None or not len(out) else np.concatenate([measured, out])
        self._candidates, known = _scaled(candidates, known)
        self._squares, squares = (self._candidates**2).sum(axis=1), (known**2).sum(axis=1)
        own = noises == 0.0
        mean = float(missed[own].mean()) if own.any() else 0.0
        rest = np.zeros(len(known))
        rest[: len(missed)] = np.where(own, missed - mean, missed)
        of_own = rest[: len(missed)][own]
        self._variance = (_USUAL_WEIGHT * usual**2 + float(of_own @ of_own)) / (
            _USUAL_WEIGHT + len(of_own)
        )
        doubtful = np.full(len(known), _NOISE)
        doubtful[: len(noises)] += noises
        near = _kernel(known, squares, known, squares) + np.diag(doubtful)
        whiten = _inverse(np.asarray(np.linalg.cholesky(near), dtype=np.float64))
        room = np.empty((len(known) + _ROOM, len(candidates)))
        half = np.matmul(
            whiten,
            _kernel(known, squares, self._candidates, self._squares),
            out=room[: len(known)],
        )
        with_ends = slice(len(missed))
        self._means = mean + half[with_ends].T @ (whiten[with_ends] @ rest)
        self._left = np.maximum(1.0 - np.einsum("ij,ij->j", half, half), 0.0)
        self._half, self._rows = room, len(half)
        """Whitened likeness of what is known or supposed to the candidates: so many rows of it."""

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
        half = self._half[: self._rows]
        row = (like - half[:, at] @ half) / np.sqrt(self._left[at] + _NOISE)
        if self._rows == len(self._half):
            room = np.empty((max(self._rows, _ROOM), len(row)))
            self._half = np.concatenate([self._half, room])
        self._half[self._rows] = row
        self._rows += 1
        self._left = np.maximum(self._left - row**2, 0.0)


def informs(own: Floats, missed: Floats, others: Floats, theirs: Floats, noise: float) -> bool:
    """Whether others' errors make those of one's own likelier than they are alone.

    By the density of what was missed, less its mean, without and with what the others say of it:
    so nobody is led by workloads that are not like it, and nobody by any before it has measured.

    Args:
        own, others: features [m, f] and [k, f] of measured candidates.
        missed, theirs: their errors [m] and [k], the others' around a mean of 0.
        noise: of the others, beside the usual one.
    """
    if len(missed) < _LEAST_OWN or not len(theirs):
        return False
    own, others = _scaled(own, others)
    squares, of_others = (own**2).sum(axis=1), (others**2).sum(axis=1)
    near = _kernel(own, squares, own, squares) + _NOISE * np.eye(len(own))
    theirs_near = _kernel(others, of_others, others, of_others)
    theirs_near += (_NOISE + noise) * np.eye(len(others))
    like = np.linalg.solve(theirs_near, _kernel(others, of_others, own, squares))
    left = near - _kernel(own, squares, others, of_others) @ like
    rest = missed - missed.mean()
    variance = float(rest @ rest) / len(rest) or 1.0
    without = _surprise(rest, variance * near)
    rest = missed - like.T @ theirs
    return _surprise(rest - rest.mean(), variance * left) < without


def _surprise(errors: Floats, covariance: Floats) -> float:
    """Minus the logarithm of the density of errors, twice and but for a constant."""
    _, size = np.linalg.slogdet(covariance)
    return float(errors @ np.linalg.solve(covariance, errors) + size)


def _scaled(candidates: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Both by the mean and the spread of all, without features that are the same everywhere."""
    scaled = np.concatenate([candidates, known])
    if not (scaled[::_APART] != scaled[0]).any(axis=0).all():  # else all are worth looking at
        differ = (scaled != scaled[0]).any(axis=0)
        scaled = scaled if differ.all() else scaled.compress(differ, axis=1)
    scaled -= scaled.mean(axis=0)
    squares = np.einsum("ij,ij->j", scaled, scaled) / len(scaled)
    scaled *= 1 / np.sqrt(squares * max(1, scaled.shape[1]))
    return scaled[: len(candidates)], scaled[len(candidates) :]


def _inverse(lower: Floats) -> Floats:
    """Of a triangular matrix, by its halves: numpy's own takes three times as long."""
    half = len(lower) // 2
    if half < _SMALL:
        return np.asarray(np.linalg.inv(lower))
    inverse = np.zeros_like(lower)
    first = inverse[:half, :half] = _inverse(lower[:half, :half])
    second = inverse[half:, half:] = _inverse(lower[half:, half:])
    inverse[half:, :half] = -second @ lower[half:, :half] @ first
    return inverse


def _kernel(a: Floats, squares_a: Floats, b: Floats, squares_b: Floats) -> NDArray[np.float64]:
    """Likeness of rows to others, by their squared lengths: Matérn, and product; 1 to itself.

    In place, for the arrays are large and this is most of the time of a plan.
    """
    product = a @ b.T
    far = -2.0 * product
    far += squares_a[:, None]
    far += squares_b
    np.maximum(far, 0.0, out=far)
    far *= 3.0 / _LENGTH**2
    np.sqrt(far, out=far)
    like = np.negative(far)
    np.exp(like, out=like)
    far += 1.0
    like *= far
    like += product
    like /= np.sqrt(1.0 + squares_a)[:, None]
    like /= np.sqrt(1.0 + squares_b)
    return like
