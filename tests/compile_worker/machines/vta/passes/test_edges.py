"""How far tiles reach over an image, against counting rows one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compile_worker.errors import Refused
from compile_worker.ir.affine import Affine
from compile_worker.ir.evaluate import evaluate
from compile_worker.ir.expr import And, Eq, Expr, Le, Lt, Var, index
from compile_worker.ir.stmt import For, Seq
from compile_worker.machines.vta.passes.edges import edges_of

TILE, ROW, OTHER = Var("tile"), Var("row"), Var("other")


def loop(var: Var, extent: int) -> For:
    return For(var, extent, Seq(()))


@given(
    tiles=st.integers(1, 4),
    step=st.integers(1, 3),
    rows=st.integers(1, 6),
    size=st.integers(1, 9),
    pad=st.integers(0, 3),
    every=st.integers(1, 3),
)
def test_pads_are_the_rows_outside(
    tiles: int, step: int, rows: int, size: int, pad: int, every: int
) -> None:
    """Tile t takes rows t*step - pad + r*every of an image with `size` rows."""
    extents = {TILE: tiles, ROW: rows}
    at = Affine({v: c for v, c in ((TILE, step), (ROW, every)) if extents[v] > 1}, -pad)
    place = TILE * step + ROW * every
    inside = And(Le(index(pad), place), Lt(place, index(size + pad)))
    loops = [loop(ROW, rows)] if rows > 1 else []
    missing_before, missing_after = [], []
    for tile in range(tiles):
        taken = [tile * step + row * every - pad for row in range(rows)]
        missing_before.append(min(rows, sum(row < 0 for row in taken)))
        missing_after.append(min(rows, sum(row >= size for row in taken)))
    try:
        edges = edges_of("test", inside, [at], loops, extents)
    except Refused:  # wherever the tile is, nothing of it exists
        edges = None
    if edges is None:
        assert missing_before[0] + missing_after[0] >= rows
        return
    if not edges:
        assert not any(missing_before + missing_after)
        return
    (edge,) = edges
    *_, fewest = edge.worst(extents)
    if fewest < 1:  # a copy of nothing, which is refused
        whole = [b + a for b, a in zip(missing_before, missing_after, strict=True)]
        assert max(whole) >= rows
        return
    for tile in range(tiles):
        values = {TILE: evaluate(index(tile), {}, {})}
        assert int(evaluate(edge.before(), values, {})) == missing_before[tile]
        assert int(evaluate(edge.after(), values, {})) == missing_after[tile]


def refusal(inside: Expr, at: Affine, *loops: For) -> str:
    extents = {TILE: 4, ROW: 4, OTHER: 4}
    with pytest.raises(Refused) as refused:
        edges_of("lower_dma", inside, [at], loops, extents)
    assert refused.value.constraint == "instruction"
    return refused.value.why


def test_conditions_that_no_padding_expresses() -> None:
    at = Affine({ROW: 1})
    assert "not a comparison" in refusal(Eq(ROW, index(3)), at, loop(ROW, 4))
    assert "not about the index" in refusal(Le(index(1), OTHER), at, loop(ROW, 4))


def test_a_padded_axis_that_runs_backwards() -> None:
    at = Affine({ROW: -2}, 9)
    assert "backwards" in refusal(Le(index(1), index(10) - ROW * 2), at, loop(ROW, 4))
