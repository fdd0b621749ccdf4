"""The space of `qlinear_winograd2d`: register block, rows of a tile, what goes outside, and
whether threads share that.

    for rows of the output: what is multiplied, of those rows;
      for blocks of channels: for `high` rows and `tiles` of them:
        for each of six points: sums of `high` x `tiles` x `blocks` vectors stay in registers

Where tiles do not fill a row, rows are computed to the stack and copied from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.generated import Generated
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.space.windows import (
    ORDERS,
    SPARE,
    STACK,
    declare_rows,
    declare_shared,
    declare_tiles,
    divisors,
    first_valid,
    shared_step,
)
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.te.operators.winograd import POINTS, TILE, fills_rows

VERSION: Final = 1
"""Changes when the points of old records would mean other schedules."""

_MOST_HIGH: Final = 4
"""Rows whose sums are in registers together, at most: more leave none for tiles."""

_MOST_BLOCKS: Final = 4

_FEW: Final = 2
"""Sums of one block that wait for one another if there are not as many."""

_INT16_NBYTES: Final = 2


def winograd_space(workload: Workload, target: Target) -> Generated:
    """The space of a convolution by minimal filtering; its default is what is best as a rule."""
    isa, out = isa_of(target.host), workload.outputs[0].shape
    vectors = -(-out[-1] // isa.lanes)
    room = max(vectors, isa.registers - SPARE)
    draft = Draft()
    draft.tunable("tiles", divisors(_count(workload), room))
    draft.tunable("high", divisors(out[2], _MOST_HIGH))
    draft.tunable("blocks", divisors(out[1], _MOST_BLOCKS))
    draft.prod("sums", "tiles", "high", "blocks", coefficient=vectors)
    why = f"{isa.registers} vector registers hold sums, and {SPARE} of them operands"
    draft.at_most("registers", "sums", room, why=why)
    declare_rows(draft, workload, kernel_h=workload.inputs[1].shape[3])
    pairs = product(draft.domain("rows"), draft.domain("high"))
    whole = [(rows, high) for rows, high in pairs if rows % high == 0]
    draft.require_rows("whole", ("rows", "high"), whole, why="`high` divides the rows of a tile")
    draft.tunable("order", range(len(ORDERS)), ORDERS)
    _declare_stack(draft, workload)
    declare_tiles(draft, "row_tiles", "rows", out[2])
    declare_tiles(draft, "block_tiles", "blocks", out[1])
    declare_shared(draft, workload, target, ("row_tiles", "block_tiles"))
    space = draft.space(workload.operator, VERSION, first_valid(draft, _wished(draft)))
    return Generated(space, partial(_steps, workload))


def _count(workload: Workload) -> int:
    """Tiles of one row of the output."""
    return -(-workload.outputs[0].shape[3] // TILE)


def _declare_stack(draft: Draft, workload: Workload) -> None:
    """What is multiplied, of the rows of a tile, fits the stack; the image's rows are smaller."""
    batch, blocks, _, _, _, lanes = workload.inputs[0].shape
    row = batch * blocks * POINTS * _count(workload) * lanes * _INT16_NBYTES
    draft.prod("patches_nbytes", "input_rows", coefficient=row)
    draft.at_most("stack", "patches_nbytes", LOCAL_NBYTES, why=STACK)


def _wished(draft: Draft) -> Iterator[dict[str, int]]:
    """Points from the one that is best as a rule: few blocks, many sums of them, tall tiles.

    Weights of every block are a stream of their own, which a far cache may be slow to serve.
    """
    names = ("tiles", "high", "blocks")

    def rank(values: tuple[int, ...]) -> tuple[int, ...]:
        tiles, high, blocks = values
        return int(tiles * high < _FEW), blocks, -prod(values), -max(tiles, high)

    for shared, values, rows, order in product(
        reversed(draft.domain("shared")),
        sorted(product(*map(draft.domain, names)), key=rank),
        reversed(draft.domain("rows")),
        draft.domain("order"),
    ):
        block = dict(zip(names, values, strict=True))
        yield {**block, "rows": rows, "order": order, "shared": shared}


def _steps(workload: Workload, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    is_whole = fills_rows(workload)
    yield Step("compute_inline", ("tiles" if is_whole else "conv",))
    outer = ("out_h_0", "out_co_0") if point["order"] == 0 else ("out_co_0", "out_h_0")
    yield Step("split", ("out_co", point["blocks"]))
    yield Step("split", ("out_h", point["rows"]))
    yield Step("split", ("out_h_1", point["high"]))
    if is_whole:
        stage, row, block = "out", "out_h_1_1", "out_co_1"
        yield Step("split", ("out_t", point["tiles"]))
        inner = ("out_t_0", row, "out_t_1", block, "out_r")
        yield Step("reorder", (*outer, "out_h_1_0", *inner))
    else:
        stage, row, block = "tiles", "tiles_h", "tiles_co"
        yield Step("reorder", (*outer, "out_h_1_0", "out_h_1_1", "out_co_1", "out_w"))
        yield Step("compute_at", ("tiles", "out_h_1_0"))
        yield Step("split", ("tiles_t", point["tiles"]))
        yield Step("reorder", ("tiles_t_0", row, "tiles_t_1", block, "tiles_r"))
    yield Step("compute_at", ("sums", f"{stage}_t_0"))
    yield Step("reorder", tuple(f"sums_{each}" for each in _REDUCTION))
    for loop in ("sums_a", "sums_h", "sums_t", "sums_co", row, f"{stage}_t_1", block, f"{stage}_r"):
        yield Step("unroll", (loop,))
    yield Step("unroll", ("patches_a",))
    yield Step("compute_at", ("patches", "out_h_0"))
    yield Step("compute_at", ("wide", "out_h_0"))
    yield from shared_step(workload, point, outer[0])


_REDUCTION: Final = ("a", "ci", "kh", "q", "h", "t", "co", "b", "j", "o")
"""Loops of the sums from the outside: one point after the other, all sums of one together."""
