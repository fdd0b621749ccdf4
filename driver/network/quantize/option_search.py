"""Searches the options that are open: several are tried on calibration data and judged on its rest.

What nobody decided (`Quantization.is_open`) is decided by how far the integer network's answers are
from the float network's. Most networks need nothing, so first comes what one run of the float
network tells (`refining.refined_at_once`): where a few samples show so little noise before the last
softmax that more would not be seen, that is all. Otherwise layers are refined one behind the other,
and judged on a few samples, which costs a tenth of what that does:

* Where there is much noise, or many answers are expected to change (`accuracy.changes`),
  ranges by other methods and equalized channels are tried: each network is quantized by two thirds
  of some samples and judged by the noise on the other third. Another way than the usual one must
  be clearly better there, as few samples say little. If far too many change even so, the fewest
  layers get weights or results of 16 bits with which few do (`layer_remedies`): each costs cycles.
* Where there is so little noise that more would not show, all channels of a block share a shift,
  which takes fewer cycles, if there is at most twice as much then.

The same data give the same answer: samples are chosen by their places.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.plural import plural

from driver.network.accuracy.changes import changed_share
from driver.network.accuracy.remedies import Remedy
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Graph
from driver.network.graph.parts import Arrays
from driver.network.integer.noise import noise_between
from driver.network.integer.qir import QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.quantize.float_form import float_form
from driver.network.quantize.integer_bias import Biased, has_wide_weights
from driver.network.quantize.layer_remedies import fewest, widenings, with_remedies
from driver.network.quantize.observed import Observed, spread
from driver.network.quantize.options import Quantization

Quantizer: TypeAlias = Callable[[Arrays, Quantization], QuantGraph]
"""From calibration data and a way to the integer network."""

_ENOUGH_DB: Final = 27.0
"""Signal to noise of scores from which on noise is little: less than a twentieth of them. Networks
that lose answers to 8 bits have 17 to 24 dB there, others 30 and more."""
_ONE_OF: Final = 12
"""Samples, of which one is looked at first: an integer network takes longer than a float one."""
_LEAST_LOOKED_AT: Final = 3
_MUCH_DB: Final = 20.0
"""Signal to noise below which noise is much: more than a tenth of the outputs."""
_MANY: Final = 0.02
"""The share of answers from which on it is many that change."""
LITTLE_DB: Final = 40.0
"""From here on noise is less than a hundredth of the outputs, which changes hardly an answer."""
FAR_TOO_MANY: Final = 0.1
"""The share from which on a network is worth twice its cycles: less, and the user decides it."""
_CLEARLY_DB: Final = 1.0
_MAY_COST_DB: Final = 3.0
"""What shared shifts may cost a network that has little noise: as much again as it has."""
_LOOKED_AT: Final = 16
"""Samples on which the noise of the usual way is judged."""
_TRIED_ON: Final = 96
"""Samples on which ways are tried, one of three to judge."""
_LEAST_TRIED: Final = 9
_MOST_ELEMENTS: Final = 1 << 25
"""Of all tensors over the samples that ways are tried on: a second or two for a way. Networks of
which these are too few samples are quantized as usual, as each way would take half a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An integer network, the way it was made, and in words why that one; None for the usual."""

    quantized: QuantGraph
    how: Quantization
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtOnce:
    """An integer network that was made after one run of the float network, and what that told."""

    quantized: QuantGraph
    observed: Observed

    def judged(self, calibration: Arrays) -> tuple[float, float]:
        """Signal to noise of scores before a softmax, and of answers, dB, on a few samples."""
        known = len(self.observed.places)
        count = min(len(values) for values in calibration.values())
        some = spread(known, max(_LEAST_LOOKED_AT, count // _ONE_OF))
        found = run_integer(
            self.quantized, _some(calibration, self.observed.places[some]), keep=True
        )
        tensors = {name: self.quantized.tensors[name] for name in self.observed.scores}
        scores = _db(
            _some(self.observed.scores, some),
            {
                name: found[name] * (tensor.scale or 1.0) + tensor.middle
                for name, tensor in tensors.items()
            },
        )
        answers = {output.name: found[output.tensor] for output in self.quantized.outputs}
        return scores, _db(_some(self.observed.answers, some), answers)


def choose_options(
    graph: Graph,
    calibration: Arrays,
    how: Quantization,
    quantized_by: Quantizer,
    at_once_by: Callable[[Quantization], AtOnce] | None = None,
) -> Chosen:
    """The network by the way that is best where `how` leaves one open.

    Args:
        at_once_by: makes one of the calibration data without refining layer after layer.
    """
    if at_once_by is not None and _may_be_at_once(graph, how):
        chosen = _at_once(calibration, how, at_once_by, quantized_by)
        if chosen is not None:
            return chosen
    usual = Chosen(quantized=quantized_by(calibration, how), how=how)
    if not how.is_open or graph.ranges:
        return usual
    count = min(len(values) for values in calibration.values())
    few = _some(calibration, spread(count, _LOOKED_AT))
    floats = run_float(graph, few)
    answers = run_integer(usual.quantized, few)
    found = _db(floats, answers)
    if found >= LITTLE_DB and how.share_shifts is None and _own_shifts(usual.quantized):
        return _with_shared_shifts(usual, calibration, quantized_by, few, floats, found)
    if found < _MUCH_DB or changed_share(graph, floats, answers) > _MANY:
        trial = _trial(graph, calibration, quantized_by)
        return usual if trial is None else trial.widened(trial.best_way(usual))
    return usual


def _may_be_at_once(graph: Graph, how: Quantization) -> bool:
    """Whether nothing is asked for that one run of the float network does not tell."""
    return how.is_open and how.fit_weights and how.correct_bias is not False and not graph.ranges


def _at_once(
    calibration: Arrays,
    how: Quantization,
    at_once_by: Callable[[Quantization], AtOnce],
    quantized_by: Quantizer,
) -> Chosen | None:
    """The network that is made at once, if it has so little noise that more would not be seen.

    If even shared shifts might not show, weights are fitted where rounded ones are too bad for it:
    cycles are saved in every run.
    """
    made = at_once_by(how)
    scores, answers = made.judged(calibration)
    if not scores >= _ENOUGH_DB:
        return None
    usual = Chosen(quantized=made.quantized, how=how)
    if not (answers >= LITTLE_DB and how.share_shifts is None and _own_shifts(made.quantized)):
        return usual
    shared = replace(how, share_shifts=True)
    other = at_once_by(shared)
    chosen = _shared(usual, shared, other.quantized, answers, other.judged(calibration)[1])
    if chosen is usual:
        other = replace(other, quantized=quantized_by(calibration, shared))
        chosen = _shared(usual, shared, other.quantized, answers, other.judged(calibration)[1])
    return chosen


def _with_shared_shifts(
    usual: Chosen,
    calibration: Arrays,
    quantized_by: Quantizer,
    few: Arrays,
    floats: Arrays,
    found: float,
) -> Chosen:
    """With as many shared shifts as there can be, if there is little noise even so."""
    how = replace(usual.how, share_shifts=True)
    quantized = quantized_by(calibration, how)
    return _shared(usual, how, quantized, found, _db(floats, run_integer(quantized, few)))


def _shared(
    usual: Chosen, how: Quantization, quantized: QuantGraph, found: float, shared: float
) -> Chosen:
    """The other network, whose channels share shifts, unless that costs too much."""
    if not shared >= found - _MAY_COST_DB:
        return usual
    why = (
        f"channels share shifts, which is faster: {shared:.1f} dB of signal to noise are left of"
        f" {found:.1f}"
    )
    return Chosen(quantized=quantized, how=how, why=why)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Trial:
    """Ways on some samples: `given` calibrate, `rest` judge; `floats` are the answers to those.

    `known` are those of the ways that were tried.
    """

    graph: Graph
    quantized_by: Quantizer
    calibration: Arrays
    given: Arrays
    rest: Arrays
    floats: Arrays
    known: dict[Quantization, Arrays] = field(default_factory=dict)

    @property
    def judging(self) -> int:
        return len(next(iter(self.floats.values())))

    def ratio_db(self, how: Quantization) -> float:
        return _db(self.floats, self._answers(how))

    def changed(self, how: Quantization) -> float:
        return changed_share(self.graph, self.floats, self._answers(how))

    def _answers(self, how: Quantization) -> Arrays:
        if how not in self.known:
            self.known[how] = run_integer(self.quantized_by(self.given, how), self.rest)
        return self.known[how]

    def best_way(self, usual: Chosen) -> Chosen:
        """The one that is clearly better than the others, else the usual one."""
        known = {usual.how: self.ratio_db(usual.how)}
        for ways in (_alone, _together):
            for how in ways(usual.how, known):
                known[how] = self.ratio_db(how)
        best = max(known, key=lambda how: known[how])
        if not known[best] >= known[usual.how] + _CLEARLY_DB:
            return usual
        why = (
            f"{best}: {known[best]:.1f} dB of signal to noise on {self.judging} samples that did"
            f" not calibrate it, {usual.how} {known[usual.how]:.1f}; {len(known)} ways were tried"
        )
        quantized = self.quantized_by(self.calibration, best)
        return Chosen(quantized=quantized, how=best, why=why)

    def widened(self, chosen: Chosen) -> Chosen:
        """With 16 bits where these are enough, if far too many answers change."""
        known: dict[tuple[Remedy, ...], float] = {(): self.changed(chosen.how)}
        if known[()] <= FAR_TOO_MANY:
            return chosen

        def changed(some: tuple[Remedy, ...]) -> float:
            known[some] = self.changed(with_remedies(chosen.how, some))
            return known[some]

        graph = float_form(self.graph, self.calibration, chosen.how)
        given = {"wide": chosen.how.wide, "results": chosen.how.wide_activations}
        found = [
            each
            for each in widenings(graph, chosen.quantized, self.rest)
            if given[each.kind] is None
        ]
        wide = fewest(found, changed, known[()], _MANY)
        if not wide:
            return chosen
        how = with_remedies(chosen.how, wide)
        why = (
            f"{_counted(wide)}: {100 * known[wide]:.1f} % of answers are expected to"
            f" change, with 8 bits {100 * known[()]:.1f} %"
        )
        return Chosen(
            quantized=self.quantized_by(self.calibration, how),
            how=how,
            why=why if chosen.why is None else f"{chosen.why}; {why}",
        )


def _counted(wide: Sequence[Remedy]) -> str:
    """What has 16 bits, in few words."""
    kinds = Counter(each.kind for each in wide)
    counts = {"weights": kinds["wide"], "results": kinds["results"]}
    parts = (
        f"{part} of 16 bits in {plural(count, 'layer')}" for part, count in counts.items() if count
    )
    return " and ".join(parts)


def _trial(graph: Graph, calibration: Arrays, quantized_by: Quantizer) -> _Trial | None:
    """Of as many samples as take seconds; None where these are too few to judge by."""
    elements = sum(math.prod(shape[1:]) for shape in graph.shapes.values())
    count = min(len(values) for values in calibration.values())
    samples = spread(count, min(_TRIED_ON, _MOST_ELEMENTS // elements))
    if len(samples) < _LEAST_TRIED:
        return None
    is_judged = np.arange(len(samples)) % 3 == 1
    rest = _some(calibration, samples[is_judged])
    return _Trial(
        graph=graph,
        quantized_by=quantized_by,
        calibration=calibration,
        given=_some(calibration, samples[~is_judged]),
        rest=rest,
        floats=run_float(graph, rest),
    )


def _alone(usual: Quantization, known: Mapping[Quantization, float]) -> list[Quantization]:
    """Every way that differs from the usual one in one thing."""
    del known
    methods = ("percentile", "entropy") if usual.calibration is None else ()
    ways = [replace(usual, calibration=method) for method in methods]
    return ways + ([replace(usual, equalize=True)] if usual.equalize is None else [])


def _together(usual: Quantization, known: Mapping[Quantization, float]) -> list[Quantization]:
    """Equalized with the best method, if both helped."""
    equalized = replace(usual, equalize=True)
    method = max((how for how in known if how != equalized), key=lambda how: known[how])
    helped = known.get(equalized, -math.inf) > known[usual] < known[method]
    return [replace(method, equalize=True)] if helped else []


def _own_shifts(quantized: QuantGraph) -> bool:
    """Whether any layer has shifts that differ among its channels and need not be by block."""
    layers = (node.op for node in quantized.nodes if isinstance(node.op, Biased))
    return any(
        op.factor is None and not has_wide_weights(op) and len({*op.shift.tolist()}) > 1
        for op in layers
    )


def _some(arrays: Arrays, places: NDArray[np.int64]) -> Arrays:
    return {name: values[places] for name, values in arrays.items()}


def _db(floats: Arrays, integers: Arrays) -> float:
    """Signal to noise of the worst output."""
    ratios = [noise_between(floats[name], integers[name]).ratio_db for name in floats]
    return -math.inf if any(map(math.isnan, ratios)) else min(ratios)
