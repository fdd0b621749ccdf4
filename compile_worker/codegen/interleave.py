"""Loads or stores that together fill memory without gaps: which they are, and all lanes at once.

vectorized i in 0:16: y[2*i] = a; y[2*i + 1] = b    ->    one store of a0 b0 a1 b1 ... a15 b15
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from compile_worker.codegen.text import FunctionText
from compile_worker.ir.affine import linear
from compile_worker.ir.expr import Load, Select, Var
from compile_worker.ir.stmt import Stmt, Store
from compile_worker.ir.visit import find

_MOST_NBYTES: Final = 256
"""Of loads that are one: LLVM takes seconds for many more, or lanes that are no power of two."""


def interleaved(stmts: Sequence[Stmt], var: Var) -> Iterator[tuple[Stmt, ...]]:
    """The statements in order, with stores that fill memory without gaps together.

    Those are stores to elements side by side that are as many as each moves with a step of `var`.
    """
    at = 0
    while at < len(stmts):
        first = stmts[at]
        step = _step(first, var) if isinstance(first, Store) else 0
        group = tuple(stmts[at : at + step]) if step > 1 else (first,)
        if len(group) != step or not _side_by_side(group):
            group = (first,)
        yield group
        at += len(group)


def loaded_together(stmts: Sequence[Stmt], var: Var, lanes: int) -> Iterator[tuple[Load, ...]]:
    """Loads of all the statements that fill memory without gaps, as stores do in `interleaved`.

    They are there in every iteration, whatever conditions say, and nobody stores in between.
    """
    stores = [each for each in stmts if isinstance(each, Store)]
    written = {store.buffer for store in stores}
    plain = [each.value for each in stores if next(find(each.value, Select), None) is None]
    loads = dict.fromkeys(load for value in plain for load in find(value, Load))
    first = next(iter(loads), None)
    step = _step(first, var) if first is not None else 0
    group = [each for each in loads if first is not None and each.buffer is first.buffer]
    if len(stores) == len(stmts) and step == len(group) > 1 and _side_by_side(group):
        buffer = group[0].buffer
        is_short = step * lanes * buffer.dtype.nbytes <= _MOST_NBYTES
        if buffer not in written and is_short and lanes.bit_count() == 1:
            yield tuple(group)


def _step(access: Load | Store, var: Var) -> int:
    terms, _ = linear(access.index[0])
    return terms.get(var, 0)


def _side_by_side(stmts: Sequence[Stmt | Load]) -> bool:
    accesses = [each for each in stmts if isinstance(each, Load | Store)]
    if len(accesses) != len(stmts) or len({each.buffer for each in accesses}) != 1:
        return False
    forms = [linear(each.index[0]) for each in accesses]
    terms, start = forms[0]
    return all(form == (terms, start + i) for i, form in enumerate(forms))


def unwoven(text: FunctionText, whole: str, count: int, lanes: int, kind: str) -> list[str]:
    """The vectors that `woven` makes one of."""
    orders = [range(first, count * lanes, count) for first in range(count)]
    return [shuffled(text, whole, "poison", order, count * lanes, kind) for order in orders]


def woven(text: FunctionText, values: Sequence[str], lanes: int, kind: str) -> str:
    """Lane 0 of every vector, then lane 1 of every vector, and so on: in steps of two."""
    if len(values) == 1:
        return values[0]
    if len(values) % 2:
        return _woven_at_once(text, values, lanes, kind)
    half = len(values) // 2
    order = [at for lane in range(lanes) for at in (lane, lanes + lane)]
    pairs = [shuffled(text, values[i], values[i + half], order, lanes, kind) for i in range(half)]
    return woven(text, pairs, 2 * lanes, kind)


def _woven_at_once(text: FunctionText, values: Sequence[str], lanes: int, kind: str) -> str:
    """As `woven`, for an odd number of vectors: side by side first, then shuffled."""
    whole, width = values[0], lanes
    for value in values[1:]:
        wide = shuffled(
            text, value, "poison", [*range(lanes), *[None] * (width - lanes)], lanes, kind
        )
        whole = shuffled(text, whole, wide, range(width + lanes), width, kind)
        width += lanes
    order = [lane + lanes * i for lane in range(lanes) for i in range(len(values))]
    return shuffled(text, whole, "poison", order, width, kind)


def shuffled(
    text: FunctionText, left: str, right: str, order: Sequence[int | None], lanes: int, kind: str
) -> str:
    """Lanes of two vectors in an order that counts through both; those of None may be anything."""
    numbers = ", ".join("i32 poison" if at is None else f"i32 {at}" for at in order)
    vector = f"<{lanes} x {kind}>"
    mask = f"<{len(order)} x i32> <{numbers}>"
    return text.op(f"shufflevector {vector} {left}, {vector} {right}, {mask}")
