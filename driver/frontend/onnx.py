"""ONNX file to float graph; what cannot be taken is one error that lists every offending node."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from tilefarm.errors import ModelError

from driver.frontend import arithmetic, reshapes, windows
from driver.frontend.call import Call, Lowered, RefusedError, Scope, UnknownError, call_of
from driver.frontend.constants import CONSTANT_OPERATORS, constant_result
from driver.frontend.file import inferred_shapes, opset_of, read_initializers, read_model
from driver.frontend.order import needed_in_order
from driver.graph.fold import fold
from driver.graph.ir import Graph, GraphInput, GraphOutput, Node, Shape
from driver.graph.shapes import graph_of, result_shape

RULES: Final[Mapping[str, Callable[[Call, Scope], Lowered]]] = {
    "Add": arithmetic.add,
    "AveragePool": windows.average_pool,
    "BatchNormalization": arithmetic.batch_norm,
    "Cast": arithmetic.cast,
    "Clip": arithmetic.clip,
    "Conv": windows.conv,
    "Div": arithmetic.divide,
    "Dropout": arithmetic.dropout,
    "Flatten": reshapes.flatten,
    "Gemm": arithmetic.gemm,
    "GlobalAveragePool": windows.global_average_pool,
    "GlobalMaxPool": windows.global_max_pool,
    "Identity": arithmetic.same,
    "MatMul": arithmetic.matmul,
    "MaxPool": windows.max_pool,
    "Mul": arithmetic.multiply,
    "ReduceMean": windows.reduce_mean,
    "Relu": arithmetic.relu,
    "Reshape": reshapes.reshape,
    "Softmax": arithmetic.softmax,
    "Squeeze": reshapes.squeeze,
    "Sub": arithmetic.subtract,
    "Transpose": reshapes.transpose,
    "Unsqueeze": reshapes.unsqueeze,
}
"""What each operator on activations becomes. Operators on constants are in `constants`."""

_MOST_ELEMENTS: Final = 1 << 30
_REFUSAL_HINT: Final = "export without these, or put what is equal in their place"
_BATCH_HINT: Final = "export with a fixed batch of 1 (no dynamic axes)"


def import_model(path: Path) -> Graph:
    """The network in an ONNX file, folded, with static shapes.

    Raises:
        ModelError: the file is not a readable ONNX model of opset 8 to 21, an input has no static
            float32 shape, or nodes cannot be taken: all of them are listed as
            "name (operator): reason".
    """
    model = read_model(path)
    opset = opset_of(model, path)
    weights = read_initializers(model, path)
    scope = Scope(constants=weights, inputs={}, shapes={})
    for given in _inputs(model, path):
        scope.inputs[given.name] = given
        scope.shapes[given.name] = given.shape
    known = weights.keys() | scope.inputs.keys()
    nodes = needed_in_order(model.graph, known, path)
    scope.readers = _reader_counts(model.graph, nodes)
    reasons = _take_all(model, _named(nodes), scope, opset)
    if reasons:
        raise _refusal(path, reasons)
    outputs = _outputs(model.graph, scope, path)
    inputs = [scope.inputs[name] for name in scope.inputs]
    with np.errstate(over="ignore", invalid="ignore"):
        graph = fold(graph_of(path.stem, inputs, outputs, scope.nodes))
    reasons = [f"{node.name}: its folded weights leave float32" for node in _infinite(graph)]
    if reasons:
        raise _refusal(path, reasons)
    return graph


def _take_all(
    model: onnx.ModelProto, nodes: Sequence[tuple[str, onnx.NodeProto]], scope: Scope, opset: int
) -> list[str]:
    """Adds the nodes to the scope; gives a reason for each that cannot be taken.

    What a refused node makes keeps the shape that ONNX infers for it, so that the nodes behind it
    are checked as well and one error lists them all.
    """
    reasons: list[str] = []
    inferred: dict[str, Shape] = {}
    for name, node in nodes:
        reason = _take(name, node, scope, opset)
        if reason and not reasons:
            inferred = inferred_shapes(model)
        if reason:
            reasons.append(reason)
        if scope.unknown.intersection(node.output):
            scope.shapes |= {n: inferred[n] for n in node.output if n in inferred}
    return reasons


def _take(name: str, node: onnx.NodeProto, scope: Scope, opset: int) -> str | None:
    """Adds one node to the scope, or says why not."""
    try:
        call = call_of(node, name, opset)
        _check_supported(call)
        if scope.unknown.intersection(call.inputs) - scope.shapes.keys():
            raise UnknownError
        _check_outputs(call, scope)
        value = constant_result(call, scope)
        if value is not None:
            scope.constants[call.outputs[0]] = value
        else:
            _emit(call, _rule(call)(call, scope), scope)
    except UnknownError:
        scope.unknown.update(node.output)
    except ValueError as reason:
        scope.unknown.update(node.output)
        return f"{name} ({node.op_type}): {reason}"
    return None


def _emit(call: Call, lowered: Lowered, scope: Scope) -> None:
    """Adds the nodes of a chain; the last one makes the tensor that the ONNX node makes."""
    operands = lowered.operands
    made: list[Node] = []
    shapes = dict(scope.shapes)
    for position, op in enumerate(lowered.chain):
        last = position == len(lowered.chain) - 1
        output = call.outputs[0] if last else f"{call.outputs[0]}.{position}"
        shapes[output] = result_shape(op, [shapes[name] for name in operands])
        name = call.name if last else f"{call.name}.{position}"
        made.append(Node(name=name, op=op, inputs=operands, output=output))
        operands = (output,)
    scope.shapes.update(shapes)
    scope.nodes += made
    if not made:
        scope.alias[call.outputs[0]] = operands[0]


def _rule(call: Call) -> Callable[[Call, Scope], Lowered]:
    if call.operator not in RULES:
        raise RefusedError("operator is supported on constants only")
    return RULES[call.operator]


def _check_supported(call: Call) -> None:
    if call.domain:
        raise RefusedError(f"operators of the domain {call.domain!r} are not supported")
    if call.operator not in RULES and call.operator not in CONSTANT_OPERATORS:
        raise RefusedError("operator is not supported")


def _check_outputs(call: Call, scope: Scope) -> None:
    for name in call.outputs[1:]:
        if name and scope.readers.get(name, 0):
            raise RefusedError(f"its further output {name!r} is used")
    for name in call.inputs:
        known = name in scope.constants or scope.resolved(name) in scope.shapes
        if name and not known:
            raise RefusedError(f"input {name!r} is neither a weight nor made by a node")


def _inputs(model: onnx.ModelProto, path: Path) -> list[GraphInput]:
    """The inputs that are not weights, in their order."""
    weights = {tensor.name for tensor in model.graph.initializer}
    values = [value for value in model.graph.input if value.name not in weights]
    if not values:
        raise ModelError(f"{path}: the network has no input", "export the model again")
    inputs = [_input(value, path) for value in values]
    if len({i.shape[0] for i in inputs}) != 1:
        raise ModelError(
            f"{path}: inputs of different batch: {[i.shape[0] for i in inputs]}", _BATCH_HINT
        )
    return inputs


def _input(value: onnx.ValueInfoProto, path: Path) -> GraphInput:
    kind = value.type.tensor_type
    if kind.elem_type != onnx.TensorProto.FLOAT:
        names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
        given = names.get(kind.elem_type, f"of the unknown type {kind.elem_type}")
        raise ModelError(
            f"{path}: input {value.name!r} is {given}; only float32 is supported",
            "export the float network; tilefarm quantizes it itself",
        )
    if not kind.HasField("shape"):
        raise ModelError(f"{path}: input {value.name!r} has no shape", _BATCH_HINT)
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in kind.shape.dim]
    shape = tuple(d for d in dims if isinstance(d, int))
    if len(shape) != len(dims) or any(d < 1 for d in shape):
        shown = ", ".join(map(str, dims))
        raise ModelError(
            f"{path}: input {value.name!r} has the dynamic shape [{shown}];"
            " every extent must be a fixed number",
            _BATCH_HINT,
        )
    if math.prod(shape) > _MOST_ELEMENTS:
        raise ModelError(f"{path}: input {value.name!r} has {list(shape)} elements: too many")
    if len(shape) < 2:
        raise ModelError(f"{path}: input {value.name!r} has shape {list(shape)}, not [N, C, ...]")
    return GraphInput(name=value.name, shape=shape, axes=tuple(range(len(shape))))


def _outputs(graph: onnx.GraphProto, scope: Scope, path: Path) -> list[GraphOutput]:
    outputs = []
    for value in graph.output:
        tensor = scope.resolved(value.name)
        if tensor not in scope.shapes or tensor in scope.inputs:
            raise ModelError(f"{path}: output {value.name!r} is not computed from the input")
        outputs.append(GraphOutput(name=value.name, tensor=tensor))
    return outputs


def _named(nodes: Sequence[onnx.NodeProto]) -> list[tuple[str, onnx.NodeProto]]:
    """Every node with a name of its own: its name, else that of its first output."""
    named, taken = [], set()
    for node in nodes:
        name = node.name or node.output[0]
        while name in taken:
            name += "_"
        taken.add(name)
        named.append((name, node))
    return named


def _reader_counts(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, int]:
    """How many nodes and outputs read each name."""
    counts: dict[str, int] = {}
    for name in [*(i for node in nodes for i in node.input), *(o.name for o in graph.output)]:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _infinite(graph: Graph) -> list[Node]:
    """The nodes whose constants are not finite."""
    return [
        node
        for node in graph.nodes
        for value in (getattr(node.op, name) for name in node.op.__dataclass_fields__)
        if isinstance(value, np.ndarray) and not np.isfinite(value).all()
    ]


def _refusal(path: Path, reasons: Sequence[str]) -> ModelError:
    if len(reasons) == 1:
        return ModelError(f"{path}: {reasons[0]}", _REFUSAL_HINT)
    listed = "".join(f"\n  {reason}" for reason in reasons)
    return ModelError(f"{path}: {len(reasons)} nodes cannot be taken:{listed}", _REFUSAL_HINT)
