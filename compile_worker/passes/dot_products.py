"""Sums of products of 8 bits: what dot-product instructions take.

vectorized o in 0:16:                                      lanes of acc: one dot product each,
for i in 0:16:                                     ->    data[i..] the same for every lane,
acc[o] = acc[o] + int32(data[i]) * int32(w[o*16 + i])  w a tile with a row for each lane

Data may be each lane's own as well, data[o*4 + i], as those of a depthwise layer are, or lie apart
as pixels do, data[o + i*16]. Data of int16 come in pairs, w[o*2 + i], for i in 0:2, and each lane's
own are data[o*2 + i].
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.dtype import DType

from compile_worker.ir.affine import linear
from compile_worker.ir.expr import Add, Cast, Expr, Load, Mul, Var
from compile_worker.ir.stmt import For, Stmt, Store
from compile_worker.ir.visit import mentioned
from compile_worker.isa import Isa

_QUAD = 4
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Dot:
    """Adds to `total` of each lane the products of `count` of `data` and of the lane's `row`.

    A row's products are side by side, and so are data, or `between` from one to the next. Rows of
    two lanes are `distance` apart, their data `apart`, 0 where they share it. Rows are int8, data
    int8 or uint8; or data of a single pair are int16, and rows may be.
    """

    total: Store
    data: Load
    row: Load
    over: Var
    count: int
    distance: int
    apart: int
    between: int = 1

    @property
    def is_unsigned(self) -> bool:
        return self.data.dtype is DType.UINT8

    @property
    def is_pair(self) -> bool:
        return self.data.dtype is DType.INT16


def dot_by(isa: Isa, inner: Stmt, lane: Var, lanes: int) -> Dot | None:
    """The dot product of all lanes that a loop computes, if there is an instruction for it.

    Results are joined two by two, so the vectors of all lanes are a power of two.
    """
    vectors, rest = divmod(lanes, isa.lanes)
    if not isa.dot or rest or vectors.bit_count() != 1:
        return None
    found = dot_of(inner, lane)
    return None if found is not None and found.is_pair and not isa.pair else found


def dot_of(inner: Stmt, lane: Var) -> Dot | None:
    """The dot product that a loop inside of the lanes' loop computes, if that is what it does."""
    if not isinstance(inner, For) or not isinstance(inner.body, Store) or inner.extent % _PAIR:
        return None
    match inner.body:
        case Store(
            buffer,
            index,
            Add(
                Load(same, place),
                Mul(
                    Cast(DType.INT32, Load() as one),
                    Cast(DType.INT32, Load() as other),
                ),
            ),
        ) if (same, place) == (buffer, index) and buffer.dtype is DType.INT32:
            found = _ordered(one, other, lane, inner.var)
        case _:
            return None
    if found is None or _step(index, inner.var) != 0 or _step(index, lane) != 1:
        return None
    data, row, distance, apart, between = found
    dot = Dot(inner.body, data, row, inner.var, inner.extent, distance, apart, between)
    if dot.is_pair:
        is_known = dot.count == distance == _PAIR and apart in (0, _PAIR) and between == 1
    elif between == 1:
        is_known = not dot.count % _QUAD and apart in (0, _QUAD)
    else:
        is_known = dot.count == _QUAD and apart == 1
    return dot if is_known else None


def _ordered(
    one: Load, other: Load, lane: Var, over: Var
) -> tuple[Load, Load, int, int, int] | None:
    """The data and the row of each lane, the rows' and the data's distance, and that between."""
    found = []
    for data, row in ((one, other), (other, one)):
        distance, apart = _step(row.index, lane), _step(data.index, lane)
        between = _step(data.index, over)
        if (
            (row.dtype is DType.INT8 or row.dtype is data.dtype is DType.INT16)
            and data.dtype in (DType.INT8, DType.UINT8, DType.INT16)
            and _step(row.index, over) == 1
            and apart is not None
            and apart in ((0, _PAIR, _QUAD) if between == 1 else (1,))
            and distance
            and between
        ):
            found.append((data, row, distance, apart, between))
    return min(found, key=lambda each: each[3], default=None)


def _step(index: tuple[Expr, ...], var: Var) -> int | None:
    """How far an index goes with every step of a variable; None if that is not always as far."""
    (at,) = index
    terms, _ = linear(at)
    step = terms.pop(var, 0)
    return step if all(var not in mentioned(term) for term in terms) else None
