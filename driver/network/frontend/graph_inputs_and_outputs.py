"""The inputs and outputs of a model: what the user gives and gets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import onnx

from driver.network.frontend.call import Lowered, Scope
from driver.network.frontend.dynamic_dimensions import option_for
from driver.network.frontend.integers.qdq_pairs import clip_onto
from driver.network.frontend.reasons import Reasons
from driver.network.graph.grid import BOUNDS, Grid
from driver.network.graph.ir import GraphOutput, Shape

_FLOATS: Final = ("float", "float16", "bfloat16", "double")
"""Taken as float32, whichever it is."""
_AGAIN: Final = "export the model again"
_LEAVE_OUT: Final = "leave this output out: it is always the same"
_MOST_ELEMENTS: Final = 1 << 30


def batches(graph: onnx.GraphProto) -> tuple[int, ...]:
    """How many samples a run of the network may take, the likeliest first; 1 is always possible.

    If all inputs begin with one extent, and have more axes, that is likely to count samples.
    """
    shapes = inputs_of(graph, Reasons()).values()
    first = {shape[0] for shape in shapes if len(shape) > 1}
    common = len(first) == 1 and all(len(shape) > 1 for shape in shapes)
    return tuple(dict.fromkeys((*first, 1))) if common else (1,)


def inputs_of(graph: onnx.GraphProto, reasons: Reasons) -> dict[str, Shape]:
    """The shapes of the inputs that are not weights, in their order, as far as they can be taken.

    One of which only the batch is not fixed counts as one of batch 1, so that the nodes behind it
    are still looked at.
    """
    weights = {tensor.name for tensor in graph.initializer}
    values = [value for value in graph.input if value.name not in weights]
    if not values:
        reasons.add("the network has no input", _AGAIN)
    return dict(_taken(values, reasons))


def _taken(values: list[onnx.ValueInfoProto], reasons: Reasons) -> Iterator[tuple[str, Shape]]:
    seen: set[str] = set()
    for value in values:
        if not value.name or value.name in seen:
            why = "the file has two of that name" if value.name else "it has no name"
            reasons.add(f"input {value.name!r}: {why}", _AGAIN)
        elif _has_numbers(value, reasons):
            shape = _shape(value, reasons)
            if shape is not None:
                yield value.name, shape
        seen.add(value.name)


def integers_of(graph: onnx.GraphProto) -> dict[str, Grid]:
    """The inputs of integers, as whole numbers."""
    return {
        value.name: Grid(1.0, 0, name)
        for value in graph.input
        if (name := _type_name(value.type.tensor_type.elem_type)) in BOUNDS
    }


def _type_name(number: int) -> str:
    """What ONNX calls an element type."""
    names = {known: name.lower() for name, known in onnx.TensorProto.DataType.items()}
    return names.get(number, f"of the unknown type {number}")


def _has_numbers(value: onnx.ValueInfoProto, reasons: Reasons) -> bool:
    kind = value.type.WhichOneof("value") or "nothing"
    if kind != "tensor_type":
        reasons.add(
            f"input {value.name!r} is a {kind.removesuffix('_type')}, not a tensor",
            "export the model with tensors as inputs",
        )
        return False
    given = _type_name(value.type.tensor_type.elem_type)
    if given not in _FLOATS and given not in BOUNDS:
        reasons.add(
            f"input {value.name!r} is {given}; only float32, integers and truth values are"
            " supported",
            "export the network with float32 in place of it"
            if given.startswith("float")
            else "begin the network behind the nodes that read it",
        )
        return False
    return True


def _shape(value: onnx.ValueInfoProto, reasons: Reasons) -> Shape | None:
    """The fixed shape of an input, None where it cannot be taken at all."""
    kind, label = value.type.tensor_type, f"input {value.name!r}"
    if not kind.HasField("shape"):
        reasons.add(f"{label} has no shape", option_for(value))
        return None
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in kind.shape.dim]
    fixed = [isinstance(dim, int) and dim > 0 for dim in dims]
    if not all(fixed):
        shown = ", ".join(map(str, dims))
        why = f"the dynamic shape [{shown}]; every extent must be a fixed number"
        if all(isinstance(dim, int) for dim in dims):
            why = f"the shape [{shown}]; every extent must be at least 1"
        reasons.add(f"{label} has {why}", option_for(value))
        if not all(fixed[1:]):
            return None
        dims[0] = 1
    shape = tuple(int(dim) for dim in dims)
    if math.prod(shape) > _MOST_ELEMENTS:
        reasons.add(
            f"{label} has the shape {list(shape)}: too many elements, at most {_MOST_ELEMENTS}",
            "a smaller --shape, or a smaller network",
        )
    else:
        return shape
    return None


def outputs_of(graph: onnx.GraphProto, scope: Scope, reasons: Reasons) -> list[GraphOutput]:
    """The results by the names that the user knows, as far as nothing speaks against them.

    One that a refused node would have made is not another reason.
    """
    outputs: dict[str, GraphOutput] = {}
    if not graph.output:
        reasons.add("the network has no output", _AGAIN)
    for value in graph.output:
        tensor = scope.resolved(value.name)
        if value.name in outputs:
            reasons.add(f"output {value.name!r}: the file has two of that name", _AGAIN)
        elif value.name in scope.unknown:
            continue
        elif scope.units.get(value.name):
            reasons.add(
                f"output {value.name!r} is in steps of a scale that only data decide",
                "end the network where they have been multiplied by the scale",
            )
        elif tensor in scope.constants or _is_given(value.name, scope):
            reasons.add(f"output {value.name!r} is not computed from the input", _LEAVE_OUT)
        elif tensor not in scope.shapes:
            reasons.add(f"no node makes the output {value.name!r}", _AGAIN)
        else:
            outputs[value.name] = _output(value.name, scope)
    return list(outputs.values())


def _is_given(name: str, scope: Scope) -> bool:
    """Whether an output is an input as it is, not one that was made integers."""
    return scope.resolved(name) in scope.inputs and name not in scope.grids


def _output(name: str, scope: Scope) -> GraphOutput:
    """A result; where an input is made integers, this is at least a clip."""
    tensor, grid = scope.resolved(name), scope.grids.get(name)
    if grid is not None and tensor in scope.inputs:
        made = f"{name}\0made"
        scope.emit(name, made, Lowered((clip_onto(made, scope, grid),), (tensor,)))
        tensor = made
    return GraphOutput(name=name, tensor=tensor, grid=grid)
