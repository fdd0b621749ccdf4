"""Whether the sums of a stage are what a dot-product instruction adds up."""

from __future__ import annotations

from tilefarm.dtype import DType

from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import Add, Cast, Load, Mul, Var
from compile_worker.ir.stmt import For, Store
from compile_worker.machines.cpu.space.script_stages import Stage

QUAD = 4
"""Products that an instruction adds to one sum."""


def quads_of(stage: Stage) -> tuple[Load, Load, For] | None:
    """Data, rows of weights, and the loop over products that lie side by side; None if none do.

    s[.., o] += int32(data[.., k]) * int32(rows[o, .., k]), of 8 bits, the rows signed, and quads of
    k. A lane is an axis of the rows that the data do not have.
    """
    match stage.block.body:
        case Store(
            buffer,
            index,
            Add(
                Load(same, place),
                Mul(Cast(DType.INT32, Load() as one), Cast(DType.INT32, Load() as other)),
            ),
        ) if (same, place) == (buffer, index) and stage.reduced:
            innermost = stage.reduced[-1]
        case _:
            return None
    if innermost.extent % QUAD:
        return None
    for data, rows in ((one, other), (other, one)):
        side_by_side = all(_step(each, innermost.var) == 1 for each in (data, rows))
        kinds = rows.dtype is DType.INT8 and data.dtype in (DType.INT8, DType.UINT8)
        if side_by_side and kinds and _lanes(rows, data):
            return data, rows, innermost
    return None


def _step(load: Load, var: Var) -> int:
    """How far its elements are apart in two iterations; 0 where it is not along the last axis."""
    forms = [as_affine(at) for at in load.index]
    if any(form is None or var in form.terms for form in forms[:-1]) or forms[-1] is None:
        return 0
    return forms[-1].terms.get(var, 0)


def _lanes(rows: Load, data: Load) -> list[Var]:
    """Loops that choose a row and not the data."""
    chosen = [var for at in rows.index if (form := as_affine(at)) for var in form.terms]
    shared = {var for at in data.index if (form := as_affine(at)) for var in form.terms}
    return [var for var in chosen if var not in shared]


def row_lanes(stage: Stage) -> list[Var]:
    """The loops that can be lanes of a dot product."""
    found = quads_of(stage)
    return _lanes(found[1], found[0]) if found is not None else []
