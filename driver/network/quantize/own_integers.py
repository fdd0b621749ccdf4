"""What a quantized model's own integers answer, where answers are values: kept to by wider weights.

A target without multiplications behind its sums rounds the weights of such a model a second time,
or its results more coarsely. Classes seldom show that; of values it is an error. With weights of 16
bits neither happens, at twice the cycles: as many layers as it takes get them, those first whose
rounding adds most, so that hardly more noise is left than the model's own integers have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tilefarm.plural import plural

from driver.network.accuracy.choosing import kind_of
from driver.network.accuracy.fewest import first_enough
from driver.network.accuracy.remedies import Remedy
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Graph
from driver.network.graph.parts import Arrays
from driver.network.integer.noise import noise_between
from driver.network.integer.qir import QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.quantize.float_form import float_form
from driver.network.quantize.layer_remedies import widenings, with_remedies
from driver.network.quantize.observed import spread
from driver.network.quantize.options import Quantization
from driver.network.quantize.synthetic_inputs import made_up_inputs

_MAY_BE: Final = 1.25
"""By how much the noise may be more than that of the model's own integers: a decibel."""
_SAMPLES: Final = 512
_MOST_ELEMENTS: Final = 1 << 24
"""Of all tensors over the samples: some seconds for all that is tried."""
_LEAST_SAMPLES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenedWeights:
    """The way with weights of 16 bits in some layers, and why."""

    how: Quantization
    why: str


def keeps_own_integers(
    graph: Graph,
    calibration: Arrays | None,
    how: Quantization,
    quantized_by: Callable[[Quantization], QuantGraph],
) -> WidenedWeights | None:
    """The way with which a quantized model answers like its own integers; None for `how` itself.

    Nothing is changed where the user chose, sums are multiplied, answers are classes, or there are
    no inputs to see it by.

    Args:
        quantized_by: makes the network by a way.
    """
    if not graph.ranges or how.wide is not None or how.requantize != "shift":
        return None
    if kind_of(graph, None) in ("classes", "pixels"):
        return None
    inputs = _samples(graph, calibration)
    if inputs is None:
        return None
    floats = run_float(graph, inputs)

    def noise(way: Quantization) -> float:
        return _noise(floats, run_integer(quantized_by(way), inputs))

    usual = quantized_by(how)
    found = [
        each
        for each in widenings(float_form(graph, calibration, how), usual, inputs)
        if each.kind == "wide"
    ]
    before = _noise(floats, run_integer(usual, inputs))
    own = noise(with_remedies(how, found)) if found else before
    if not before > _MAY_BE * own:
        return None
    known: dict[int, float] = {len(found): own}

    def is_enough(some: tuple[Remedy, ...]) -> bool:
        known[len(some)] = noise(with_remedies(how, some))
        return known[len(some)] <= _MAY_BE * own

    wide = first_enough(found, is_enough)
    why = (
        f"weights of 16 bits in {plural(len(wide), 'layer')}: {_db(known[len(wide)])} dB of signal"
        f" to noise, {_db(before)} without, {_db(own)} by the model's own integers"
    )
    return WidenedWeights(how=with_remedies(how, wide), why=why)


def _samples(graph: Graph, calibration: Arrays | None) -> Arrays | None:
    """As many as take seconds; None where there are too few."""
    inputs = made_up_inputs(graph) if calibration is None else calibration
    if inputs is None:
        return None
    elements = sum(math.prod(shape[1:]) for shape in graph.shapes.values())
    count = min(len(values) for values in inputs.values())
    most = min(_SAMPLES, _MOST_ELEMENTS // elements) // graph.batch * graph.batch
    if min(count, most) < _LEAST_SAMPLES:
        return None
    places = spread(count, most)
    return {name: values[places] for name, values in inputs.items()}


def _noise(floats: Arrays, integers: Arrays) -> float:
    """Noise by signal of the worst output."""
    found = [noise_between(floats[name], integers[name]) for name in floats]
    shares = [each.noise / each.signal if each.signal else float(each.noise > 0) for each in found]
    return max(math.inf if math.isnan(share) else share for share in shares)


def _db(share: float) -> str:
    return f"{-10 * math.log10(share):.1f}" if share else "unlimited"
