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
from compile_worker.te.operators.groups import groups_of

_SUMS: Final = ("dot products", "products of matrices")
_NAME: Final = "matrices"


def declare_matrices(draft: Draft, workload: Workload, target: Target) -> None:
    """Whether sums are products of `matrices`: of weights that are packed for them."""
    in_matrices = isa_of(target.host).matrix and workload.inputs[1].shape[-1] == DEPTH
    if not in_matrices or all(pixels % SIDE for pixels in draft.domain("pixels")):
        return
    draft.tunable(_NAME, range(len(_SUMS)), _SUMS)
    both = product(draft.domain(_NAME), draft.domain("pixels"))
    rows = [(by, pixels) for by, pixels in both if not (by and pixels % SIDE)]
    why = f"a matrix has {SIDE} pixels"
    draft.require_rows("pairs_of_pixels", (_NAME, "pixels"), rows, why=why)
    _, left, _, right = workload.attr_ints("pad")
    if draft.has("padding") and (left or right):
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


def sums_of_matrices(workload: Workload, innermost: str) -> Iterator[Step]:
    """The loops of the stage `conv` around and of products of matrices."""
    pixels = 4 if groups_of(workload) > 1 else 3
    yield Step("split", ("conv_w", SIDE))
    yield Step("split", ("conv_o", SIDE))
    outer = ("ci", "kh", "kw", innermost, "co", "o_0", "w_0", "b", "w_1", "o_1", "j")
    yield Step("reorder", tuple(f"conv_{each}" for each in outer))
    for each in ("co", "o_0", "w_0"):
        yield Step("unroll", (f"conv_{each}",))
    yield annotate_step(paired(pixels), "conv", 1)
