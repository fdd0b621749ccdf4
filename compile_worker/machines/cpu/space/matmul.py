"""The space of `qlinear_matmul`: rows and blocks of columns whose sums stay in registers.

for each product: for rows of a tile: for blocks of columns: for rows of the register block: sums

Columns are packed once for each product, and rows once for each tile of them; or columns for some
blocks at a time, and rows for each of those, where they do not fit the stack otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.generated import Generated
from compile_worker.machines.cpu.space.matrices import (
    declare_matrices,
    has_matrices,
    matrices_first,
    sums_of_matrices,
)
from compile_worker.machines.cpu.space.windows import (
    STACK,
    declare_block,
    divisors,
    first_valid,
    most_first,
)
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.te.operators.qlinear_matmul import (
    LANES,
    depth_of,
    rows_together,
    zeros_of,
)

VERSION: Final = 2
"""Changes when the points of old records would mean other schedules."""

_PLACES: Final = ("by product", "by blocks")


def matmul_space(workload: Workload, target: Target) -> Generated:
    """The space of a product; its default has the largest block of sums and the tallest tiles."""
    (_, inner, count), (*_, columns) = (spec.shape for spec in workload.inputs)
    together = rows_together(count)
    rows, blocks = -(-count // together) * together, -(-columns // LANES)
    depth = depth_of(workload)
    packed_nbytes = -(-inner // depth) * depth
    draft = Draft()
    declare_block(draft, target, LANES, [rows], blocks)
    declare_matrices(draft, target, depth)
    draft.tunable("rows", divisors(rows, rows))
    whole = [(p, r) for p, r in product(draft.domain("pixels"), draft.domain("rows")) if r % p == 0]
    draft.require_rows("whole_blocks", ("pixels", "rows"), whole, why="a tile is blocks of sums")
    draft.tunable("place", range(len(_PLACES)), _PLACES)
    draft.prod("rows_nbytes", "rows", coefficient=packed_nbytes)
    draft.at_most("stack_holds_rows", "rows_nbytes", LOCAL_NBYTES, why=STACK)
    draft.constant("columns_of_product", packed_nbytes * LANES * blocks)
    draft.prod("columns_of_blocks", "blocks", coefficient=packed_nbytes * LANES)
    draft.select("columns_nbytes", "place", ("columns_of_product", "columns_of_blocks"))
    draft.at_most("stack_holds_columns", "columns_nbytes", LOCAL_NBYTES, why=STACK)
    space = draft.space(workload.operator, VERSION, first_valid(draft, _wished(draft)))
    return Generated(space, partial(_steps, workload))


def _wished(draft: Draft) -> Iterator[dict[str, int]]:
    """Points from the one that is best as a rule."""
    for place, matrices, block, rows in product(
        draft.domain("place"),
        matrices_first(draft),
        most_first(draft, "pixels", "blocks"),
        draft.domain("rows")[::-1],
    ):
        yield {**block, **matrices, "rows": rows, "place": place}


def _steps(workload: Workload, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    rows, columns = workload.inputs[0].shape[2], workload.inputs[1].shape[2]
    a_zero, b_zero = zeros_of(workload)
    for loop, extent, multiple in (("out_j", columns, LANES), ("out_i", rows, rows_together(rows))):
        if extent % multiple:
            yield Step("pad", (loop, multiple))
    yield Step("split", ("out_j", LANES))
    yield Step("split", ("out_j_0", point["blocks"]))
    yield Step("split", ("out_i", point["rows"]))
    yield Step("split", ("out_i_1", point["pixels"]))
    yield Step("reorder", _ORDERS[point["place"]])
    yield Step("compute_at", ("dot", "out_i_1_0"))
    if has_matrices(point):
        yield from sums_of_matrices("dot", "i", 1, around=("q", "c"), over="r")
    else:
        yield Step("reorder", tuple(f"dot_{each}" for each in "qicbro"))
        yield Step("unroll", ("dot_i",))
    for loop in ("dot_c", "out_i_1_1", "out_j_0_1", "columns_r", "rows_r"):
        yield Step("unroll", (loop,))
    by_columns = ("out_z", "out_j_0_0")[point["place"]]
    by_rows = "out_i_0"
    if a_zero:
        yield Step("compute_at", ("column_terms", by_columns))
        yield Step("compute_at", ("column_sums", by_columns))
        yield Step("reorder", tuple(f"column_sums_{each}" for each in "cqro"))
        yield Step("compute_at", ("ones", "column_sums_c"))
    yield Step("compute_at", ("columns", by_columns))
    if b_zero:
        yield Step("compute_at", ("row_terms", by_rows))
        yield Step("compute_at", ("row_sums", by_rows))
        yield Step("reorder", tuple(f"row_sums_{each}" for each in "ki"))
    yield Step("compute_at", ("rows", by_rows))


_TILE: Final = ("out_i_1_0", "out_i_1_1", "out_j_0_1", "out_j_1")
_ORDERS: Final = (
    ("out_z", "out_i_0", "out_j_0_0", *_TILE),
    ("out_z", "out_j_0_0", "out_i_0", *_TILE),
)
"""Loops of the output: columns of all blocks are there for every tile, or tiles for some blocks."""
