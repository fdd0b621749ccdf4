"""Ranges of every tensor: those that the model gives first, then those of calibration data."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.errors import DataError
from tilefarm.plural import plural

from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, Graph
from driver.network.quantize.calibrate import calibrate
from driver.network.quantize.floats import float_nodes
from driver.network.quantize.methods import MIN_MAX, CalibrationMethod
from driver.network.quantize.scales import ScaleGroups

_NO_SCALE_OF_THEIR_OWN = (ir.Concat, ir.Gather, ir.MaxPool2d, ir.Reshape, ir.Slice, ir.Softmax)
_MOST_NAMES = 8


def ranges_of(
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray] | None,
    method: CalibrationMethod = MIN_MAX,
) -> dict[str, float]:
    """The largest magnitude of every tensor; given ones win over those of the data.

    Args:
        graph: the float network.
        calibration: as for `calibrate`; None where the model gives every range that is needed.
        method: what decides the others.

    Raises:
        DataError: there are no data and tensors without a range, or see `calibrate`.
    """
    given = given_ranges(graph)
    if calibration is not None:
        return calibrate(graph, calibration, method) | given
    missing = tensors_without_range(graph)
    if missing:
        names = [i.name for i in graph.inputs]
        shown = ", ".join(missing[:_MOST_NAMES]) + (", ..." if missing[_MOST_NAMES:] else "")
        raise DataError(
            f"{graph.name} needs --calibrate DATA.npz: it does not give the ranges of"
            f" {plural(len(missing), 'tensor')}: {shown}",
            "inputs whose ranges decide the int8 scales, saved by numpy.savez('data.npz', x=inputs)"
            + (f", each under its name: {', '.join(names)}" if len(names) > 1 else ""),
        )
    return dict.fromkeys(graph.shapes, 1.0) | given


def tensors_without_range(graph: Graph) -> list[str]:
    """The tensors whose scales only calibration can decide, in the order of the network."""
    given, floats, users = given_ranges(graph), float_nodes(graph), graph.users()
    made = [n for n in graph.nodes if _has_own_scale(n.op)]
    needed = [i.name for i in graph.inputs if any(u.name not in floats for u in users[i.name])]
    needed += [
        node.output
        for node in made
        if node.name not in floats or any(u.name not in floats for u in users[node.output])
    ]
    return [name for name in needed if name not in given]


def _has_own_scale(op: ir.Operator) -> bool:
    """Whether the range of a result is not known from its operands, as shares of 1 are."""
    is_logarithm = isinstance(op, ir.Softmax) and op.log
    return is_logarithm or not isinstance(op, _NO_SCALE_OF_THEIR_OWN)


def given_ranges(graph: Graph) -> dict[str, float]:
    """The ranges in the model's file, and those that follow from them.

    Tensors of one scale share the widest; what is only clipped needs no more than the result.
    """
    given = dict(graph.ranges)
    ties = ScaleGroups(graph)
    users = graph.users()
    for node in reversed(graph.nodes):
        alone = isinstance(node.op, ir.Clip) and len(users[node.inputs[0]]) == 1
        if alone and node.output in given:
            given.setdefault(node.inputs[0], given[node.output])
    widest: dict[str, float] = {}
    for name, reach in given.items():
        group = ties.group(name)
        widest[group] = max(widest.get(group, 0.0), reach)
    for name in graph.shapes:
        if ties.group(name) in widest:
            given.setdefault(name, widest[ties.group(name)])
    return given
