"""Slots, turns and keys: who uses which copy, told apart by one small number."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.dtype import DType

from compile_worker.ir.evaluate import evaluate
from compile_worker.ir.expr import INDEX, Buffer, Const, Expr, FloorDiv, FloorMod, Var, index
from compile_worker.ir.stmt import For, MicroKernel, MicroOp, Ref, Seq
from compile_worker.machines.vta.passes.slots import (
    Base,
    base_of,
    combinations,
    digits_of,
    recorded_keys,
)
from compile_worker.passes.turns import slot, trips, turn

ACC = Buffer("acc", (8, 1, 16), DType.INT32, "acc")
INP = Buffer("inp", (8, 1, 16), DType.INT8, "inp")
A, B = Var("a"), Var("b")


def loops(*extents: int) -> list[For]:
    return [For(Var(f"v{at}"), extent, Seq(())) for at, extent in enumerate(extents)]


@given(st.lists(st.integers(1, 5), max_size=4), st.integers(1, 3))
def test_slots_alternate_from_one_iteration_to_the_next(extents: list[int], slots: int) -> None:
    nest = loops(*extents)
    found = slot(nest, slots)
    whole = turn(nest).expr()
    places = product(*(range(extent) for extent in extents))
    for number, place in enumerate(places):
        values = {
            loop.var: evaluate(index(at), {}, {}) for loop, at in zip(nest, place, strict=True)
        }
        assert int(evaluate(whole, values, {})) == number
        assert int(evaluate(found, values, {})) == number % slots
    assert trips(nest) == math.prod(extents)


def test_a_turn_before_the_inner_loops_have_begun() -> None:
    nest = loops(3, 4, 5)
    assert turn(nest, of=2).terms == {Var("v0"): 20, Var("v1"): 5}
    assert turn(nest, of=0).terms == {}


def kernel(dst: Expr, src: Expr | None = None) -> MicroKernel:
    source = None if src is None else Ref(INP, src)
    return MicroKernel("gemm", "mac", Ref(ACC, dst), source, None, (), (MicroOp(0, 0, 0),))


def test_a_base_is_a_sum_over_digits() -> None:
    half = FloorMod(A, Const(2, INDEX))
    assert base_of(Ref(ACC, half * 8 + B - B + 3)) == Base(3, ((half, 8),))
    assert base_of(None) == Base(0, ())


@given(st.tuples(*[st.integers(1, 6)] * 3), st.data())
def test_keys_are_counted_as_they_occur(extents: tuple[int, int, int], data: st.DataObject) -> None:
    axes = (A, B, Var("c"))
    digits: list[Expr] = []
    for _ in range(2):
        weights = data.draw(st.tuples(*[st.integers(0, 1)] * 3))
        whole: Expr = index(0)
        for axis, extent, weight in zip(axes, extents, weights, strict=True):
            whole = whole + axis * weight if weight and extent > 1 else whole
        digits.append(FloorMod(whole, Const(2, INDEX)))
    if extents[0] > 1 and data.draw(st.booleans()):
        digits.append(A)
    total: Expr = index(0)
    for at, digit in enumerate(digits):
        total = total + digit * 100**at
    seen = set()
    for place in product(*(range(extent) for extent in extents)):
        values = {v: evaluate(index(x), {}, {}) for v, x in zip(axes, place, strict=True)}
        seen.add(int(evaluate(total, values, {})))
    bounds = dict(zip(axes, extents, strict=True))
    assert recorded_keys(kernel(total), bounds) == len(seen)


def test_what_is_no_sum_cannot_be_a_base() -> None:
    with pytest.raises(TypeError, match="FloorDiv"):
        base_of(Ref(ACC, FloorDiv(A, Const(2, INDEX))))


def test_equal_digits_are_counted_once() -> None:
    half = FloorMod(A + B, Const(2, INDEX))
    together = digits_of(kernel(half * 4, half * 2), {A: 6, B: 4})
    assert combinations(together) == 2
    apart = digits_of(kernel(half * 4, B * 2), {A: 6, B: 4})
    assert combinations(apart) == 8
    assert combinations(digits_of(kernel(index(5)), {})) == 1
