"""One network: a promise kept on half of the samples, and judged on the other half."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import TilefarmError
from tilefarm.target import Target
from tilefarm.watch.operations import UNWATCHED

from driver.benchmarks.zoo.attempt import in_reals
from driver.benchmarks.zoo.recipes import ZooRecipe
from driver.benchmarks.zoo.samples import RandomInputs, Samples, read
from driver.network import (
    Arrays,
    Blamed,
    Dataset,
    Fitted,
    QuantGraph,
    estimated_cycles,
    expected_loss,
    first_enough,
    fit_quantization,
    has_no_kernel,
    held_out,
    import_model,
    kind_of,
    model_digest,
    partition_network,
    quantize_for,
    run_float,
    run_integer,
)
from driver.stop_token import StopToken
from driver.targets import usable_target
from driver.tune.files import Files
from driver.tune.judged import JudgedNetwork, judge_promise
from driver.tune.run_context import RunContext
from driver.tune.settings import TuneSettings
from driver.tune.watched import watched

_ROUNDING: Final = 1e-9
_SPREADS: Final = 2.0
"""Standard errors within which a loss on other samples is no other loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to try: see `driver.benchmarks.zoo.records.Attempt`; `most` samples in each half."""

    name: str
    model: Path
    recipe: ZooRecipe
    data: Path
    points: float
    most: int
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A network with some layers in float.

    Attributes:
        layers: that are in float.
        cycles: estimated, see `driver.network.accuracy.price`.
        chosen: points lost on the samples that layers were chosen by; other: on the others.
        spread: a standard error of `other`, by the samples that the two networks disagree on.
    """

    layers: int
    cycles: int
    chosen: float
    other: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseResult:
    """What came of a promise.

    Attributes:
        samples: in the half that nothing was chosen by.
        how: what was done to keep it, in words.
        floats: accuracy of the float network on the other samples, %.
        integers: with no layer in float; kept: as the promise is kept; bad: with every layer in
            float that adds more noise than layers do on average, and more until it is kept.
    """

    name: str
    points: float
    samples: int
    how: str
    floats: float
    integers: Way
    kept: Way
    bad: Way

    @property
    def holds(self) -> bool:
        """Kept on the samples that it was judged on, and on others as far as these can tell."""
        others = self.kept.other - _SPREADS * self.kept.spread
        return max(self.kept.chosen, others) <= self.points + _ROUNDING

    @property
    def share(self) -> float:
        """Of the cycles with all bad layers in float."""
        return self.kept.cycles / self.bad.cycles


@dataclass(frozen=True, slots=True)
class Broken:
    """A network for which it cannot be kept, or that cannot be tried, and why."""

    name: str
    why: str


def keep(wanted: Wanted, clock: Clock | None = None) -> PromiseResult | Broken:
    """Keep the promise of one network; a typed error becomes a reason."""
    try:
        with tempfile.TemporaryDirectory(prefix="tilefarm-promise-") as folder:
            return _kept(wanted, Path(folder), clock or SystemClock())
    except TilefarmError as error:
        return Broken(wanted.name, error.what)


def _kept(wanted: Wanted, scratch: Path, clock: Clock) -> PromiseResult:
    target, graph = usable_target(wanted.target), import_model(wanted.model)
    calibration, chosen, other = (
        Dataset(in_reals(each, wanted.recipe, graph, wanted.data).inputs, each.labels)
        for each in _parts(wanted)
    )
    files = Files(
        graph=graph,
        calibration=calibration,
        evaluation=chosen,
        is_seeded=False,
        held_out=held_out(chosen, calibration),
        kind=kind_of(graph, chosen.labels),
        model_digest=model_digest(wanted.model),
    )
    settings = TuneSettings(model=wanted.model, out=scratch, max_loss=wanted.points)
    fitted = fit_quantization(target, graph, calibration.inputs, settings.quantization)
    plain = fitted.quantized
    judged = _judged(settings, files, target, fitted, scratch, clock)
    measured = _Measured(files, other, target)
    worst, in_float = _bad_in_float(files, judged.blamed, fitted, target, measured, wanted.points)
    best = judged.best
    return PromiseResult(
        name=wanted.name,
        points=wanted.points,
        samples=other.samples,
        how=best.counted() if best else "",
        floats=float(measured.floats_other.mean()),
        integers=measured.way(plain),
        kept=measured.way(judged.quantized, layers=len(best.floats) if best else 0),
        bad=measured.way(worst, layers=in_float),
    )


def _parts(wanted: Wanted) -> tuple[Samples, Samples, Samples]:
    """What calibrates, and every second of the rest each: to choose by, and to judge."""
    source = wanted.recipe.data
    if isinstance(source, RandomInputs):
        raise ValueError("recipes of promises have data")
    every = read(source, wanted.data)
    rest = every.after(wanted.recipe.calibrate)
    chosen, other = (Samples(rest.x[at::2], rest.labels[at::2]).first(wanted.most) for at in (0, 1))
    return every.first(wanted.recipe.calibrate), chosen, other


def _judged(
    settings: TuneSettings,
    files: Files,
    target: Target,
    fitted: Fitted,
    scratch: Path,
    clock: Clock,
) -> JudgedNetwork:
    """As `tilefarm tune --max-loss` does it, in silence."""
    began = clock.wall_seconds()
    with watched(
        UNWATCHED, lambda _event: None, run_id="promise", clock=clock, wall_origin=began
    ) as watch:
        context = RunContext(
            settings=settings,
            clock=clock,
            watch=watch,
            stop=StopToken(),
            scratch=scratch,
            run_id="promise",
            wall_origin=began,
        )
        return judge_promise(
            context, files, target, fitted, partition_network(fitted.quantized, target)
        )


def _bad_in_float(
    files: Files,
    blamed: Sequence[Blamed],
    fitted: Fitted,
    target: Target,
    measured: _Measured,
    points: float,
) -> tuple[QuantGraph, int]:
    """The network with its bad layers in float, and how many these are.

    They are those that add more noise than layers do on average; if the promise is not kept so,
    then those that add most of the rest as well.
    """
    layers = sorted(
        (layer for layer in blamed if _has_kernel(files, layer)), key=lambda one: -one.share
    )
    bad = [layer for layer in layers if layer.share * len(blamed) > 1]
    inputs = files.calibration.inputs if files.calibration else None

    def with_more(more: Sequence[Blamed]) -> QuantGraph:
        names = [layer.name for layer in (*bad, *more)]
        way = fitted.how.with_float(names)
        return quantize_for(target, files.graph, inputs, way) if names else fitted.quantized

    def keeps(more: tuple[Blamed, ...]) -> bool:
        return measured.loss(with_more(more)) <= points + _ROUNDING

    more = () if keeps(()) else first_enough(layers[len(bad) :], keeps)
    return with_more(more), len(bad) + len(more)


def _has_kernel(files: Files, layer: Blamed) -> bool:
    return any(n.name == layer.name and not has_no_kernel(n.op) for n in files.graph.nodes)


class _Measured:
    """Networks on both halves."""

    def __init__(self, files: Files, other: Dataset, target: Target) -> None:
        self._chosen, self._other, self._target = files.evaluation, other, target
        self._fresh = files.held_out
        self._floats = run_float(files.graph, self._chosen.inputs)
        self._floats_chosen = _right(self._floats, self._chosen)
        self.floats_other = _right(run_float(files.graph, other.inputs), other)

    def loss(self, quantized: QuantGraph) -> float:
        """Points on the samples that layers are chosen by: counted or expected, as is more."""
        answers = run_integer(quantized, self._chosen.inputs)
        lost = self._floats_chosen - _right(answers, self._chosen)
        labels = self._chosen.labels
        expected = expected_loss(
            _scores(self._floats)[self._fresh],
            _scores(answers)[self._fresh],
            None if labels is None else labels[self._fresh],
        )
        return max(float(lost[self._fresh].mean()), 100 * expected)

    def way(self, quantized: QuantGraph, *, layers: int = 0) -> Way:
        """One of them."""
        chosen = self._floats_chosen - _right(
            run_integer(quantized, self._chosen.inputs), self._chosen
        )
        other = self.floats_other - _right(run_integer(quantized, self._other.inputs), self._other)
        return Way(
            layers=layers,
            cycles=estimated_cycles(partition_network(quantized, self._target)),
            chosen=float(chosen[self._fresh].mean()),
            other=float(other.mean()),
            spread=float(other.std() / np.sqrt(len(other))),
        )


def _scores(answers: Arrays) -> NDArray[Any]:
    return next(iter(answers.values()))


def _right(answers: Arrays, data: Dataset) -> NDArray[Any]:
    """100 for each sample whose label has the highest score, else 0."""
    scores = _scores(answers)
    right = scores.reshape(len(scores), -1).argmax(axis=1) == data.labels
    return np.where(right, 100.0, 0.0)
