"""Windows that slide over padded images: index arithmetic that convolution and pooling share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilefarm.workload import Workload

from compile_worker.ir.expr import And, Const, Expr, Le, Lt, Select, Var, index
from compile_worker.te.tensor import Tensor, compute


def scaled(var: Expr, factor: int) -> Expr:
    """Var * factor, without writing a factor of one."""
    return var if factor == 1 else var * factor


def shifted(var: Expr, offset: int) -> Expr:
    """Var - offset, without writing an offset of zero."""
    return var - offset if offset else var


def guarded(inside: Sequence[Expr], value: Expr, outside: float) -> Expr:
    """`value` where every condition holds, else `outside`; just `value` without conditions."""
    if not inside:
        return value
    return Select(reduce(And, inside), value, Const(outside, value.dtype))


def within(var: Expr, low: int, extent: int, high: int) -> list[Expr]:
    """Conditions for low <= var < low + extent when var is within 0 : low + extent + high."""
    below: list[Expr] = [Le(index(low), var)] if low else []
    above: list[Expr] = [Lt(var, index(low + extent))] if high else []
    return below + above


def pad_image(
    name: str, image: Tensor, pad: tuple[int, ...], outside: int = 0, *, in_planes: bool = False
) -> Tensor:
    """[N, [P], [G], C, H, W, b, c] with `pad` = (top, left, bottom, right) rows and columns around.

    The first axis behind N counts planes if the image is `in_planes`.
    """
    n, *outer, c, height, width, batch, lane = image.shape
    top, left, bottom, right = pad

    def element(*at: Var) -> Expr:
        *blocks, h, w, b, i = at
        inside = within(h, top, height, bottom) + within(w, left, width, right)
        value = image[*blocks, shifted(h, top), shifted(w, left), b, i]
        return guarded(inside, value, outside)

    named = ("plane", "g") if in_planes else ("g",)
    blocks = {"n": n, **dict(zip(named, outer, strict=False)), "ci": c}
    pixels = {"h": height + top + bottom, "w": width + left + right}
    return compute(name, {**blocks, **pixels, "b": batch, "i": lane}, element)


def padded(workload: Workload, image: Tensor, outside: int = 0) -> list[Tensor]:
    """The stage `padded` if the workload pads at all, otherwise nothing."""
    pad = workload.attr_ints("pad")
    in_planes = workload.data_planes > 1
    return [pad_image("padded", image, pad, outside, in_planes=in_planes)] if any(pad) else []


def under_tap(workload: Workload, h: Var, w: Var, kh: Expr, kw: Expr) -> tuple[Expr, Expr]:
    """Row and column of a padded image under a tap of a window."""
    down, across = workload.attr_ints("stride")
    below, beside = workload.attr_ints("dilation")
    return scaled(h, down) + scaled(kh, below), scaled(w, across) + scaled(kw, beside)
