"""What follows a sum of products: add the bias, multiply, shift down, clip, narrow to int8.

Each part is there only if the workload has the tensor for it. Where weights or data are planes, so
are the sums [N, P, Co, ...] and their biases, until they are joined:

    raised = biased[high] * 256;  joined = raised + biased[low]

Where both are, sums are [N, P, P, Co, ...], and those of data are joined before the biases. Results
of 16 bits become planes again; the low one is what is left of them when they are narrowed:

    high = (upper + 128) >> 8
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import PLANE, Workload

from compile_worker.ir.expr import Cast, Const, Eq, Expr, Load, Select, Var, index
from compile_worker.te.operators.elementwise import (
    axes_of,
    elementwise,
    narrowed,
    widened,
)
from compile_worker.te.tensor import Reduction, Tensor, compute, total

IN_PLANES: Final = frozenset({"conv2d", "dense"})
"""Operators whose tensors may be planes."""

PLANE_BITS: Final = PLANE.bit_length() - 1

_LEAST, _MOST = -128 * PLANE, 127 * PLANE + 127
"""Of what an upper and a lower plane of int8 hold."""


def check_planes(workload: Workload) -> None:
    """Checks what a workload says of its planes.

    Raises:
        ValueError: another number of planes than two, a tensor that has not as many, a factor, or
            an operator that has none.
    """
    said = {
        "planes": (workload.planes, workload.inputs[1:2]),
        "data_planes": (workload.data_planes, workload.inputs[:1]),
        "out_planes": (workload.out_planes, workload.outputs[:1]),
    }
    for name, (planes, specs) in said.items():
        if planes == 1:
            continue
        if workload.operator not in IN_PLANES:
            raise ValueError(f"the tensors of {workload.operator} are never in planes")
        if planes != 2:
            raise ValueError(f"{name} is {planes}: 16 bits are 2 planes of int8")
        for spec in specs:
            if spec.shape[1] != planes:
                raise ValueError(f"{name} is {planes}, and {spec} has {spec.shape[1]}")
    if workload.is_in_planes and workload.tensor("factor") is not None:
        raise ValueError("sums in planes have no factor")


def plane_axes(workload: Workload) -> dict[str, int]:
    """The axes of sums that count planes: of data, then of weights, as far as they are planes."""
    if workload.planes > 1 and workload.data_planes > 1:
        return {"data_plane": 2, "plane": 2}
    return {"plane": 2} if workload.is_in_planes else {}


def requantized(workload: Workload, wide: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """From [raised_data, joined_data], [biased], [raised, joined], ... [shifted] to the output.

    Between them are [multiplied] and [shifted_first], and behind them those of `narrowed`, or of
    results in planes.

    They follow int32 sums; `inputs` are all of the workload's. A bias is int8 tiles [Co, T, o, i]
    that the rows of `unit` are multiplied by, [T, o, i] for all blocks, or [Co, P, T, o, i] for
    sums in planes; a factor is int32 [Co, b, o], and so is a shift, or it is [Co] for all of a
    block, or [1] for all. Co may be two axes, [G, Co].
    """
    named = {each.buffer.name: each for each in inputs}
    stages: list[Tensor] = []
    if "data_plane" in axes_of(wide):
        stages += _joined(wide, "data_plane", "_data")
        wide = stages[-1]
    if "bias" in named:
        stages.append(_biased(wide, named["unit"], named["bias"]))
    if workload.is_in_planes:
        stages += _joined(stages[-1] if stages else wide, "plane")
    if "factor" in named:
        stages.append(_multiplied(stages[-1] if stages else wide, named["factor"]))
    if workload.first_shift:
        stages.append(_shifted_first(stages[-1] if stages else wide, workload.first_shift))
    if "shift" in named:
        stages.append(_shifted(stages[-1] if stages else wide, named["shift"]))
    low, high = workload.attr_int("lo"), workload.attr_int("hi")
    if workload.out_planes > 1 and not _LEAST <= low <= high <= _MOST:
        raise ValueError(f"lo {low}, hi {high}: two planes hold {_LEAST} to {_MOST}")
    out = workload.outputs[0].name
    ends = narrowed(out, stages[-1] if stages else wide, low, high)
    return [*stages, *(_in_planes(ends) if workload.out_planes > 1 else ends)]


def _in_planes(narrow: Sequence[Tensor]) -> list[Tensor]:
    """What `narrowed` makes, with planes [N, P, Co, ...] of results of 16 bits at its end.

    The upper one starts from zero, as a copy: both are there to be stored.
    """
    lower, upper, out = narrow
    zero = elementwise("zero", upper, lambda *_: Const(0, upper.dtype))
    copied = elementwise("copied", upper, lambda *at: zero[at] + upper[at])
    rounded = elementwise("rounded", upper, lambda *at: copied[at] + PLANE // 2)
    high = elementwise("high", upper, lambda *at: rounded[at] >> PLANE_BITS)

    def element(n: Var, p: Var, *at: Var) -> Expr:
        return Cast(DType.INT8, Select(Eq(p, index(0)), high[n, *at], upper[n, *at]))

    n, *others = axes_of(upper).items()
    axes = dict((n, ("plane", 2), *others))
    planes = compute(out.buffer.name, axes, element, scope="dram")
    return [lower, upper, zero, copied, rounded, high, planes]


def _biased(wide: Tensor, unit: Tensor, bias: Tensor) -> Tensor:
    """Sums that go on, from `wide`, with constant rows times tiles of weights."""
    *blocks, tiles, _, lanes = bias.shape
    in_planes = "plane" in axes_of(wide)

    def element(*at: Var) -> Reduction:
        def product(t: Var, i: Var) -> Expr:
            block = (*at[2 : 1 + len(blocks)], at[1]) if in_planes else _blocks(at, len(blocks))
            tile = bias[*block, t, at[-1], i]
            return widened(unit[at[-2], i]) * widened(tile)

        return total(DType.INT32, {"t": tiles, "i": lanes}, product, start=wide[at])

    return compute("biased", axes_of(wide), element)


def _joined(planes: Tensor, axis: str, ending: str = "") -> list[Tensor]:
    """Stages raised and joined: sums [N, ...] of those of two planes [N, P, ...], P the `axis`."""
    axes = {name: extent for name, extent in axes_of(planes).items() if name != axis}
    raised = compute(f"raised{ending}", axes, lambda n, *at: planes[n, 0, *at] * PLANE)
    joined = compute(f"joined{ending}", axes, lambda n, *at: raised[n, *at] + planes[n, 1, *at])
    return [raised, joined]


def _by_lane(at: tuple[Var, ...], values: Tensor) -> Load:
    """What [Co, b, o] or [G, Co, b, o] holds for an output."""
    return values[*_blocks(at, len(values.shape) - 2), *at[-2:]]


def _by_block(at: tuple[Var, ...], values: Tensor) -> Load:
    """What [1], [Co] or [G, Co] holds for an output."""
    return values[0] if values.shape == (1,) else values[_blocks(at, len(values.shape))]


def _blocks(at: tuple[Var, ...], axes: int) -> tuple[Var, ...]:
    return at[1 : 1 + axes]


def _multiplied(wide: Tensor, factor: Tensor) -> Tensor:
    """A stage that multiplies every channel by its own number."""
    return elementwise("multiplied", wide, lambda *at: wide[at] * _by_lane(at, factor))


def _shifted_first(wide: Tensor, bits: int) -> Tensor:
    """A stage that shifts all channels by a part of what they are shifted by in all."""
    return elementwise("shifted_first", wide, lambda *at: wide[at] >> bits)


def _shifted(wide: Tensor, shift: Tensor) -> Tensor:
    """A stage that shifts every channel by its own number, or all of a block by the block's."""
    blocks = sum(axis in ("g", "co") for axis in axes_of(wide))
    amount = _by_lane if len(shift.shape) == blocks + 2 else _by_block
    return elementwise("shifted", wide, lambda *at: wide[at] >> amount(at, shift))
