"""Accesses counted in hardware elements: vectors of the batch and block, or tiles of weights.

The last two dimensions of a blocked tensor are one element. A block that works on whole elements
has loops over these lanes, which the hardware does at once, and loops over elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

from compile_worker.errors import Refused, Violation
from compile_worker.ir.affine import Affine, as_affine, combined
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.stmt import For, Store
from compile_worker.passes.nests import LANE_AXES


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """Where an access goes: the element as a linear sum, and the variables of the two lanes."""

    buffer: Buffer
    dims: tuple[Affine, ...]
    element: Affine
    lanes: tuple[Var | None, Var | None]


def elements_of(buffer: Buffer) -> int:
    """Hardware elements that a blocked buffer holds."""
    return prod(buffer.shape[:-LANE_AXES])


def place_of(stage: str, access: Load | Store, extents: Mapping[Var, int]) -> ElementPlace:
    """An element-wise access as a place in hardware elements.

    Raises:
        Refused: the index is not linear, or does not cover whole elements.
    """
    buffer, index = access.buffer, access.index
    dims = [_linear(stage, buffer, at, extents) for at in index[:-LANE_AXES]]
    sizes = buffer.shape[:-LANE_AXES]
    strides = [*accumulate(reversed(sizes[1:]), mul, initial=1)][::-1] if sizes else []
    element = combined(zip(strides, dims, strict=True))
    lanes = [
        _lane(stage, buffer, at, size, extents)
        for at, size in zip(index[-LANE_AXES:], buffer.shape[-LANE_AXES:], strict=True)
    ]
    return ElementPlace(buffer, tuple(dims), element, (lanes[0], lanes[1]))


def _linear(stage: str, buffer: Buffer, at: Expr, extents: Mapping[Var, int]) -> Affine:
    found = moving(at, extents)
    if found is None:
        raise unsupported(stage, f"an index of {buffer.name} is not a linear sum")
    return found


def moving(at: Expr, extents: Mapping[Var, int]) -> Affine | None:
    """An index as a linear sum of the variables that take more than one value."""
    found = as_affine(at)
    return None if found is None else found.without(v for v in found.terms if extents[v] == 1)


def _lane(
    stage: str, buffer: Buffer, at: Expr, size: int, extents: Mapping[Var, int]
) -> Var | None:
    """The loop variable that runs over one axis of lanes; None if the axis has one."""
    match at:
        case Var() if extents.get(at) == size > 1:
            return at
        case _ if size == 1 and moving(at, extents) == Affine({}, 0):
            return None
    raise unsupported(stage, f"{buffer.name} is not used in whole hardware elements")


def element_loops(loops: Sequence[For], places: Sequence[ElementPlace]) -> list[For]:
    """The loops of a nest that do not run over lanes and run more than once."""
    lanes = {lane for place in places for lane in place.lanes}
    return [loop for loop in loops if loop.var not in lanes and loop.extent > 1]


def unsupported(stage: str, why: str) -> Refused:
    """The refusal of a block that the accelerator has no instruction for."""
    return Refused(stage, Violation("instruction", why))
