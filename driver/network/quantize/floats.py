"""Which operators of a network stay in float32 on the processor, and why.

Those that have no integer form, those that the user names, and next to such those that are rounded
to int8 once less without another crossing between processor and accelerator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from tilefarm.real import is_exact

from driver.network.graph import ir
from driver.network.graph.ir import Graph, GraphNode, Shape
from driver.network.quantize.layer_selection import named
from driver.network.quantize.scales import is_wider

KEPT: Final = "kept in float by the user"
ANSWER: Final = "joins answers of unlike ranges, which have steps of their own so"
BESIDE: Final = "next to operators in float: it is rounded to int8 once less"
_MOVES: Final = (ir.Concat, ir.Gather, ir.MaxPool2d, ir.Slice)
"""Operators that make no values: they commute with rounding."""
_ON_PROCESSOR: Final = (ir.Product, ir.Slopes, ir.Unary)
"""Operators that the accelerator has no form for."""
_LIGHT: Final = (*_MOVES, *_ON_PROCESSOR, ir.Add, ir.Affine, ir.Clip)
"""Operators that cost no more in float than the way to int8 and back."""

_MASK: Final = 1e4
"""The least magnitude that tells a mask from a bias: its exponential is beyond float32."""


def float_nodes(
    graph: Graph,
    patterns: Sequence[str] = (),
    ranges: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, str]:
    """The names of the nodes that stay in float, with the reasons.

    Args:
        graph: a float network.
        patterns: names of nodes that the user keeps in float; `*`, `?` and `[...]` as in file
            names.
        ranges: the largest magnitude of every tensor, as far as they are known; no layer is in
            float for them.

    Raises:
        SettingsError: no node has a name, or one has no form in float32; all such are listed.
    """
    forced = {
        node.name: reason for node in graph.nodes if (reason := _no_integer_form(node, graph))
    }
    forced |= dict.fromkeys(_joined_answers(graph, ranges), ANSWER)
    lacking = {node.name: has_no_kernel(node.op) for node in graph.nodes}
    forced |= dict.fromkeys(named("--keep-float", patterns, lacking), KEPT)
    return forced | dict.fromkeys(_beside(graph, forced), BESIDE)


def has_no_kernel(op: ir.Operator) -> str:
    """Why an operator has no form in float32 with the same bits everywhere; empty if it has one."""
    if isinstance(op, ir.Unary) and not is_exact(op.function, op.parameters):
        return f"{op.function} has no fixed order of float32 operations"
    if isinstance(op, ir.FakeQuantize | ir.ScaleSums):
        return "it is the file's own arithmetic, which is of integers"
    return "" if not isinstance(op, ir.Reshape) else "reshaping computes nothing"


def _no_integer_form(node: GraphNode, graph: Graph) -> str:
    match node.op:
        case ir.Reduce():
            return "combines values along axes that no window of the accelerator goes over"
        case ir.Affine(bias=add) if np.abs(add).max() >= _MASK:
            return "adds a mask, next to which int8 has no step for its operand"
        case ir.Normalize():
            return "divides by a root, which integers do not have"
        case ir.Custom(label=label):
            return f"{label} is an operator of a plugin, and those are in float"
        case ir.Take():
            return "takes what the data point to"
        case ir.Softmax(log=True):
            return "needs exponentials and a logarithm in float32"
        case ir.Softmax(axis=axis) if not is_by_channel(axis, graph.shapes[node.output]):
            return "needs exponentials and float32 division"
    return ""


def _joined_answers(graph: Graph, ranges: Mapping[str, float]) -> list[str]:
    """The names of concatenations of unlike ranges that only the user reads, moved or not.

    What moves their results on the way to the user is among them.
    """
    users = graph.users()
    last: dict[str, GraphNode] = {}
    for node in reversed(graph.nodes):
        if isinstance(node.op, (*_MOVES, ir.Reshape)) and all(
            user.name in last for user in users[node.output]
        ):
            last[node.name] = node
    joined: set[str] = set()
    found = []
    for node in reversed(last.values()):
        if not joined.isdisjoint(node.inputs) or _joins_unlike(node, ranges):
            joined.add(node.output)
            found += [] if isinstance(node.op, ir.Reshape) else [node.name]
    return found


def _joins_unlike(node: GraphNode, ranges: Mapping[str, float]) -> bool:
    reaches = [ranges[name] for name in node.inputs if ranges.get(name)]
    is_join = isinstance(node.op, ir.Concat)
    return is_join and bool(reaches) and is_wider(max(reaches), min(reaches))


def is_by_channel(axis: int, shape: Shape) -> bool:
    """Whether a softmax is over the channels of single pixels, for which int8 has a kernel."""
    return axis == 1 and all(extent == 1 for extent in shape[2:])


def _beside(graph: Graph, forced: Mapping[str, str]) -> list[str]:
    """The light nodes that are in float as their neighbours are.

    What the processor has to compute anyway is, where an operand is a float or a float is wanted:
    int8 would round once more. What the accelerator could compute is, where nothing crosses over
    for that. What only moves values is between floats, because int8 values move faster.
    """
    wanted = _wanted_by_floats(graph, forced)
    before = _only_before_floats(graph, forced, wanted)
    floats: set[str] = set()
    found = []
    for node in graph.nodes:
        given = [name in floats for name in node.inputs]
        match node.op:
            case _ if node.name in forced:
                is_float = True
            case ir.Reshape():
                is_float = given[0]
            case ir.Softmax():  # which makes a float of any operand
                is_float = True
                found += [node.name] if given[0] else []
            case _ if not _is_light(node):
                is_float = False
            case _:
                is_wanted = node.output in wanted
                is_float = node.name in before or _fits_in(node, graph, given, is_wanted=is_wanted)
                found += [node.name] if is_float else []
        if is_float:
            floats.add(node.output)
    return found


def _fits_in(node: GraphNode, graph: Graph, given: Sequence[bool], *, is_wanted: bool) -> bool:
    """Whether a light node is in float; `given` says which of its operands are."""
    inputs = {i.name for i in graph.inputs}
    are_all = all(at or name in inputs for at, name in zip(given, node.inputs, strict=True))
    if isinstance(node.op, _MOVES):
        is_last = node.output in {output.tensor for output in graph.outputs}
        return are_all and (is_wanted or (is_last and any(given)))
    if isinstance(node.op, _ON_PROCESSOR):
        return is_wanted or any(given)
    return (are_all and (is_wanted or any(given))) or (is_wanted and any(given))


def _wanted_by_floats(graph: Graph, forced: Mapping[str, str]) -> set[str]:
    """The tensors that a node in float reads, through light ones or not."""
    wanted: set[str] = set()
    for node in reversed(graph.nodes):
        passes_on = _is_light(node) or isinstance(node.op, ir.Reshape)
        if node.name in forced or (passes_on and node.output in wanted):
            wanted.update(node.inputs)
    return wanted


def _only_before_floats(
    graph: Graph, forced: Mapping[str, str], wanted: Collection[str]
) -> set[str]:
    """The names of scales, offsets and clips that floats alone read: one tensor crosses anyway.

    Masks of attention are among them, offsets beyond any int8 scale.
    """
    users, outputs = graph.users(), {output.tensor for output in graph.outputs}

    def is_float(node: GraphNode) -> bool:
        passes_on = _is_light(node) or isinstance(node.op, ir.Reshape)
        return node.name in forced or (passes_on and node.output in wanted)

    return {
        node.name
        for node in graph.nodes
        if isinstance(node.op, ir.Affine | ir.Clip)
        and node.output in wanted
        and node.output not in outputs
        and all(map(is_float, users[node.output]))
    }


def _is_light(node: GraphNode) -> bool:
    return isinstance(node.op, _LIGHT) and not has_no_kernel(node.op)
