"""Tensors and the expressions that define them: placeholder, compute, reduce.

A tensor is described element by element, as in Halide: `compute(name, {"n": 4}, lambda n: ...)`
says what element n is. Nothing here says in which order or where it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import Add, Buffer, Const, Expr, ExprLike, Load, Max, Var

Element = Callable[..., Expr]
"""The element at the given coordinates, which come as positional `Var`s."""

Combine = Callable[[Expr, Expr], Expr]

_INT8_MIN: Final = -128
"""What a maximum of int8 starts from, whatever type it is held in."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop variable and how many values it takes, from 0 on."""

    var: Var
    extent: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """A value combined over axes that the result does not have, from a start value on."""

    combine: Combine
    start: Expr
    over: Mapping[str, int]
    element: Element


@dataclass(frozen=True, slots=True)
class Computation:
    """How elements come about: `value` at `axes`, combined over `reduced` if it is a reduction.

    `origin` is where the first one is in the buffer; that of none is the buffer's own.
    """

    axes: tuple[Axis, ...]
    value: Expr
    reduced: tuple[Axis, ...] = ()
    reduction: Reduction | None = None
    origin: tuple[int, ...] = ()

    @property
    def at(self) -> tuple[Expr, ...]:
        """Where in the buffer the element at the axes is."""
        origin = self.origin or (0,) * len(self.axes)
        places = zip((axis.var for axis in self.axes), origin, strict=True)
        return tuple(var + first if first else var for var, first in places)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A buffer and its definition; a placeholder has none, its elements are given."""

    buffer: Buffer
    stage: Computation | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def __getitem__(self, at: tuple[ExprLike, ...] | ExprLike) -> Load:
        return self.buffer[at]


def placeholder(spec: TensorSpec) -> Tensor:
    """A tensor that the caller gives."""
    return Tensor(Buffer(spec.name, spec.shape, spec.dtype, "dram"))


def compute(
    name: str,
    axes: Mapping[str, int],
    element: Callable[..., Expr | Reduction],
    *,
    scope: str = "local",
) -> Tensor:
    """The tensor whose element at the coordinates of `axes` is `element(*coordinates)`.

    Loop variables are named `<name>_<axis>`, those of a reduction included.
    """
    bound = _axes(name, axes)
    value = element(*(axis.var for axis in bound))
    stage = (
        _reduced(name, bound, value) if isinstance(value, Reduction) else Computation(bound, value)
    )
    shape = tuple(axes.values())
    return Tensor(Buffer(name, shape, stage.value.dtype, scope), stage)


def surrounded(tensor: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """The computed tensor within a larger one, of which nothing else is written.

    Args:
        before, after: elements along each axis in front of the first and behind the last.
    """
    stage, buffer = tensor.stage, tensor.buffer
    assert stage is not None
    shape = tuple(map(sum, zip(before, buffer.shape, after, strict=True)))
    larger = Buffer(buffer.name, shape, buffer.dtype, buffer.scope)
    return Tensor(larger, replace(stage, origin=tuple(before)))


def total(
    dtype: DType, over: Mapping[str, int], element: Element, *, start: Expr | None = None
) -> Reduction:
    """`start`, or 0, plus the sum of `element` over the axes, in row-major order."""
    zero = Const(0.0 if dtype.is_float else 0, dtype)
    return Reduction(Add, zero if start is None else start, over, element)


def largest(dtype: DType, over: Mapping[str, int], element: Element) -> Reduction:
    """The maximum of uint8 values, or of int8 ones in whatever integer type they are held."""
    start = 0 if dtype is DType.UINT8 else _INT8_MIN
    return Reduction(Max, Const(start, dtype), over, element)


def _axes(stage: str, axes: Mapping[str, int]) -> tuple[Axis, ...]:
    return tuple(Axis(Var(f"{stage}_{name}"), extent) for name, extent in axes.items())


def _reduced(name: str, axes: tuple[Axis, ...], reduction: Reduction) -> Computation:
    over = _axes(name, reduction.over)
    return Computation(axes, reduction.element(*(axis.var for axis in over)), over, reduction)
