"""Products with zeros around an image are branched around, outside of the lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.golden import Golden
from kit.kernels.nests import SIM
from tilefarm.dtype import DType

from compile_worker.ir.expr import INDEX, And, Buffer, Cast, Const, Expr, Le, Lt, Select, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import For, If, Stmt, Store, sequence
from compile_worker.passes.nests import of_kind
from compile_worker.passes.skip_zeros import skip_zeros

X = Buffer("x", (8, 4), DType.UINT8)
W = Buffer("w", (4, 4), DType.INT8)
S = Buffer("s", (8, 4), DType.INT32)
H, K, C = Var("h"), Var("k"), Var("o")
ROW = H + K - 1
ABOVE, BELOW = Le(Const(1, INDEX), H + K), Lt(H + K, Const(9, INDEX))


def at(row: Expr, column: Expr) -> Expr:
    """A pixel, if there is one."""
    return Select(And(ABOVE, BELOW), X[row, column], Const(0, DType.UINT8))


def added(value: Expr, other: Expr) -> Stmt:
    product = Cast(DType.INT32, value) * Cast(DType.INT32, other)
    return Store(S, (H, C), S[H, C] + product)


def lanes(stmt: Stmt) -> Stmt:
    return For(C, 4, stmt)


def function(body: Stmt) -> Func:
    return Func("f", (X, W, S), For(H, 8, For(K, 3, body)))


def test_a_row_that_is_not_there_is_skipped(golden: Golden) -> None:
    golden(show(skip_zeros(function(lanes(added(at(ROW, C), W[K, C]))), SIM)))


def test_neighbours_share_what_they_have_in_common(golden: Golden) -> None:
    left = Select(And(ABOVE, Lt(K, Const(2, INDEX))), X[ROW, K], Const(0, DType.UINT8))
    right = Select(ABOVE, X[ROW, K], Const(0, DType.UINT8))
    body = sequence([lanes(added(left, W[K, C])), lanes(added(W[K, C], right))])
    golden(show(skip_zeros(function(body), SIM)))


def test_what_is_known_to_be_zero_goes_and_keeps_nobody_from_sharing(golden: Golden) -> None:
    nothing, inside = Store(S, (H, C), S[H, C]), Select(ABOVE, X[ROW, K], Const(0, DType.UINT8))
    body = sequence([lanes(nothing), lanes(added(inside, W[K, C])), lanes(nothing)])
    golden(show(skip_zeros(function(body), SIM)))


@pytest.mark.parametrize(
    "store",
    [
        added(Select(Lt(C, Const(2, INDEX)), X[ROW, C], Const(0, DType.UINT8)), W[K, C]),
        added(Select(ABOVE, X[ROW, C], Const(1, DType.UINT8)), W[K, C]),
        added(
            Select(Lt(X[H, K], Const(3, DType.UINT8)), X[H, C], Const(0, DType.UINT8)),
            W[K, C],
        ),
        Store(
            S,
            (H, C),
            S[K, C] + Cast(DType.INT32, at(ROW, C)) * Cast(DType.INT32, W[K, C]),
        ),
        Store(S, (H, C), S[H, C] + Cast(DType.INT32, at(ROW, C))),
    ],
    ids=["in the lanes", "not zero", "what memory decides", "another's sum", "no product"],
)
def test_other_sums_stay(store: Stmt) -> None:
    func = function(lanes(store))
    assert skip_zeros(func, SIM) is func or show(skip_zeros(func, SIM)) == show(func)


def test_floats_stay_for_zero_times_infinity_is_none() -> None:
    x, s = Buffer("x", (8,), DType.FLOAT32), Buffer("s", (8, 4), DType.FLOAT32)
    value = Select(ABOVE, x[ROW], Const(0.0, DType.FLOAT32)) * x[C]
    body = For(H, 7, For(K, 2, lanes(Store(s, (H, C), s[H, C] + value))))
    func = Func("f", (x, s), body)
    assert show(skip_zeros(func, SIM)) == show(func)


@given(
    lows=st.lists(st.integers(-2, 3), min_size=1, max_size=3),
    heights=st.lists(st.integers(0, 6), min_size=3, max_size=3),
    on_both=st.booleans(),
    seed=st.integers(0, 9),
)
def test_sums_are_those_of_before(
    lows: list[int], heights: list[int], on_both: bool, seed: int
) -> None:
    """Whatever the conditions are, and whoever of neighbours has which."""
    stmts = []
    for low, height in zip(lows, heights, strict=False):
        inside = And(Le(Const(low, INDEX), H), Lt(H + K, Const(low + height, INDEX)))
        pixel = Select(inside, X[H, C], Const(0, DType.UINT8))
        weight: Expr = W[K, C]
        if on_both:
            weight = Select(Le(K, H), weight, Const(0, DType.INT8))
        stmts.append(lanes(added(pixel, weight)))
    func = function(sequence(stmts))
    rng = np.random.default_rng(seed)
    arrays: dict[str, npt.NDArray[Any]] = {
        "x": rng.integers(0, 256, (8, 4), dtype=np.uint8),
        "w": rng.integers(-128, 128, (4, 4), dtype=np.int8),
        "s": np.zeros((8, 4), np.int32),
    }
    skipped = skip_zeros(func, SIM)
    found = interpret(skipped, arrays).get("s", arrays["s"])  # nothing is left of what is all zero
    assert (found == interpret(func, arrays)["s"]).all()
    assert "select" not in show(skipped)
    assert all(
        not list(of_kind(loop.body, If)) for loop in of_kind(skipped.body, For) if loop.var is C
    )
