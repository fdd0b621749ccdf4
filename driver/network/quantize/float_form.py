"""The float network that the integers stand for: equalized and centered, and its ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from driver.network.graph.ir import FloatArray, Graph
from driver.network.quantize.calibrate import by_name
from driver.network.quantize.equalize import equalized
from driver.network.quantize.extremes import with_extremes
from driver.network.quantize.floats import float_nodes
from driver.network.quantize.input_zero_points import input_zero_points
from driver.network.quantize.observed import Calibration
from driver.network.quantize.options import Quantization
from driver.network.quantize.ranges import ranges_of
from driver.network.quantize.wide_activations import wide_results
from driver.network.quantize.zero_points import (
    ZeroPoint,
    centered,
    input_ranges,
    middles,
    ranges_around,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FloatForm:
    """The float network that integers stand for, and the ranges of its tensors.

    It takes most of the time where nothing is fitted, and is the same for all ways that
    `Quantization.of_floats` does not tell apart.

    Attributes:
        middle: what was taken from its tensors to center them.
        wide_results: the layers whose results have 16 bits.
    """

    graph: Graph
    middle: Mapping[str, ZeroPoint]
    ranges: Mapping[str, float]
    wide_results: frozenset[str]


def form_of(
    graph: Graph, calibration: FloatArray | Mapping[str, FloatArray] | None, how: Quantization
) -> FloatForm:
    """What `quantize.quantizer.quantize` makes integers of; errors as there."""
    graph, middle, ranges, wide = _float_form(graph, calibration, how)
    return FloatForm(
        graph=graph,
        middle=middle,
        ranges=ranges or ranges_of(graph, calibration, how.method) | input_ranges(graph, middle),
        wide_results=wide,
    )


def float_form(
    graph: Graph, calibration: FloatArray | Mapping[str, FloatArray] | None, how: Quantization
) -> Graph:
    """The float network that the integers stand for, tensor by tensor.

    Its outputs are those of `graph`, to rounding; channels are equalized and activations centered
    if so wanted.
    """
    return _float_form(graph, calibration, how)[0]


def _float_form(
    graph: Graph, calibration: FloatArray | Mapping[str, FloatArray] | None, how: Quantization
) -> tuple[Graph, Mapping[str, ZeroPoint], Mapping[str, float], frozenset[str]]:
    """`float_form`, what `FloatForm` says of it, and its ranges if they are known."""
    if how.floats:
        return with_extremes(graph), {}, {}, frozenset()
    if how.equalize and calibration is not None:
        graph = equalized(graph, calibration)
    floats = float_nodes(graph, how.keep_float)
    wide = wide_results(graph, how.wide_activations or (), floats)
    if how.activations == "symmetric":
        return graph, {}, {}, wide
    ranges = ranges_of(graph, calibration, how.method)
    middle = middles(
        graph,
        ranges,
        inputs=_middles_of_inputs(graph, ranges, calibration, how),
        copies=how.activations == "asymmetric",
        without=_need_no_middle(graph, floats, wide),
    )
    made = centered(graph, middle)
    if how.method.kind != "minmax" and middle:  # around another zero other values are rare
        return made, middle, {}, wide
    if isinstance(calibration, Calibration) and calibration.observed is not None:
        reals = {name: each.real for name, each in middle.items()}
        calibration.observed = calibration.observed.centered(made, reals)
    return made, middle, ranges_around(made, ranges, middle), wide


def _need_no_middle(graph: Graph, floats: Collection[str], wide: Collection[str]) -> list[str]:
    """Results of 16 bits, which have levels enough, and answers that layers make in float."""
    answers = {output.tensor for output in graph.outputs}
    return [
        node.output
        for node in graph.nodes
        if node.name in wide or (node.name in floats and node.output in answers)
    ]


def _middles_of_inputs(
    graph: Graph,
    ranges: Mapping[str, float],
    calibration: FloatArray | Mapping[str, FloatArray] | None,
    how: Quantization,
) -> dict[str, ZeroPoint]:
    """Of the inputs that no layer reads in float."""
    floats = float_nodes(graph, how.keep_float)
    data = None if calibration is None else by_name(graph, calibration)
    read = {name for node in graph.nodes if node.name in floats for name in node.inputs}
    found = input_zero_points(graph, ranges, data)
    return {name: middle for name, middle in found.items() if name not in read}
