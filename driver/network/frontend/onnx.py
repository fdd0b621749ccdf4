"""ONNX file to float graph; what cannot be taken is one error that lists every reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from tilefarm.names import unused
from tilefarm.readable import readable

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import (
    Lowered,
    OnnxCall,
    RefusedError,
    Result,
    Scope,
    UnknownError,
    call_of,
)
from driver.network.frontend.computed import computed
from driver.network.frontend.constants import CONSTANT_OPERATORS, constant_results
from driver.network.frontend.dynamic_dimensions import Extents, fix_extents
from driver.network.frontend.file import opset_of, read_initializers, tensor_array
from driver.network.frontend.function_inlining import model_with_bodies
from driver.network.frontend.graph_inputs_and_outputs import (
    batches,
    inputs_of,
    integers_of,
    outputs_of,
)
from driver.network.frontend.integer_inputs import open_doors
from driver.network.frontend.integers import grids
from driver.network.frontend.integers.plain_integers import as_integers
from driver.network.frontend.integers.whole_weights import pass_on_whole
from driver.network.frontend.order import needed_in_order
from driver.network.frontend.reasons import Reasons
from driver.network.frontend.rules import COMPOSITIONS, SEVERAL_OUTPUTS, check_supported, rule_of
from driver.network.frontend.schemas import check_form
from driver.network.frontend.shape_inference import inferred_shapes
from driver.network.frontend.steps import Steps
from driver.network.frontend.taken_branch import branch_of, note_captures
from driver.network.graph.ir import Graph, GraphInput, GraphNode, Reshape, Shape
from driver.network.graph.shapes import graph_of
from driver.network.rewrites.fold import fold, tidied

_REFUSAL_HINT: Final = "export without these, or put what is equal in their place"


def import_model(
    path: Path, extents: Extents | None = None, *, keeps_integers: bool = False
) -> Graph:
    """The network in an ONNX file, folded, with static shapes.

    Args:
        path: the file.
        extents: of inputs and dimensions that the file leaves open.
        keeps_integers: whether what is quantized in the file keeps its own arithmetic: rounding is
            `FakeQuantize`, layers have whole weights and `ScaleSums`, and moves alone are folded.

    Raises:
        SettingsError: the extents contradict the file.
        ModelError: the file is not a readable ONNX model of opset 7 to 28; weights cannot be read;
            an input has no static shape of numbers; names are made twice or never, or in a ring;
            nodes cannot be taken. All of it is listed, nodes as "name (operator): reason".
    """
    model = model_with_bodies(path)
    fix_extents(model, extents or {})
    note_captures(model.graph)
    readings = [Reasons() for _ in batches(model.graph)]
    for batch, reasons in zip(batches(model.graph), readings, strict=True):
        graph = _read(model, path, batch, reasons, keeps_integers=keeps_integers)
        if graph is not None:
            return graph
    raise readings[0].error(path)


def _read(
    model: onnx.ModelProto, path: Path, batch: int, reasons: Reasons, *, keeps_integers: bool
) -> Graph | None:
    """The network, if a batch of so many samples can be seen in it."""
    opset = opset_of(model, reasons)
    scope = _opening(model.graph, path, batch, reasons)
    scope.keeps_integers = keeps_integers
    nodes, stuck = needed_in_order(model.graph, reasons)
    scope.unknown.update(name for node in stuck for name in node.output)
    scope.readers = _reader_counts(model.graph, [*nodes, *stuck])
    _take_all(model, _named([*nodes, *stuck]), scope, opset, reasons)
    _copy_inputs(model.graph, scope)
    outputs = outputs_of(model.graph, scope, reasons)
    if reasons:
        return None
    open_doors(scope, {output.tensor for output in outputs})
    scope.constants.clear()  # What is needed of them is in the nodes, often in another order.
    inputs = list(scope.inputs.values())
    with np.errstate(over="ignore", invalid="ignore"):
        graph = graph_of(readable(path.stem), inputs, outputs, scope.nodes)
        graph = tidied(graph) if keeps_integers else fold(graph)
    ranges = {name: reach for name, reach in scope.ranges.items() if name in graph.shapes}
    for node in _infinite(graph):
        reasons.add(f"{node.name}: its folded weights leave float32", _REFUSAL_HINT)
    return None if reasons else replace(graph, ranges=ranges)


def _copy_inputs(graph: onnx.GraphProto, scope: Scope) -> None:
    """Makes every output that is an input, by another name, a tensor of its own."""
    for name in (output.name for output in graph.output):
        given = scope.resolved(name)
        if given in scope.inputs and given != name:
            del scope.alias[name]
            scope.emit(name, name, Lowered((Reshape(shape=scope.held(given)[1:]),), (given,)))


def _opening(graph: onnx.GraphProto, path: Path, batch: int, reasons: Reasons) -> Scope:
    """What is known before the first node; inputs and weights that are no good are unknown."""
    constants = read_initializers(graph, path, reasons)
    scope = Scope(constants=constants, inputs={}, shapes={}, batch=batch)
    for name, shape in inputs_of(graph, reasons).items():
        held = held_shape(shape, batch)
        scope.inputs[name] = GraphInput(name=name, shape=held, axes=tuple(range(len(held))))
        scope.shapes[name] = shape
    scope.grids |= {name: grid for name, grid in integers_of(graph).items() if name in scope.inputs}
    named = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    named.update(sparse.values.name for sparse in graph.sparse_initializer)
    scope.unknown.update(named - scope.constants.keys() - scope.shapes.keys())
    return scope


def _take_all(
    model: onnx.ModelProto,
    nodes: Sequence[tuple[str, onnx.NodeProto]],
    scope: Scope,
    opset: int,
    reasons: Reasons,
) -> None:
    """Adds the nodes to the scope; gives a reason for each that cannot be taken.

    What a refused node makes keeps the shape that ONNX infers for it, so that the nodes behind it
    are checked as well and one error lists them all.
    """
    inferred: dict[str, Shape] | None = None
    read = {name for _, node in nodes for name in node.input}
    for name, node in nodes:
        reason = _take(name, node, scope, opset)
        if reason:
            reasons.add(reason, _REFUSAL_HINT)
        if scope.unknown.intersection(node.output) & read:
            inferred = inferred_shapes(model) if inferred is None else inferred
            scope.shapes |= {n: inferred[n] for n in node.output if _fits(inferred.get(n), scope)}


def _fits(shape: Shape | None, scope: Scope) -> bool:
    """Whether the graph could have a tensor of that shape."""
    return shape is not None and (scope.batch in (1, shape[0]))


def _take(name: str, node: onnx.NodeProto, scope: Scope, opset: int) -> str | None:
    """Adds one node to the scope, or says why not."""
    try:
        call = call_of(node, name, opset)
        check_supported(call)
        check_form(call)
        if scope.unknown.intersection(call.inputs) - scope.shapes.keys():
            raise UnknownError
        _check_outputs(call, scope)
        _compute(call, scope)
    except UnknownError:
        scope.unknown.update(node.output)
    except ValueError as reason:
        scope.unknown.update(node.output)
        return f"{name} ({node.op_type}): {reason}"
    return None


def _compute(call: OnnxCall, scope: Scope) -> None:
    """Adds what a call makes: constants, the operators of its rule, or those of its steps."""
    made = _by_branch(call, scope) if call.full_name == "If" else _by_steps(call, scope)
    if made is not None:
        for output, name in zip(call.outputs, made, strict=False):
            _call_it(output, name, scope)
        return
    grids.check(call, scope)
    values = constant_results(call, scope)
    if values is None and call.inputs and _is_fixed(call, scope):
        values = computed(call, scope, _compute)
    if values is not None:
        scope.constants.update(zip(call.outputs, values, strict=False))
        pass_on_whole(call, scope)
    else:
        _emit_all(call, _results(call, scope), scope)
    grids.pass_on(call, scope)


def _by_steps(call: OnnxCall, scope: Scope) -> tuple[str, ...] | None:
    """The results of a call's steps; None if it has none, or a rule for constants computes it."""
    if call.full_name not in COMPOSITIONS:
        return None
    if call.operator in CONSTANT_OPERATORS and _is_fixed(call, scope):
        return None
    return COMPOSITIONS[call.full_name](call, Steps(call, scope, _compute))


def _by_branch(call: OnnxCall, scope: Scope) -> tuple[str, ...]:
    """The results of the branch that an If takes."""
    branch = branch_of(call, scope)
    scope.constants.update((tensor.name, tensor_array(tensor)) for tensor in branch.weights)
    for name, node in _named(branch.nodes):
        reason = _take(f"{call.name}.{name}", node, scope, call.opset)
        if reason:
            raise RefusedError(f"takes a branch with {reason}")
        if scope.unknown.intersection(node.output):
            raise UnknownError
    return branch.outputs


def _is_fixed(call: OnnxCall, scope: Scope) -> bool:
    return all(scope.is_constant(name) for name in call.inputs if name)


def _call_it(output: str, name: str, scope: Scope) -> None:
    """Gives what has a name another one."""
    if not output or not name:
        return
    if name in scope.constants:
        scope.constants[output] = scope.constants[name]
    else:
        scope.alias[output] = scope.resolved(name)
    if name in scope.grids:
        scope.grids[output] = scope.grids[name]
    if name in scope.units:
        scope.units[output] = scope.units[name]


def _results(call: OnnxCall, scope: Scope) -> tuple[Result, ...]:
    """What the operator's rule makes of a call, for every output."""
    found = rule_of(call)(call, scope)
    results = found if isinstance(found, tuple) else (found,)
    return tuple(
        as_integers(call, each, scope) if isinstance(each, Lowered) else each for each in results
    )


def _emit_all(call: OnnxCall, results: tuple[Result, ...], scope: Scope) -> None:
    """Adds the nodes for every output that has a name."""
    for index, (output, each) in enumerate(zip(call.outputs, results, strict=False)):
        if not output:
            continue
        if isinstance(each, Lowered):
            scope.emit(f"{call.name}.{index}" if index else call.name, output, each)
        else:
            scope.constants[output] = each


def _check_outputs(call: OnnxCall, scope: Scope) -> None:
    further = () if call.operator in SEVERAL_OUTPUTS else call.outputs[1:]
    for name in further:
        if name and scope.readers.get(name, 0):
            raise RefusedError(f"its further output {name!r} is used")
    for name in call.inputs:
        known = name in scope.constants or scope.resolved(name) in scope.shapes
        if name and not known:
            raise RefusedError(f"input {name!r} is neither a weight nor made by a node")


def _named(nodes: Sequence[onnx.NodeProto]) -> list[tuple[str, onnx.NodeProto]]:
    """Every node with a name of its own: its name, else that of its first output."""
    named, taken = [], set[str]()
    for node in nodes:
        name = unused(node.name or node.output[0], taken)
        taken.add(name)
        named.append((name, node))
    return named


def _reader_counts(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, int]:
    """How many nodes and outputs read each name."""
    counts: dict[str, int] = {}
    for name in [*(i for node in nodes for i in node.input), *(o.name for o in graph.output)]:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _infinite(graph: Graph) -> list[GraphNode]:
    """The nodes whose constants are not finite."""
    return [
        node
        for node in graph.nodes
        for value in (getattr(node.op, name) for name in node.op.__dataclass_fields__)
        if isinstance(value, np.ndarray) and not np.isfinite(value).all()
    ]
