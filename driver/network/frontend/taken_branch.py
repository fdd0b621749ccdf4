"""If whose condition is known at import: the nodes of the branch that it takes.

Exporters write one where the shape that they were told left something open, as whether an axis has
an extent of 1; with fixed shapes nothing is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from driver.network.frontend.call import OnnxCall, RefusedError, Scope
from driver.network.frontend.order import needed_in_order
from driver.network.frontend.reasons import Reasons


@dataclass(frozen=True, slots=True)
class Branch:
    """What a branch computes, its names made unlike all others of the file."""

    weights: tuple[onnx.TensorProto, ...]
    nodes: tuple[onnx.NodeProto, ...]
    outputs: tuple[str, ...]


def note_captures(graph: onnx.GraphProto) -> None:
    """Adds to the inputs of every If what its branches read of the tensors around them."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH and node.op_type == "If":
                note_captures(attribute.g)
                node.input.extend(_read_from_outside(attribute.g))


def branch_of(call: OnnxCall, scope: Scope) -> Branch:
    """The branch that is taken.

    Raises:
        RefusedError: only data decide which, or there is none.
        UnknownError: a refused node would have made the condition.
    """
    name = call.inputs[0] if call.has_input(0) else ""
    if name not in scope.unknown and not scope.is_constant(name):
        raise RefusedError(f"data decide its condition {name!r}; it must be known at import")
    condition = scope.constant(call, 0, "condition")
    which = "then_branch" if condition.size == 1 and condition.reshape(-1)[0] else "else_branch"
    graph = call.attrs.get(which)
    if not isinstance(graph, onnx.GraphProto) or len(graph.output) != len(call.outputs):
        raise RefusedError(f"its {which} does not make its {len(call.outputs)} outputs")
    return _with_own_names(graph, f"{call.outputs[0]}.")


def _with_own_names(graph: onnx.GraphProto, prefix: str) -> Branch:
    made = onnx.GraphProto()
    made.CopyFrom(graph)
    nodes = needed_in_order(made, Reasons())[0]
    _rename(made, {name: f"{prefix}{name}" for name in _made_in(made)})
    outputs = tuple(value.name for value in made.output)
    return Branch(tuple(made.initializer), tuple(nodes), outputs)


def _made_in(graph: onnx.GraphProto) -> set[str]:
    weights = {tensor.name for tensor in graph.initializer}
    return weights | {name for node in graph.node for name in node.output if name}


def _read_from_outside(graph: onnx.GraphProto) -> list[str]:
    read = [name for node in graph.node for name in node.input if name]
    read += [value.name for value in graph.output]
    made = _made_in(graph)
    return list(dict.fromkeys(name for name in read if name not in made))


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Gives tensors other names, in the graphs within as well."""
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for value in graph.output:
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _rename(attribute.g, names)
