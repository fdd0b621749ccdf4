"""One ONNX node as the rules see it, and what is known of the tensors around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from driver.network.frontend.batch_layout import file_shape, held_shape
from driver.network.graph.grid import Grid
from driver.network.graph.ir import (
    FloatArray,
    Gather,
    GraphInput,
    GraphNode,
    Operator,
    Reshape,
    Shape,
)
from driver.network.graph.shapes import result_shape

Array = NDArray[Any]


class RefusedError(ValueError):
    """Why a node cannot be taken; becomes one line of the final ModelError."""


class UnknownError(Exception):
    """A node needs the value of one that was refused: nothing more can be said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxCall:
    """An ONNX node with its attributes decoded; an absent optional input is ""."""

    name: str
    operator: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any]

    def has_input(self, index: int) -> bool:
        return len(self.inputs) > index and self.inputs[index] != ""

    def integer(self, name: str, default: int) -> int:
        value = self.attrs.get(name, default)
        if not isinstance(value, int):
            raise RefusedError(f"attribute {name!r} is not an integer")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.attrs.get(name, default)
        if not isinstance(value, float | int):
            raise RefusedError(f"attribute {name!r} is not a number")
        return float(value)

    @property
    def full_name(self) -> str:
        """The operator's name, behind that of its domain if it is not ONNX's own."""
        return f"{self.domain}.{self.operator}" if self.domain else self.operator

    def integers(self, name: str) -> tuple[int, ...] | None:
        value = self.attrs.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(v, int) for v in value):
            raise RefusedError(f"attribute {name!r} is not a list of integers")
        return tuple(value)

    def text(self, name: str, default: str) -> str:
        value = self.attrs.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a node becomes: operators in a chain, the first reading `operands`.

    An empty chain makes the node another name of its only operand. `shape` is what ONNX says of the
    result; where it is None, the result is held as the first operand is.
    """

    chain: tuple[Operator, ...]
    operands: tuple[str, ...]
    shape: Shape | None = None


Result: TypeAlias = Lowered | Array
"""What becomes of one output of a node: operators, or a value that is known at import."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeConstant:
    """Integers less their zero point, and scales that broadcast over them."""

    steps: NDArray[np.int64]
    scale: FloatArray


@dataclass(slots=True)
class Scope:
    """Everything known so far: constants, activations by their current names, nodes made.

    `shapes` are those of the file; `frontend.batch_layout` says in which ones the graph has them.
    What refused nodes would have made is `unknown`; some of it has a shape nevertheless. `grids`
    has the names of quantized activations, `ranges` the reach of the tensors that hold them, and
    `pairs` which tensor has another one's values on a grid. `readings` has what a tensor that was
    made on one grid is on another.`units` is explained in `frontend.integers.dynamic_scales`.

    Where the network `keeps_integers`, it has the file's own arithmetic, see
    `frontend.integers.whole_weights`: `whole` are the constants that integers stand for, `rounded`
    the tensors that hold nothing between the reals of a grid, and `dynamic` those whose grid is the
    data's.
    """

    constants: dict[str, Array]
    inputs: dict[str, GraphInput]
    shapes: dict[str, Shape]
    alias: dict[str, str] = field(default_factory=dict)
    nodes: list[GraphNode] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    readers: Mapping[str, int] = field(default_factory=dict)
    grids: dict[str, Grid] = field(default_factory=dict)
    ranges: dict[str, float] = field(default_factory=dict)
    pairs: dict[tuple[str, Grid], str] = field(default_factory=dict)
    readings: dict[tuple[str, Grid, Grid], str] = field(default_factory=dict)
    units: dict[str, tuple[str, ...]] = field(default_factory=dict)
    batch: int = 1
    keeps_integers: bool = False
    whole: dict[str, WholeConstant] = field(default_factory=dict)
    rounded: dict[str, Grid] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)

    def resolved(self, name: str) -> str:
        """The tensor that an ONNX name stands for."""
        return self.alias.get(name, name)

    def held(self, name: str) -> Shape:
        """The shape that the graph has of an activation."""
        return held_shape(self.shapes[name], self.batch)

    def emit(self, node: str, result: str, lowered: Lowered) -> None:
        """Adds the nodes of a chain; the last one makes the tensor `result`.

        The first one that computes anything, rather than moves it, gets the name `node`.

        Raises:
            ValueError: the operands do not fit an operator.
        """
        if not lowered.chain:
            self.alias[result] = lowered.operands[0]
            return
        chain, shape = self._in_form(lowered)
        operands, last = lowered.operands, len(chain) - 1
        computing = [at for at, op in enumerate(chain) if not isinstance(op, Reshape | Gather)]
        named = computing[0] if computing else last
        for position, op in enumerate(chain):
            part = f".{position}"
            output = result if position == last else f"{result}{part}"
            name = node if position == named else f"{node}{part}"
            made = GraphNode(name=name, op=op, inputs=operands, output=output)
            self.nodes.append(made)
            operands = (made.output,)
        self.shapes[result] = shape

    def beside(self, what: str, lowered: Lowered, call: OnnxCall) -> str:
        """The result of further nodes that belong to a call."""
        made = f"{call.outputs[0]}.{what}"
        self.emit(f"{call.name}.{what}", made, lowered)
        return self.resolved(made)

    def _in_form(self, lowered: Lowered) -> tuple[tuple[Operator, ...], Shape]:
        """The chain such that its result is held as the file's shape of it is, and that shape."""
        held = [self.held(name) for name in lowered.operands]
        for op in lowered.chain:
            held = [result_shape(op, held)]
        like = self.shapes[lowered.operands[0]]
        shape = lowered.shape
        if shape is None:
            shape = file_shape(held[0], like, self.batch)
        wanted = held_shape(shape, self.batch)
        if held[0] == wanted:
            return lowered.chain, shape
        return (*lowered.chain, Reshape(shape=wanted[1:])), shape

    def is_constant(self, name: str) -> bool:
        return name in self.constants

    def activation(self, call: OnnxCall, index: int = 0) -> str:
        """The activation at that input.

        Raises:
            RefusedError: it is absent or a constant.
        """
        name = self.resolved(call.inputs[index]) if call.has_input(index) else ""
        if name not in self.shapes:
            raise RefusedError(f"input {index} must be an activation, not a constant")
        return name

    def shape_at(self, call: OnnxCall, index: int) -> Shape:
        """The file's shape of what is at that input, a constant or an activation."""
        if self.is_constant(call.inputs[index]):
            return self.constants[call.inputs[index]].shape
        return self.shapes[self.activation(call, index)]

    def maker(self, name: str) -> GraphNode | None:
        """The node that made a tensor."""
        return next((node for node in reversed(self.nodes) if node.output == name), None)

    def constant(self, call: OnnxCall, index: int, what: str) -> Array:
        """The constant at that input.

        Raises:
            RefusedError: it is absent or not constant.
            UnknownError: a refused node would have made it.
        """
        if not call.has_input(index):
            raise RefusedError(f"{what} is missing")
        if call.inputs[index] in self.unknown:
            raise UnknownError
        if call.inputs[index] not in self.constants:
            raise RefusedError(f"{what} {call.inputs[index]!r} is not a constant")
        return self.constants[call.inputs[index]]

    def weights(
        self, call: OnnxCall, index: int, what: str, infinity: float = math.inf
    ) -> FloatArray:
        """The constant at that input as float32; infinities become numbers as large as `infinity`.

        Raises:
            RefusedError: as `constant`, or it is not numeric, or holds NaN or an infinity.
        """
        values = self.constant(call, index, what)
        if values.dtype.kind not in "fiub":
            raise RefusedError(f"{what} {call.inputs[index]!r} has type {values.dtype}")
        with np.errstate(over="ignore"):
            single = np.asarray(values, np.float32)
        if infinity < math.inf:
            single = np.clip(single, -infinity, infinity)
        if not np.isfinite(single).all():
            kind = "NaN" if np.isnan(single).any() else "an infinity"
            raise RefusedError(f"{what} {call.inputs[index]!r} contains {kind}")
        return single

    def integers(self, call: OnnxCall, index: int, what: str) -> tuple[int, ...]:
        """The constant integers at that input, as for a shape or axes."""
        values = self.constant(call, index, what)
        if values.dtype.kind not in "iu":
            raise RefusedError(f"{what} {call.inputs[index]!r} has type {values.dtype}")
        return tuple(int(v) for v in values.reshape(-1))


Rule: TypeAlias = Callable[[OnnxCall, Scope], Lowered]
"""What becomes of a call, as far as a scope is known."""


def axis_within(axis: int, rank: int) -> int:
    """The axis counted from the front.

    Raises:
        RefusedError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise RefusedError(f"axis {axis} is outside a tensor of {rank} axes")
    return axis % rank


def call_of(node: onnx.NodeProto, name: str, opset: int) -> OnnxCall:
    """The call that an ONNX node makes.

    Raises:
        RefusedError: an attribute cannot be decoded.
    """
    try:
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    except (ValueError, TypeError) as error:
        raise RefusedError(f"an attribute cannot be read: {error}") from None
    return OnnxCall(
        name=name,
        operator=node.op_type,
        domain="" if node.domain == "ai.onnx" else node.domain,
        opset=opset,
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        attrs=attrs,
    )
