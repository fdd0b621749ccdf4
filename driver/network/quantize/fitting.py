"""The integer network of a target: in ONNX's own arithmetic, or with shifts and MUL as it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS, Target

from driver.network.graph.ir import FloatArray, Graph
from driver.network.graph.parts import Arrays
from driver.network.integer.qir import QuantGraph
from driver.network.quantize.calibrate import by_name
from driver.network.quantize.equalize import equalized
from driver.network.quantize.float_form import FloatForm, form_of
from driver.network.quantize.float_network import float_network
from driver.network.quantize.observed import Calibration, Observed
from driver.network.quantize.option_search import AtOnce, Chosen, choose_options
from driver.network.quantize.options import Quantization
from driver.network.quantize.own_integers import keeps_own_integers
from driver.network.quantize.power_of_two_requantization import MAX_SHIFT
from driver.network.quantize.processor_quantization import quantize_for_processor
from driver.network.quantize.quantizer import quantize
from driver.network.quantize.refining import Refinement, refined_at_once

_NOT_EQUALIZED = (
    "--equalize changed nothing: there are no channels between two layers that may be scaled, or"
    " clips cut all of them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """An integer network, how it was made where that was left open, and what to say of it."""

    quantized: QuantGraph
    how: Quantization
    notes: tuple[str, ...] = ()


def fit_quantization(
    target: Target,
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray] | None,
    how: Quantization,
) -> Fitted:
    """`quantize_for`, by the way that suits the network best where `how` leaves one open.

    Raises:
        SettingsError, ModelError, DataError: as for `quantize_for`.
    """
    if how.floats:
        return Fitted(quantized=float_network(graph, target), how=how)
    if not target.has_accelerator:
        return Fitted(quantized=quantize_for_processor(graph, calibration, how), how=how)
    data = None if calibration is None else Calibration(by_name(graph, calibration))
    kept = keeps_own_integers(graph, data, how, lambda way: quantize_for(target, graph, data, way))
    how = kept.how if kept else how
    whys = (kept.why,) if kept else ()
    if data is None:
        return Fitted(quantized=quantize_for(target, graph, None, how), how=how, notes=whys)
    forms: dict[tuple[object, ...], FloatForm] = {}
    observed: dict[Quantization, Observed | None] = {}
    plain: dict[Quantization, QuantGraph] = {}

    def form(some: Arrays, way: Quantization) -> FloatForm:
        # arrays that ways are tried on live as long as this
        key = (id(some), way.of_floats())
        if key not in forms:
            forms[key] = form_of(graph, some, way)
            if some is data:
                observed[way.of_floats()] = data.observed
        return forms[key]

    def quantized_by(some: Arrays, way: Quantization) -> QuantGraph:
        return quantize_for(target, graph, some, way, form=form(some, way))

    def at_once_by(way: Quantization) -> AtOnce:
        known = form(data, way)
        as_is = replace(way, share_shifts=False, correct_bias=False, fit_weights=False)
        if as_is not in plain:
            plain[as_is] = quantize_for(target, graph, data, as_is, form=known)
        seen = observed[way.of_floats()]
        assert seen is not None, "the form of a network without ranges needs a run"
        wanted = Refinement(
            block=target.lanes.block,
            shares=way.share_shifts is not False,
            shares_all=bool(way.share_shifts),
        )
        better = refined_at_once(plain[as_is], known.graph, seen, wanted)
        return AtOnce(quantized=better, observed=seen)

    chosen: Chosen = choose_options(graph, data, how, quantized_by, at_once_by)
    notes = [*whys, *([] if chosen.why is None else [chosen.why])]
    if how.equalize and equalized(graph, data) is graph:
        notes.append(_NOT_EQUALIZED)
    return Fitted(quantized=chosen.quantized, how=chosen.how, notes=tuple(notes))


def quantize_for(
    target: Target,
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray] | None,
    how: Quantization,
    *,
    form: FloatForm | None = None,
) -> QuantGraph:
    """`quantize.quantizer.quantize` for a target, or `quantize_for_processor`.

    Raises:
        SettingsError: the target's ALU lacks what is wanted, or as for `quantize`.
        ModelError, DataError: as for `quantize`.
    """
    if not target.has_accelerator:
        return quantize_for_processor(graph, calibration, how)
    if how.requantize == "mul" and not target.limits.alu_mul:
        known = ", ".join(name for name, each in TARGETS.items() if each.limits.alu_mul)
        raise SettingsError(
            f"--requantize mul: the ALU of {target.name} has no MUL",
            f"--target {known}, a target whose JSON has limits.alu_mul, or --requantize shift",
        )
    most = min(target.limits.max_shift, MAX_SHIFT)
    return quantize(graph, calibration, how, block=target.lanes.block, max_shift=most, form=form)
