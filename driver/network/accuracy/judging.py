"""Judges: what makes of a network's answers, and of labels, the measures of its kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.accuracy.boxes import BoxFormat
from driver.network.accuracy.choosing import box_outputs, class_axis, first_shape, one_box_output
from driver.network.accuracy.classes import Classes, Pixels
from driver.network.accuracy.embeddings import Embeddings
from driver.network.accuracy.kinds import AnswerKind
from driver.network.accuracy.metric import Metric, Unit
from driver.network.accuracy.reals import SAMPLES_AT_ONCE, Reals
from driver.network.graph.ir import Graph
from driver.network.graph.parts import Arrays
from driver.network.integer.noise import Noise, noise_between

Against: TypeAlias = Literal["labels", "float"]


class Compare(Protocol):
    """What a kind knows: truth of labels or of another's answers, and measures against it."""

    def of_labels(self, labels: NDArray[Any]) -> Any:
        """The truth that labels [samples, ...] say."""
        ...

    def of_answers(self, answers: Arrays) -> Any:
        """The truth that a network's answers say."""
        ...

    def measures(self, truth: Any, answers: Arrays) -> tuple[Metric, ...]:
        """How near answers are to a truth; the first measure is the one that promises are of."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One measure of a network's three executions; None for float where it is what others meet."""

    name: str
    against: Against
    unit: Unit
    floats: float | None
    reference: float | None
    device: float | None = None

    @property
    def title(self) -> str:
        """The measure and what it is against, in words."""
        return f"{self.name} of {self.against}"

    def document(self) -> dict[str, Any]:
        """As JSON can say it: nothing in place of infinity."""
        return {
            key: None if value in (math.inf, -math.inf) else value
            for key, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Knows the labels, if there are any, and the float network's answers for the same samples."""

    kind: AnswerKind
    compare: Compare
    labels: NDArray[Any] | None
    floats: Arrays

    def compared(self, reference: Arrays, device: Arrays | None = None) -> tuple[Compared, ...]:
        """All measures: those against labels first, then those against the float network.

        Raises:
            DataError: labels that are boxes, where the network's are offsets.
        """
        rows: list[Compared] = []
        executions = (reference,) if device is None else (reference, device)
        if self.labels is not None:
            truth = self.compare.of_labels(self.labels)
            found = [self.compare.measures(truth, each) for each in (self.floats, *executions)]
            rows += _rows("labels", found)
        truth = self.compare.of_answers(self.floats)
        found = [
            (*self.compare.measures(truth, each), _signal_to_noise(self.floats, each))
            for each in executions
        ]
        return (*rows, *_rows("float", [(), *found]))


def judge_of(kind: AnswerKind, graph: Graph, floats: Arrays, labels: NDArray[Any] | None) -> Judge:
    """The judge of a kind, see `accuracy.choosing.kind_of`."""
    compare = _compare(kind, graph, floats, labels)
    return Judge(kind=kind, compare=compare, labels=labels, floats=floats)


def _compare(
    kind: AnswerKind, graph: Graph, floats: Arrays, labels: NDArray[Any] | None
) -> Compare:
    shape = first_shape(graph)
    match kind:
        case "classes":
            return Classes()
        case "pixels":
            axis = (None if labels is None else class_axis(shape, labels.shape)) or 1
            return Pixels(axis=axis, classes=shape[axis])
        case "boxes":
            outputs = box_outputs(graph) or one_box_output(graph)
            if outputs is None:
                raise ValueError("kind_of says that there are boxes")
            return BoxFormat.read_from(outputs, floats)
        case "embeddings":
            return Embeddings()
        case "images" | "values":
            return Reals(images=kind == "images")


def _rows(against: Against, found: Sequence[Sequence[Metric]]) -> list[Compared]:
    """Rows of measures; an execution without any has none in its column."""
    floats, reference, *more = found
    return [
        Compared(
            name=each.name,
            against=against,
            unit=each.unit,
            floats=floats[at].value if floats else None,
            reference=each.value,
            device=more[0][at].value if more else None,
        )
        for at, each in enumerate(reference)
    ]


def _signal_to_noise(floats: Arrays, answers: Arrays) -> Metric:
    """The lowest ratio of all outputs; None where values are not finite."""
    worst = min((_noise(floats[name], answers[name]).ratio_db for name in floats), key=_first)
    return Metric(name="SNR", unit="dB", value=None if math.isnan(worst) else worst)


def _first(ratio_db: float) -> float:
    """Orders ratios; what is no number comes first."""
    return -math.inf if math.isnan(ratio_db) else ratio_db


def _noise(wanted: NDArray[Any], found: NDArray[Any]) -> Noise:
    """Some samples at a time: in float64 all of them may be too many."""
    total = Noise()
    with np.errstate(invalid="ignore"):
        for start in range(0, len(wanted), SAMPLES_AT_ONCE):
            part = slice(start, start + SAMPLES_AT_ONCE)
            total += noise_between(wanted[part], found[part])
    return total
