"""Calibration data that remember what a float network made of them: one run for all who ask.

Ranges need a run of the float network over all samples, which is most of what the plainest way to
integers costs. The same run tells the mean and the variance of what every layer reads, and what the
network answers to some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import FloatArray, Gather, Graph, Reshape, Softmax, SubtractZeroPoint
from driver.network.graph.parts import Arrays
from driver.network.quantize.channel_weights import Weighted
from driver.network.quantize.moments import Moments, mean_operands

_KEPT: Final = 16
"""Samples whose answers are kept: enough to judge by, and little memory where these are images."""


class Calibration(Mapping[str, FloatArray]):
    """Arrays by input's name, [samples, ...].

    Attributes:
        observed: what the last float network made of them, if one has run to its end.
    """

    def __init__(self, arrays: Mapping[str, FloatArray]) -> None:
        self._arrays = arrays
        self.observed: Observed | None = None

    def __getitem__(self, name: str) -> FloatArray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class Observed:
    """One run of a float network over all samples.

    Attributes:
        places: int64, the samples of which the rest is known.
        answers: the outputs by name.
        scores: the tensors by name that the outputs are made of, before any softmax.
    """

    def __init__(self, graph: Graph, samples: int) -> None:
        self._samples = samples
        self.places = spread(samples, _KEPT)
        self.answers: Arrays = {}
        self.scores: dict[str, FloatArray] = {}
        self._scores = _before_softmax(graph)
        self._seen = dict.fromkeys(self._scores, 0)
        self._read = {node.inputs[0] for node in graph.nodes if isinstance(node.op, Weighted)}
        self._sums: dict[str, NDArray[Any]] = {}
        self._squares: dict[str, NDArray[Any]] = {}

    def observe(self, name: str, values: FloatArray) -> None:
        """The next samples [N, ...] of a tensor."""
        if name in self._scores:
            first = self._seen[name]
            self._seen[name] += len(values)
            some = values[
                self.places[(self.places >= first) & (self.places < self._seen[name])] - first
            ]
            self.scores[name] = np.concatenate([self.scores[name], some]) if first else some
        if name not in self._read:
            return
        rows = np.ascontiguousarray(values).reshape(len(values), -1)
        sums = rows.sum(axis=0)
        squares = np.einsum("nk,nk->k", rows, rows)
        for totals, found in ((self._sums, sums), (self._squares, squares)):
            found = found.reshape(values.shape[1:])
            totals[name] = totals[name] + found if name in totals else found

    def end(self, answers: Arrays) -> None:
        """The run's outputs [samples, ...] by name."""
        self.answers = {name: values[self.places] for name, values in answers.items()}

    def centered(self, made: Graph, middle: Mapping[str, float]) -> Observed:
        """What a run of `made` would tell: the same network, whose tensors are less by these."""
        told = copy(self)
        told._sums, told._squares = dict(self._sums), dict(self._squares)
        for name in middle.keys() & self._sums.keys():
            told._take(name, middle[name])
        for node in made.nodes:
            (source, *_) = node.inputs
            if isinstance(node.op, SubtractZeroPoint) and source in self._sums:
                told._sums[node.output] = told._sums.pop(source)
                told._squares[node.output] = told._squares.pop(source)
            elif isinstance(node.op, Gather) and source in told._sums:
                index, fill = node.op.index, node.op.fill
                for totals, outside in ((told._sums, fill), (told._squares, fill**2)):
                    inside = totals[source].reshape(-1)[np.maximum(index, 0)]
                    totals[node.output] = np.where(index < 0, outside * self._samples, inside)
        return told

    def _take(self, name: str, middle: float) -> None:
        sums, squares = (totals[name].astype(np.float64) for totals in (self._sums, self._squares))
        self._sums[name] = sums - middle * self._samples
        self._squares[name] = squares - 2 * middle * sums + middle**2 * self._samples

    def moments(self, op: Weighted, name: str, step: float) -> Moments:
        """Of what the layer reads in that tensor, in such steps; only variances are known."""
        mean, square = (
            mean_operands(op, totals[name] / np.float64(self._samples))
            for totals in (self._sums, self._squares)
        )
        variance = np.maximum(square - np.square(mean), 0.0) / step**2
        return Moments(mean=mean / step, covariance=variance[..., None])


def _before_softmax(graph: Graph) -> frozenset[str]:
    """The tensors that the outputs are made of: a softmax hides noise, or shows nothing else."""
    made = {node.output: node for node in graph.nodes}
    found = set()
    for output in graph.outputs:
        name = output.tensor
        while name in made and isinstance(made[name].op, Softmax | Reshape):
            name = made[name].inputs[0]
        found.add(name)
    return frozenset(found)


def spread(count: int, most: int) -> NDArray[np.int64]:
    """Places at even distances over so many samples, at most so many."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.int64)
