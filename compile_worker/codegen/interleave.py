"""Stores that together fill memory without gaps: which they are, and their lanes as one vector.

vectorized i in 0:16: y[2*i] = a; y[2*i + 1] = b    ->    one store of a0 b0 a1 b1 ... a15 b15
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compile_worker.codegen.text import FunctionText
from compile_worker.ir.affine import linear
from compile_worker.ir.expr import Var
from compile_worker.ir.stmt import Stmt, Store


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


def _step(store: Store, var: Var) -> int:
    terms, _ = linear(store.index[0])
    return terms.get(var, 0)


def _side_by_side(stmts: Sequence[Stmt]) -> bool:
    stores = [each for each in stmts if isinstance(each, Store)]
    if len(stores) != len(stmts) or len({store.buffer for store in stores}) != 1:
        return False
    forms = [linear(store.index[0]) for store in stores]
    terms, start = forms[0]
    return all(form == (terms, start + i) for i, form in enumerate(forms))


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
