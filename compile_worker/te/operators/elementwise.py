"""Stages that treat every element alike: clipping, bias and shift per channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilefarm.dtype import DType

from compile_worker.ir.expr import Cast, Const, Expr, Max, Min, Var
from compile_worker.te.tensor import Tensor, compute

_SPACE: Final = {0: (), 1: ("w",), 2: ("h", "w"), 3: ("d", "h", "w")}
"""Names of the axes between channels and lanes, by their number; more are numbered."""


def data_axes(shape: tuple[int, ...]) -> dict[str, int]:
    """Axes of a blocked data tensor: [N, C, b, c], [N, C, H, W, b, c] and the like."""
    names = ("n", "co", *_space(len(shape) - 4), "b", "o")
    return dict(zip(names, shape, strict=True))


def axes_of(tensor: Tensor) -> dict[str, int]:
    """Axes of a computed tensor by the names it was computed with, otherwise of blocked data."""
    if tensor.stage is None:
        return data_axes(tensor.shape)
    stage = f"{tensor.buffer.name}_"
    return {axis.var.name.removeprefix(stage): axis.extent for axis in tensor.stage.axes}


def plain_axes(shape: tuple[int, ...]) -> dict[str, int]:
    """Axes of a tensor in plain layout: [N, C], [N, C, H, W] and the like."""
    return dict(zip(("n", "c", *_space(len(shape) - 2)), shape, strict=True))


def _space(count: int) -> tuple[str, ...]:
    return _SPACE[count] if count in _SPACE else tuple(f"d{axis}" for axis in range(count))


def channelwise(at: tuple[Var, ...]) -> tuple[Var, ...]:
    """Coordinates in a [C, b, c] tensor of one value per channel, from those of blocked data."""
    return (at[1], at[-2], at[-1])


def elementwise(
    name: str, like: Tensor, value: Callable[..., Expr], *, scope: str = "local"
) -> Tensor:
    """A stage with the axes of another; `value` gets all coordinates."""
    return compute(name, axes_of(like), lambda *at: value(*at), scope=scope)


def narrowed(name: str, wide: Tensor, low: int, high: int) -> list[Tensor]:
    """Stages lower, upper and `name`: int8(min(max(wide, low), high)); the last is a parameter."""
    lower = elementwise("lower", wide, lambda *at: Max(wide[at], Const(low, wide.dtype)))
    upper = elementwise("upper", wide, lambda *at: Min(lower[at], Const(high, wide.dtype)))
    out = elementwise(name, wide, lambda *at: Cast(DType.INT8, upper[at]), scope="dram")
    return [lower, upper, out]


def shifted_down(value: Expr, shift: int) -> Expr:
    """Value / 2**shift, halves rounded upwards."""
    return (value + (1 << (shift - 1))) >> shift if shift else value


def widened(value: Expr) -> Expr:
    """The value as int32."""
    return Cast(DType.INT32, value)
