"""window_max2d: the maximum over a window in the accumulators, columns first, then rows.

Vectors become accumulators by a multiplication, which can sort them: what only one window reads is
in an array of its own, in the order of the outputs, and the maximum grows in its place.

    wide_h1_w1 [OH, OW]    the middle of every 3x3 window with stride 2: rows 1 3 5, columns 1 3 5
    wide_h1_w0 [OH, OW+1]  its rows, the columns 0 2 4 6 that neighbours share;  h0: rows 0 2 4 6
    across_h1  [OH, OW]    = max(wide_h1_w1[h, w], wide_h1_w0[h, w], wide_h1_w0[h, w+1])
    across_h0  [OH+1, OW]  the same in the rows that neighbours share
    tall       [OH, OW]    = max(across_h1[h, w], across_h0[h, w], across_h0[h+1, w])
"""

from __future__ import annotations

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Cast, Const, Expr, Max, Var
from compile_worker.te.operators.elementwise import elementwise, widened
from compile_worker.te.operators.window import padded, scaled
from compile_worker.te.operators.window_taps import AxisPiece, Taps, copied_taps, taps
from compile_worker.te.tensor import Reduction, Tensor, compute, total


def window_max2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages [padded], wide_h*_w*, across_h*_*, [zero], tall_*, [lower] and the output.

    x [N, C, H, W, b, i], identity [o, i]. The result is at least 0, so a maximum may begin with a
    zero instead of a row that no other window reads.
    """
    x, identity = inputs
    before = padded(workload, x)
    image = before[-1] if before else x
    rows, columns = window_taps(workload)
    stages = [*before]
    across = {}
    for row in rows.pieces:
        wide = {c: _wide(workload, image, identity, row, c) for c in columns.pieces}
        chain = _columns(wide, row, columns)
        stages += [*wide.values(), *chain]
        across[row] = stages[-1] if chain else wide[columns.pieces[0]]
    stages += _rows(workload, across, rows)
    name, last = workload.outputs[0].name, stages[-1]
    return [*stages, elementwise(name, last, lambda *at: Cast(DType.INT8, last[at]), scope="dram")]


def window_taps(workload: Workload) -> tuple[Taps, Taps]:
    """Taps of the rows and of the columns of a window."""
    kernel_h, kernel_w = workload.attr_ints("kernel")
    stride_h, stride_w = workload.attr_ints("stride")
    out_h, out_w = workload.outputs[0].shape[2:4]
    return taps(kernel_h, stride_h, out_h), copied_taps(kernel_w, stride_w, out_w)


def _wide(
    workload: Workload, image: Tensor, identity: Tensor, row: AxisPiece, column: AxisPiece
) -> Tensor:
    """One piece of the image as accumulators."""
    n, c, _, _, batch, lanes = workload.outputs[0].shape
    stride_h, stride_w = workload.attr_ints("stride")

    def element(n: Var, c: Var, h: Var, w: Var, b: Var, o: Var) -> Reduction:
        def product(i: Var) -> Expr:
            at_h = _from(row.first, scaled(h, stride_h))
            at_w = _from(column.first, scaled(w, stride_w))
            return widened(image[n, c, at_h, at_w, b, i]) * widened(identity[o, i])

        return total(DType.INT32, {"i": lanes}, product)

    axes = {"n": n, "co": c, "h": row.extent, "w": column.extent, "b": batch, "o": lanes}
    return compute(f"wide_h{row.first}_w{column.first}", axes, element)


def _columns(wide: dict[AxisPiece, Tensor], row: AxisPiece, columns: Taps) -> list[Tensor]:
    """Maxima along the columns of one piece of rows, one stage for every tap but the start."""
    assert columns.start is not None
    chain = [wide[columns.start]]
    for number, (piece, offset) in enumerate(columns.others):
        name = f"across_h{row.first}_{number}"
        chain.append(_larger(name, chain[-1], wide[piece], (0, offset)))
    return chain[1:]


def _rows(workload: Workload, across: dict[AxisPiece, Tensor], rows: Taps) -> list[Tensor]:
    """Maxima along the rows, and with zero."""
    if rows.start is None:
        shape = dict(zip(("n", "co", "h", "w", "b", "o"), workload.outputs[0].shape, strict=True))
        chain = [compute("zero", shape, lambda *_: Const(0, DType.INT32))]
    else:
        chain = [across[rows.start]]
    for number, (piece, offset) in enumerate(rows.others):
        chain.append(_larger(f"tall_{number}", chain[-1], across[piece], (offset, 0)))
    if rows.start is None:
        return chain
    wide = chain[-1]
    return [*chain[1:], elementwise("lower", wide, lambda *at: Max(wide[at], Const(0, wide.dtype)))]


def _larger(name: str, one: Tensor, other: Tensor, offset: tuple[int, int]) -> Tensor:
    """The larger of each element of `one` and the element of `other` that is `offset` further."""
    down, right = offset

    def value(n: Var, c: Var, h: Var, w: Var, b: Var, o: Var) -> Expr:
        there = (n, c, _from(down, h), _from(right, w), b, o)
        return Max(one[n, c, h, w, b, o], other[there])

    return elementwise(name, one, value)


def _from(first: int, at: Expr) -> Expr:
    """The position `at`, counted from `first`."""
    return at + first if first else at
