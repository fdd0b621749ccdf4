"""Float network with fake quantization to integer network in ONNX's own arithmetic.

    x = FakeQuantize(..);  y = FakeQuantize(Clip(ScaleSums(Conv2d(x))))   becomes   QLinearConv2d
    y = FakeQuantize(f(x))                                                becomes   QLinearLookup
    y = FakeQuantize(a + b)                                               becomes   QLinearBinary

Every tensor behind a `FakeQuantize` is held in integers, and so is what only moves its elements;
functions of one such tensor are put off until it is known who reads them. All else is as the graph
has it: DequantizeLinear, the float32 operator, QuantizeLinear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.errors import ModelError
from tilefarm.names import unused

from driver.network.graph import float_run
from driver.network.graph.grid import BOUNDS, Grid
from driver.network.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    FakeQuantize,
    FloatArray,
    Gather,
    Graph,
    GraphNode,
    GraphOutput,
    IndexArray,
    Layer,
    MatMul,
    MaxPool2d,
    Operator,
    Product,
    Reshape,
    ScaleSums,
    Slice,
    Slopes,
    Unary,
)
from driver.network.integer.qir import (
    QConcat,
    QGather,
    QMaxPool2d,
    QReshape,
    QSlice,
    QuantGraph,
    QuantNode,
    QuantOperator,
    QuantTensor,
    Real,
)
from driver.network.integer.qlinear import (
    DequantizeLinear,
    QLinearAvgPool2d,
    QLinearBinary,
    QLinearLookup,
    QLinearMatMul,
    QuantizeLinear,
    Requantization,
)
from driver.network.integer.qlinear_arithmetic import quantized
from driver.network.quantize.dynamic_layers import DynamicData
from driver.network.quantize.floats import has_no_kernel
from driver.network.quantize.qlinear_layers import has_byte_weights, qlinear_layer

_IN_FLOAT: Final = "in float32, as the file has it"

_Function: TypeAlias = Clip | Unary | Affine | Slopes


def in_onnx_arithmetic(graph: Graph) -> QuantGraph:
    """The integer network that computes what the graph does, in ONNX's own arithmetic.

    Raises:
        ModelError: operators and outputs that have no form; every one is listed.
    """
    lowering = _Lowering(graph)
    reasons = []
    outputs = []
    for node in graph.nodes:
        try:
            lowering.take(node)
        except NoFormError as reason:
            reasons.append(f"{node.name} ({type(node.op).__name__}): {reason}")
            lowering.skip(node)
    for output in graph.outputs:
        try:
            outputs.append(lowering.output(output))
        except NoFormError as reason:
            reasons.append(f"{output.name} (an output): {reason}")
    if reasons:
        raise ModelError(
            f"{graph.name}: " + "; ".join(reasons), "quantize the model for another target"
        )
    return lowering.finish(outputs)


class NoFormError(Exception):
    """An operator has no form in this arithmetic."""


@dataclass(frozen=True, slots=True)
class _Integers:
    """Reals behind an integer tensor: those on its grid, after functions that are put off.

    What the tensor holds is within lo..hi.
    """

    name: str
    grid: Grid
    lo: int
    hi: int
    after: tuple[_Function, ...] = ()


@dataclass(frozen=True, slots=True)
class _Dynamic:
    """The reals on a grid that each sample decides, and the float tensor that they are near to."""

    source: str


@dataclass(frozen=True, slots=True)
class _Sums:
    """Products that are not scaled yet, of integers or of a float tensor that becomes integers."""

    node: GraphNode
    operands: tuple[_Integers, ...] | _Dynamic


_Value: TypeAlias = str | _Integers | _Dynamic | _Sums
"""What a tensor of the graph is here: a float tensor by its name, or one of these."""


@dataclass(frozen=True, slots=True, eq=False)
class _Channels:
    """A tensor of the graph whose elements are those of a layer's `channels`, and of which each."""

    name: str
    channels: int
    place: IndexArray

    @classmethod
    def of(cls, graph: Graph, node: GraphNode) -> _Channels:
        """The result of a layer."""
        extents = graph.shapes[node.output][1:]
        channels = np.arange(extents[0], dtype=np.int32).reshape(-1, *(1,) * (len(extents) - 1))
        place = np.ascontiguousarray(np.broadcast_to(channels, extents))[None]
        return cls(node.output, extents[0], place)


@dataclass(frozen=True, slots=True, eq=False)
class _Behind:
    """An operator by the channels of a layer, and its result."""

    op: Affine
    at: _Channels


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The grid on which the only reader of a tensor takes it, and the bounds on the way there."""

    grid: Grid
    lo: int
    hi: int

    def requantized(self, scale: FloatArray) -> Requantization:
        """Sums in steps of `scale` on this grid."""
        return Requantization(
            scale=np.asarray(scale / np.float32(self.grid.scale), np.float32),
            dtype=DType(self.grid.held),
            zero=self.grid.zero,
            lo=self.lo,
            hi=self.hi,
        )


class _Lowering:
    """Walks a graph in order; knows what became of every tensor made so far."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._users = graph.users()
        self._outputs = {output.tensor for output in graph.outputs}
        self._nodes: list[QuantNode] = []
        self._tensors: dict[str, QuantTensor] = {}
        self._values: dict[str, _Value] = {}
        self._floats: dict[_Integers, str] = {}
        self._dynamic = DynamicData(self._nodes, self._tensors, self._fresh)
        self._idle: set[str] = set()
        for each in graph.inputs:
            self._tensors[each.name] = QuantTensor(shape=each.shape, dtype=DType.FLOAT32)
            self._values[each.name] = each.name
            if each.grid is not None and _has_bytes(each.grid):
                self._values[each.name] = self._on_grid(
                    self._fresh(f"{each.name}.integers"), each.name, each.grid
                )

    def take(self, node: GraphNode) -> None:
        """Adds what one node becomes.

        Raises:
            NoFormError: it has no form.
        """
        values = [self._values[name] for name in node.inputs]
        if node.output in self._idle:
            self._values[node.output] = values[0]
            return
        match node.op:
            case FakeQuantize(grid=None):
                value: _Value | None = _Dynamic(self._as_float(values[0]))
            case FakeQuantize(grid=grid) if grid is not None:
                value = self._on_grid(node.output, values[0], grid)
            case ScaleSums():
                value = self._scaled(node, node.op, values[0])
            case _:
                value = self._in_integers(node, values)
        if value is None:
            value = self._in_float(node, node.op, [self._as_float(each) for each in values])
        self._values[node.output] = value

    def skip(self, node: GraphNode) -> None:
        """Gives a refused node's result a place, so that the nodes behind it are still checked."""
        shape = self._graph.shapes[node.output]
        self._tensors[node.output] = QuantTensor(shape=shape, dtype=DType.FLOAT32)
        self._values[node.output] = node.output

    def output(self, given: GraphOutput) -> GraphOutput:
        """The output in float32.

        Raises:
            NoFormError: it has no form.
        """
        return replace(given, tensor=self._as_float(self._values[given.tensor]))

    def finish(self, outputs: Sequence[GraphOutput]) -> QuantGraph:
        """The network."""
        graph = self._graph
        return QuantGraph(
            name=graph.name,
            inputs=graph.inputs,
            outputs=tuple(outputs),
            nodes=tuple(self._nodes),
            tensors=self._tensors,
        )

    def _in_integers(self, node: GraphNode, values: list[_Value]) -> _Value | None:
        """What an operator on integers makes; None where it is one on floats."""
        plain = [each for each in values if isinstance(each, _Integers) and not each.after]
        match node.op, values:
            case ConvTranspose2d(), [_Dynamic()]:
                pass
            case Conv2d() | ConvTranspose2d() | Dense(), [_Integers() | _Dynamic() as value]:
                ready = value if isinstance(value, _Dynamic) else tuple(plain)
                is_scaled = isinstance(self._reader(node.output), ScaleSums)
                if ready and is_scaled and has_byte_weights(node.op):
                    return _Sums(node, ready)
            case MatMul(), [_, _] if len(plain) == 2:
                sums = _Sums(node, tuple(plain))
                if isinstance(self._reader(node.output), ScaleSums):
                    return sums
                scale = np.float32(plain[0].grid.scale) * np.float32(plain[1].grid.scale)
                return self._product(node, sums, np.array([scale * np.float32(node.op.scale)]))
            case AvgPool2d(), [_] if plain:
                return self._mean(node, node.op, plain[0])
            case Add() | Product(), [_, _] if len(plain) == 2:
                return self._binary(node, node.op, plain[0], plain[1])
            case Concat(), _ if all(isinstance(each, _Integers) for each in values):
                return self._concat(node, [each for each in values if isinstance(each, _Integers)])
            case Clip() | Unary() | Affine() | Slopes(), [_Integers() as value]:
                later = replace(value, after=(*value.after, node.op))
                wanted = self._wanted(node.output)
                return later if wanted is None else self._on_grid(node.output, later, wanted.grid)
            case Reshape() | Gather() | Slice() | MaxPool2d(), [_Integers() as value]:
                return self._moved(node, node.op, value)
            case Reshape() | Gather(), [_Dynamic(source=source)] if _keeps_all(node.op):
                return _Dynamic(self._in_float(node, node.op, [source]))
        return None

    def _scaled(self, node: GraphNode, op: ScaleSums, value: _Value) -> _Value:
        """Sums times their scale, on the grid that is wanted if there is one."""
        if not isinstance(value, _Sums):
            scale = op.scale / np.float32(op.step or 1)
            affine = Affine(weight=scale, bias=(op.bias * op.scale).astype(np.float32))
            return self._in_float(node, affine, [self._as_float(value)])
        if isinstance(value.node.op, MatMul):
            return self._product(node, value, op.scale[:1])
        assert isinstance(value.node.op, Layer)
        if isinstance(value.operands, _Dynamic):
            layer = qlinear_layer(value.node.op, op.bias, 0, self._reals_of_dynamic(node, op.scale))
            made, inputs = self._dynamic.layer(layer, value.operands.source)
            return self._emit(value.node.name, made, inputs, node.output)
        (x,) = value.operands
        addend = self._addend_behind(node)
        wanted = self._wanted(node.output)
        to = Requantization(scale=op.scale) if wanted is None else wanted.requantized(op.scale)
        if wanted is not None and addend is not None:
            to = replace(to, addend=addend / np.float32(wanted.grid.scale))
        layer = qlinear_layer(value.node.op, op.bias, x.grid.zero, to)
        return self._emit(value.node.name, layer, (x.name,), node.output, wanted)

    def _addend_behind(self, node: GraphNode) -> FloatArray | None:
        """What is added to scaled sums that are then brought to a grid: a bias in float32."""
        behind = self._affine_behind(_Channels.of(self._graph, node))
        if behind is None or (behind.op.weight != 1).any() or self._wanted(behind.at.name) is None:
            return None
        self._idle.add(behind.at.name)
        return behind.op.bias

    def _reals_of_dynamic(self, node: GraphNode, scale: FloatArray) -> Requantization:
        """What becomes of sums whose data decide their scale: float32, biases added.

        Models multiply scales that are data by those of the weights first, so those are a factor of
        the sums. A factor behind a bias is another step, and so is one behind a factor.
        """
        to, at = Requantization(scale=scale), _Channels.of(self._graph, node)
        behind = self._affine_behind(at)
        if behind is not None and not behind.op.bias.any():
            self._idle.add(behind.at.name)
            to = replace(to, scale=scale * behind.op.weight)
            behind = self._affine_behind(behind.at)
        if behind is not None and (behind.op.weight == 1).all():
            self._idle.add(behind.at.name)
            to = replace(to, addend=behind.op.bias)
        return to

    def _affine_behind(self, at: _Channels) -> _Behind | None:
        """What scaled sums are multiplied by and what is added to them next, by their channels."""
        name, place = at.name, at.place
        while isinstance(op := self._reader(name), Reshape | Gather) and _keeps_all(op):
            name = self._users[name][0].output
            place = (
                place.reshape(1, *op.shape)
                if isinstance(op, Reshape)
                else (place.reshape(1, -1)[:, op.index])
            )
        if not isinstance(op, Affine) or op.lo > -np.inf or op.hi < np.inf:
            return None
        found = Affine(
            weight=np.ones(at.channels, np.float32), bias=np.zeros(at.channels, np.float32)
        )
        for ours, theirs in ((found.weight, op.weight), (found.bias, op.bias)):
            values = np.broadcast_to(theirs.reshape(-1, *(1,) * (place.ndim - 2)), place.shape[1:])
            ours[place[0]] = values
            if (ours[place[0]] != values).any():
                return None
        return _Behind(found, replace(at, name=self._users[name][0].output, place=place))

    def _product(self, node: GraphNode, sums: _Sums, scale: FloatArray) -> _Value:
        """A product of two activations; `node` makes the result."""
        assert isinstance(sums.node.op, MatMul)
        assert isinstance(sums.operands, tuple)
        a, b = sums.operands
        wanted = self._wanted(node.output)
        scale = np.asarray(scale, np.float32)
        op = QLinearMatMul(
            groups=sums.node.op.groups,
            a_zero=a.grid.zero,
            b_zero=b.grid.zero,
            to=Requantization(scale=scale) if wanted is None else wanted.requantized(scale),
        )
        return self._emit(sums.node.name, op, (a.name, b.name), node.output, wanted)

    def _mean(self, node: GraphNode, op: AvgPool2d, x: _Integers) -> _Value | None:
        """As QLinearGlobalAveragePool of ONNX Runtime defines it, for every window."""
        wanted = self._wanted(node.output, op.lo, op.hi)
        if wanted is None:
            return None
        to = wanted.requantized(np.ones(1, np.float32))
        scale = np.float32(x.grid.scale) / (np.float32(wanted.grid.scale) * op.divisor)
        to = replace(to, scale=np.asarray(scale, np.float32))
        mean = QLinearAvgPool2d(window=op.window, x_zero=x.grid.zero, to=to)
        return self._emit(node.name, mean, (x.name,), node.output, wanted)

    def _binary(
        self, node: GraphNode, op: Add | Product, a: _Integers, b: _Integers
    ) -> _Value | None:
        wanted = self._wanted(node.output)
        if wanted is None:
            return None
        made = QLinearBinary(op=op, a=a.grid, b=b.grid, to=wanted.grid, lo=wanted.lo, hi=wanted.hi)
        return self._emit(node.name, made, (a.name, b.name), node.output, wanted)

    def _concat(self, node: GraphNode, parts: list[_Integers]) -> _Value | None:
        """Parts on one grid, which is the result's; by tables where they have others."""
        wanted = self._wanted(node.output)
        grids = {part.grid for part in parts if not part.after}
        if wanted is None and (len(grids) != 1 or any(part.after for part in parts)):
            return None
        grid = grids.pop() if wanted is None else wanted.grid
        same = [self._on_grid(self._fresh(f"{part.name}.on"), part, grid) for part in parts]
        ends = _Wanted(grid, min(each.lo for each in same), max(each.hi for each in same))
        names = tuple(each.name for each in same)
        return self._emit(node.name, QConcat(), names, node.output, ends)

    def _moved(
        self, node: GraphNode, op: Reshape | Gather | Slice | MaxPool2d, x: _Integers
    ) -> _Value | None:
        """The same elements at other places."""
        if x.after and (wanted := self._wanted(node.output)) is not None:
            x = self._on_grid(self._fresh(f"{x.name}.on"), x, wanted.grid)
        if x.after:
            return None
        ends = _Wanted(x.grid, x.lo, x.hi)
        match op:
            case Reshape(shape=shape):
                moved: QuantOperator = QReshape(shape=shape)
            case Slice(start=start, stop=stop):
                moved = QSlice(start=start, stop=stop)
            case MaxPool2d(window=window):
                moved = QMaxPool2d(window=window)
            case Gather(index=index, fill=fill):
                zero = x.grid.zero
                moved = QGather(index=index, fill=zero)
                if index.size and index.min() < 0:
                    if fill:
                        return None
                    ends = _Wanted(x.grid, min(x.lo, zero), max(x.hi, zero))
        return self._emit(node.name, moved, (x.name,), node.output, ends)

    def _on_grid(self, name: str, value: _Value, grid: Grid) -> _Integers:
        """The integers nearest to reals, in a tensor `name` unless there are such already."""
        if not _has_bytes(grid):
            raise NoFormError(f"rounds to {grid.dtype}; only integers of 8 bits have kernels")
        if not isinstance(value, _Integers):
            source = self._as_float(value)
            made = self._emit(name, QuantizeLinear(grid=grid), (source,), name, _all_of(grid))
        else:
            table = self._table(value, grid)
            reached = np.arange(value.lo, value.hi + 1)
            entries = table[..., reached - int(np.iinfo(value.grid.held).min)]
            if value.grid == grid and (entries == reached).all():
                return replace(value, after=())
            ends = _Wanted(grid, int(entries.min()), int(entries.max()))
            made = self._emit(name, QLinearLookup(table=table), (value.name,), name, ends)
        assert isinstance(made, _Integers)
        return made

    def _table(self, value: _Integers, grid: Grid | None) -> NDArray[Any]:
        """What the functions make of every integer, on a grid or in float32: [256] or [C, 256]."""
        ends = np.iinfo(value.grid.held)
        reals = value.grid.reals(np.arange(ends.min, ends.max + 1))
        channels = [
            op.weight if isinstance(op, Affine) else op.slope
            for op in value.after
            if isinstance(op, Affine | Slopes)
        ]
        x = np.broadcast_to(reals, (1, len(channels[0]) if channels else 1, len(reals)))
        with np.errstate(all="ignore"):
            for op in value.after:
                x = float_run.apply(op, x)
        rows = x[0] if grid is None else quantized(x[0], grid)
        return np.ascontiguousarray(rows[0] if (rows == rows[:1]).all() else rows)

    def _as_float(self, value: _Value) -> str:
        """The float32 tensor of a value; made where it is first needed."""
        if isinstance(value, str):
            return value
        if not isinstance(value, _Integers):
            raise NoFormError(
                "only convolutions and dense layers with constant weights of 8 bits read what"
                " DynamicQuantizeLinear makes"
            )
        if value not in self._floats:
            op: QuantOperator = DequantizeLinear(grid=value.grid)
            if value.after:
                op = QLinearLookup(table=self._table(value, None))
            name = self._fresh(f"{value.name}.float")
            self._emit(name, op, (value.name,), name)
            self._floats[value] = name
        return self._floats[value]

    def _in_float(self, node: GraphNode, op: Operator, names: Sequence[str]) -> str:
        """The operator on floats."""
        made: QuantOperator = Real(op=op, why=_IN_FLOAT)
        match op:
            case Reshape(shape=shape):
                made = QReshape(shape=shape)
            case Slice(start=start, stop=stop):
                made = QSlice(start=start, stop=stop)
            case _ if reason := has_no_kernel(op):
                raise NoFormError(reason)
        self._emit(node.name, made, tuple(names), node.output)
        return node.output

    def _emit(
        self,
        name: str,
        op: QuantOperator,
        inputs: tuple[str, ...],
        output: str,
        wanted: _Wanted | None = None,
    ) -> _Value:
        """Adds a node that makes integers as they are wanted, or floats."""
        self._nodes.append(QuantNode(name=name, op=op, inputs=inputs, output=output))
        shape = self._graph.shapes.get(output) or self._tensors[inputs[0]].shape
        if wanted is None:
            self._tensors[output] = QuantTensor(shape=shape, dtype=DType.FLOAT32)
            return output
        grid = wanted.grid
        self._tensors[output] = QuantTensor(
            shape=shape, dtype=DType(grid.held), scale=grid.scale, zero=grid.zero
        )
        return _Integers(output, grid, wanted.lo, wanted.hi)

    def _reader(self, name: str) -> Operator | None:
        """The only operator that reads a tensor."""
        users = self._users[name]
        return users[0].op if len(users) == 1 and name not in self._outputs else None

    def _wanted(self, name: str, lo: float = -np.inf, hi: float = np.inf) -> _Wanted | None:
        """The grid to which a tensor is brought, if that is all that becomes of it.

        Clips on the way bound it, and moves may come before or after: rounding is monotone.
        """
        while (op := self._reader(name)) is not None:
            name = self._users[name][0].output
            match op:
                case FakeQuantize(grid=grid) if grid is not None and _has_bytes(grid):
                    ends = quantized(np.array([lo, hi], np.float32), grid)
                    return _Wanted(grid, int(ends[0]), int(ends[1]))
                case _ if name in self._idle:
                    pass
                case Clip():
                    lo, hi = (min(max(bound, op.lo), op.hi) for bound in (lo, hi))
                case Reshape() | MaxPool2d():
                    pass
                case Gather(index=index, fill=0.0) if lo <= 0 <= hi or index.min() >= 0:
                    pass
                case _:
                    return None
        return None

    def _fresh(self, name: str) -> str:
        return unused(name, self._tensors, self._graph.shapes)


def _has_bytes(grid: Grid) -> bool:
    return grid.held in ("int8", "uint8")


def _keeps_all(op: Reshape | Gather) -> bool:
    """Whether a move leaves every element, so that the range is the same."""
    if isinstance(op, Reshape):
        return True
    return np.array_equal(np.sort(op.index, axis=None), np.arange(op.index.size))


def _all_of(grid: Grid) -> _Wanted:
    return _Wanted(grid, *BOUNDS[grid.dtype])
