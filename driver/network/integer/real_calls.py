"""A float operator as calls of CPU kernels: what runs, in the shapes in which the kernels see it.

The reference runs these calls and the partition makes steps of them, so both compute the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.workload import NUMBER_PREFIX, PARAMETERS, AttrValue

from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, IndexArray, Shape, Window
from driver.network.graph.shapes import result_shape
from driver.network.integer.real_views import flat, merged, places_of, with_last

Attrs: TypeAlias = Mapping[str, AttrValue]
Constants: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealOperand:
    """An operand of the operator, or the result of an earlier call: number `source` of all."""

    source: int
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RealCall:
    """One kernel call; operands and constants by the names of the kernel's parameters.

    `shape` is that of the result as the kernel makes it; `macs` are multiply-accumulates.
    """

    operator: str
    operands: Mapping[str, RealOperand]
    shape: Shape
    attrs: Attrs = field(default_factory=dict)
    constants: Constants = field(default_factory=dict)
    macs: int = 0


def real_calls_of(op: ir.Operator, shapes: Sequence[Shape]) -> tuple[RealCall, ...]:
    """The calls that compute an operator on float32 operands of these shapes, in order.

    The last one makes the result.
    """
    made = _Calls(shapes)
    made.lower(op)
    return tuple(made.calls)


class _Calls:
    """The calls so far; a number stands for an operand or a result."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes = list(shapes)
        self.calls: list[RealCall] = []
        self._first_result = len(shapes)

    def lower(self, op: ir.Operator) -> None:
        """Adds the calls of one operator on all operands."""
        x, wanted = self.shapes[0], result_shape(op, self.shapes)
        match op:
            case ir.Conv2d(weight=weight, bias=bias, window=window, groups=groups):
                self._conv(weight, bias, window, groups, _bounds(op))
            case ir.ConvTranspose2d():
                self._transposed(op, wanted)
            case ir.Dense():
                self._dense(op, wanted)
            case ir.MatMul():
                self._matmul(op, wanted)
            case ir.Add(subtracts=subtracts):
                self._zip("sub" if subtracts else "add", wanted, _bounds(op))
            case ir.Product(divides=divides):
                self._zip("div" if divides else "mul", wanted, {})
            case ir.Extreme(kind=kind):
                self._zip(kind, wanted, {})
            case ir.Affine():
                self._affine(op)
            case ir.Slopes(slope=slope):
                self._by_channel("slope", 0, slope, {})
            case ir.Clip():
                self._map("same", (), _bounds(op))
            case ir.Unary(function=function, parameters=parameters):
                self._map(function, parameters, {})
            case ir.Gather(index=index, fill=fill):
                self._gather(0, index, fill)
            case ir.Take(table=table):
                places = {"places": (0, x)}
                if table is None:
                    data = {**places, "x": (1, self.shapes[1])}
                    self._call("real_take", data, wanted)
                else:
                    self._call("real_take", places, wanted, None, {"x": table[None]})
            case ir.Slice(start=start, stop=stop):
                self._gather(0, places_of(x)[start:stop])
            case ir.Concat():
                rows = {f"x{i}": (i, flat(shape)) for i, shape in enumerate(self.shapes)}
                self._call("concat", rows, flat(wanted))
            case ir.MaxPool2d(window=window):
                self._pool("max", window, wanted)
            case ir.AvgPool2d(window=window, divisor=divisor):
                pooled = self._pool("sum", window, wanted)
                seen = (math.prod(wanted[:2]), math.prod(wanted[2:]))
                constants = {"b": divisor.reshape(1, -1)}
                attrs = {"function": "div", **_bounds(op)}
                self._call("real_zip", {"a": (pooled, seen)}, seen, attrs, constants)
            case ir.Reduce(kind=kind, axes=axes):
                source, (a, r, b) = self._together(axes)
                self._call("real_reduce", {"x": (source, (a, r, b))}, (a, b), {"kind": kind})
            case ir.Normalize(axes=axes, epsilon=epsilon, centered=centered):
                attrs = {"epsilon": float(epsilon), "centered": int(centered)}
                self._along("real_normalize", axes, attrs)
            case ir.Softmax(axis=axis, log=log):
                self._along("real_softmax", (axis,), {"log": 1} if log else {})
            case ir.Custom():
                self._script(op)
            case ir.Reshape() | ir.FakeQuantize() | ir.ScaleSums():
                raise TypeError(f"{type(op).__name__} has no call: it moves nothing, or has a grid")

    def _dense(self, op: ir.Dense, wanted: Shape) -> None:
        constants = {"b": op.weight.T[None], "bias": op.bias}
        rows = {"a": (0, (1, *self.shapes[0]))}
        macs = math.prod(wanted) * op.weight.shape[1]
        self._call("real_matmul", rows, (1, *wanted), _bounds(op), constants, macs)

    def _script(self, op: ir.Custom) -> None:
        data = {name: (at, seen) for at, (name, seen) in enumerate(op.operands)}
        numbers = {f"{NUMBER_PREFIX}{name}": float(value) for name, value in op.numbers}
        self._call("script", data, op.seen, {"source": op.source, **numbers}, dict(op.constants))

    def _call(
        self,
        operator: str,
        operands: Mapping[str, tuple[int, Shape]],
        shape: Shape,
        attrs: Attrs | None = None,
        constants: Constants | None = None,
        macs: int = 0,
    ) -> int:
        """Adds a call; gives the number of its result."""
        self.calls.append(
            RealCall(
                operator=operator,
                operands={
                    n: RealOperand(source=s, shape=seen) for n, (s, seen) in operands.items()
                },
                shape=shape,
                attrs=attrs or {},
                constants=constants or {},
                macs=macs,
            )
        )
        return self._first_result + len(self.calls) - 1

    def _map(self, function: str, parameters: Sequence[float], bounds: Attrs) -> int:
        named = dict(zip(PARAMETERS, map(float, parameters), strict=False))
        seen = flat(self.shapes[0])
        return self._call(
            "real_map", {"x": (0, seen)}, seen, {"function": function, **named, **bounds}
        )

    def _zip(self, function: str, wanted: Shape, bounds: Attrs) -> int:
        """Two operands; neighbouring axes that are repeated alike are one."""
        a, b, shape = merged(self.shapes[0], self.shapes[1], wanted)
        attrs = {"function": function, **bounds}
        return self._call("real_zip", {"a": (0, a), "b": (1, b)}, shape, attrs)

    def _affine(self, op: ir.Affine) -> None:
        """A product and a sum, without what changes nothing."""
        steps = {"mul": op.weight, "add": op.bias}
        idle = {"mul": np.float32(1), "add": np.float32(0)}
        kept = [name for name, values in steps.items() if (values != idle[name]).any()] or ["mul"]
        source = 0
        for name in kept:
            bounds = _bounds(op) if name == kept[-1] else {}
            source = self._by_channel(name, source, steps[name], bounds)

    def _by_channel(self, function: str, source: int, values: FloatArray, bounds: Attrs) -> int:
        n, c, *space = self.shapes[0]
        seen = (n, c, math.prod(space))
        constants = {"b": values.reshape(1, -1, 1)}
        attrs = {"function": function, **bounds}
        return self._call("real_zip", {"a": (source, seen)}, seen, attrs, constants)

    def _gather(self, source: int, index: IndexArray, fill: float = 0.0) -> int:
        rows = self.shapes[0][0]
        places = np.ascontiguousarray(index, np.int32).reshape(-1)
        data = {"x": (source, flat(self.shapes[0]))}
        attrs: Attrs | None = {"fill": fill} if fill else None
        return self._call("gather", data, (rows, places.size), attrs, {"index": places})

    def _conv(
        self, weight: FloatArray, bias: FloatArray, window: Window, groups: int, bounds: Attrs
    ) -> int:
        n, c, *image = self.shapes[0]
        pixels = window.positions(*image)
        if window == Window(kernel=(1, 1)):
            image, pixels = [1, math.prod(image)], (1, math.prod(image))
        co, ci, *kernel = weight.shape
        constants = {
            # channels last: they are the lanes of a vector
            "weight": np.moveaxis(weight.reshape(groups, co // groups, ci, *kernel), 1, -1),
            "bias": bias.reshape(groups, co // groups),
        }
        attrs = {"stride": window.stride, "pad": window.pad, "dilation": window.dilation, **bounds}
        macs = n * co * math.prod(pixels) * math.prod(weight.shape[1:])
        data = {"x": (0, (n, groups, c // groups, *image))}
        shape = (n, groups, co // groups, *pixels)
        return self._call("real_conv2d", data, shape, attrs, constants, macs)

    def _transposed(self, op: ir.ConvTranspose2d, wanted: Shape) -> None:
        """All phases as channels of one convolution, then brought to their pixels."""
        co, down, across, *rest = op.weight.shape
        phases = down * across
        weight, bias = op.weight.reshape(co * phases, *rest), np.repeat(op.bias, phases)
        result = self._conv(weight, bias, op.window, 1, _bounds(op))
        n, _, height, width = wanted
        rows, columns = height // down, width // across
        index = places_of((n, co, down, across, rows, columns)).transpose(0, 3, 1, 4, 2)
        row = flat(wanted)
        constants = {"index": np.ascontiguousarray(index).reshape(-1)}
        self._call("gather", {"x": (result, row)}, row, None, constants)

    def _matmul(self, op: ir.MatMul, wanted: Shape) -> None:
        """What is summed over are the channels of both operands, as they lie."""
        (n, c, i), (_, _, j) = self.shapes
        z, k = n * op.groups, c // op.groups
        data: dict[str, tuple[int, Shape]] = {"a": (0, (z, k, i)), "b": (1, (z, k, j))}
        macs = z * i * j * k
        product = self._call("real_matmul", data, (z, i, j), {"trans_a": 1}, None, macs)
        if op.scale != 1:
            constants = {"b": np.full((1, 1), op.scale, np.float32)}
            data = {"a": (product, flat(wanted))}
            self._call("real_zip", data, flat(wanted), {"function": "mul"}, constants)

    def _pool(self, kind: str, window: Window, wanted: Shape) -> int:
        n, c, *image = self.shapes[0]
        attrs: Attrs = {
            "kind": kind,
            "kernel": window.kernel,
            "stride": window.stride,
            "pad": window.pad,
            "dilation": window.dilation,
        }
        data = {"x": (0, (n * c, *image))}
        return self._call("real_pool2d", data, (n * c, *wanted[2:]), attrs)

    def _along(self, operator: str, axes: Sequence[int], attrs: Attrs) -> None:
        """A call along axes whose result has all elements of its operand, at their places."""
        source, seen = self._together(axes)
        result = self._call(operator, {"x": (source, seen)}, seen, attrs)
        if source:
            back = np.argsort(with_last(self.shapes[0], axes).reshape(-1)).astype(np.int32)
            row = flat(self.shapes[0])
            self._call("gather", {"x": (result, row)}, row, None, {"index": back})

    def _together(self, axes: Sequence[int]) -> tuple[int, Shape]:
        """The operand as [A, R, B] with the axes in the middle; moved there if they are apart."""
        shape = self.shapes[0]
        first, last = min(axes), max(axes) + 1
        extent = math.prod(shape[axis] for axis in axes)
        if last - first == len(axes):
            return 0, (math.prod(shape[:first]), extent, math.prod(shape[last:]))
        moved = self._gather(0, with_last(shape, axes))
        return moved, (math.prod(shape) // extent, extent, 1)


def _bounds(
    op: ir.Conv2d | ir.ConvTranspose2d | ir.Dense | ir.Add | ir.Affine | ir.AvgPool2d | ir.Clip,
) -> Attrs:
    """The bounds that there are."""
    both = {"lo": float(op.lo), "hi": float(op.hi)}
    return {name: bound for name, bound in both.items() if math.isfinite(bound)}
