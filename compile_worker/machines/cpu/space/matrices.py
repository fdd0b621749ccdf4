"""Sums of two pixels by two channels, as products of matrices: a choice where there is one.

    for 8 channels of a window: for pairs of channels: for pairs of pixels: 2 x 2 sums

Weights of a pair are loaded once a step, for all pixels. Sums of a pair of pixels lie together, so
that those of an instruction are a vector; what follows them reads them from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.ir.annotations import paired
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.space.windows import SKIPPED
from compile_worker.passes.matrix_products import DEPTH, SIDE
from compile_worker.schedule.marks import annotate_step

_SUMS: Final = ("dot products", "products of matrices")
_NAME: Final = "matrices"


def declare_matrices(draft: Draft, target: Target, depth: int) -> None:
    """Whether sums are products of `matrices`, of operands that are packed by their `depth`."""
    in_matrices = isa_of(target.host).matrix and depth == DEPTH
    if not in_matrices or all(pixels % SIDE for pixels in draft.domain("pixels")):
        return
    draft.tunable(_NAME, range(len(_SUMS)), _SUMS)
    both = product(draft.domain(_NAME), draft.domain("pixels"))
    rows = [(by, pixels) for by, pixels in both if not (by and pixels % SIDE)]
    why = f"a matrix has {SIDE} pixels"
    draft.require_rows("pairs_of_pixels", (_NAME, "pixels"), rows, why=why)


def declare_whole_matrices(draft: Draft, workload: Workload) -> None:
    """Where taps that see no pixel are left out, both pixels of a matrix see the same columns."""
    _, left, _, right = workload.attr_ints("pad")
    if not (draft.has(_NAME) and draft.has("padding") and (left or right)):
        return
    both = product(draft.domain(_NAME), draft.domain("padding"))
    rows = [(by, padding) for by, padding in both if not (by and padding == SKIPPED)]
    why = "of the pixels of a matrix no column is left out"
    draft.require_rows("whole_matrices", (_NAME, "padding"), rows, why=why)


def matrices_first(draft: Draft) -> list[dict[str, int]]:
    """The values of the choice, from the one that is best as a rule; one without it if none is."""
    if not draft.has(_NAME):
        return [{}]
    return [{_NAME: by} for by in reversed(draft.domain(_NAME))]


def has_matrices(point: Point) -> bool:
    """Whether a point's sums are products of matrices."""
    return bool(point.get(_NAME, 0))


def sums_of_matrices(
    stage: str, pixels: str, axis: int, *, around: tuple[str, ...], over: str
) -> Iterator[Step]:
    """Make products of matrices of the sums of a stage, whose channels are blocks `b` of `o`.

    Args:
        pixels: the axis of pixels, or of rows, which is this `axis` of the sums.
        around: axes of the reduction, and that of blocks of channels, outermost first.
        over: the axis of the products of a sum that lie side by side.
    """
    yield Step("split", (f"{stage}_{pixels}", SIDE))
    yield Step("split", (f"{stage}_o", SIDE))
    pairs, pair = ("o_0", f"{pixels}_0"), (f"{pixels}_1", "o_1")
    loops = (*around, *pairs, "b", *pair, over)
    yield Step("reorder", tuple(f"{stage}_{each}" for each in loops))
    for each in pairs:
        yield Step("unroll", (f"{stage}_{each}",))
    yield annotate_step(paired(axis), stage, 1)


def sums_of_convolution(axis: int, innermost: str) -> Iterator[Step]:
    """As `sums_of_matrices`, of the stage `conv` with an axis `innermost` inside the window."""
    around = ("ci", "kh", "kw", innermost, "co")
    yield from sums_of_matrices("conv", "w", axis, around=around, over="j")
    yield Step("unroll", ("conv_co",))
