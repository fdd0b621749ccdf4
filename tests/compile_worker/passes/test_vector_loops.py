"""Which loops become vectors or one loop, which stay as they are, and loops written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.golden import Golden
from kit.kernels.nests import EXAMPLES, SIM, conv2d, nest
from kit.kernels.schedules import Tiling
from tilefarm.dtype import DType
from tilefarm.target import Host, Target

from compile_worker.ir.expr import INDEX, And, Buffer, Cast, Const, Expr, Le, Lt, Select, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import Alloc, For, If, LoopKind, Stmt, Store, sequence
from compile_worker.lowering import lower
from compile_worker.passes.merge_loops import merge_loops
from compile_worker.passes.nests import of_kind
from compile_worker.passes.partition_loops import partition_loops
from compile_worker.passes.unroll_loops import unroll_loops
from compile_worker.passes.vectorize_loops import vectorize_loops
from compile_worker.schedule import replay
from compile_worker.schedule.cpu import cpu_trace
from compile_worker.te import nest_of

X = Buffer("x", (80,), DType.INT32)
Y = Buffer("y", (80,), DType.INT32)
LONG = Buffer("long", (1 << 20,), INDEX)
F = Buffer("f", (80,), DType.FLOAT32)
I, J, K = Var("i"), Var("j"), Var("k")  # noqa: E741
ARM = replace(SIM, host=Host(triple="armv7-unknown-linux-gnueabihf", cpu="cortex-a9"))


def loop(store: Stmt, extent: int = 40, kind: LoopKind = LoopKind.SERIAL) -> Func:
    return Func("f", (X, F, Y), For(I, extent, store, kind))


def kinds(func: Func, target: Target = SIM) -> list[LoopKind]:
    return [each.kind for each in of_kind(vectorize_loops(func, target).body, For)]


def test_a_long_loop_is_cut(golden: Golden) -> None:
    golden(show(vectorize_loops(loop(Store(Y, (I + 3,), X[I * 2] + Cast(DType.INT32, I))), SIM)))


def test_lanes_that_go_through_a_loop_in_step(golden: Golden) -> None:
    marked = For(I, 8, For(J, 4, Store(Y, (I,), Y[I] + X[I * 4 + J])), LoopKind.VECTORIZED)
    golden(show(vectorize_loops(Func("f", (X, Y), marked), SIM)))


@pytest.mark.parametrize(
    "store",
    [
        Store(Y, (I + 1,), Y[I]),
        Store(Y, (Const(0, INDEX),), X[I]),
        Store(Y, (I * I,), X[I]),
        Store(Y, (I // 2,), X[I]),
        sequence([Store(Y, (I,), X[I]), Store(Y, (I + 1,), X[I])]),
        If(Lt(I, Const(3, INDEX)), Store(Y, (I,), X[I])),
    ],
    ids=["recurrence", "reduction", "square", "halves", "overlap", "branch"],
)
@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTORIZED])
def test_what_is_not_independent_runs_one_by_one(store: Stmt, kind: LoopKind) -> None:
    assert kinds(loop(store, 40, kind)) == [LoopKind.SERIAL]


def test_stores_so_far_apart_that_no_loop_comes_from_one_to_another_are_independent() -> None:
    apart = sequence([Store(Y, (I,), X[I]), Store(Y, (I + 40,), X[I + 40])])
    assert LoopKind.VECTORIZED in kinds(loop(apart, 40))
    near = sequence([Store(Y, (I,), X[I]), Store(Y, (I + 39,), X[I + 40])])
    assert kinds(loop(near, 40)) == [LoopKind.SERIAL]


def test_short_loops_and_loops_with_a_kind_stay() -> None:
    store = Store(Y, (I,), X[I])
    assert kinds(loop(store, 3)) == [LoopKind.SERIAL]
    assert kinds(loop(store, 40, LoopKind.PARALLEL)) == [LoopKind.PARALLEL]
    assert kinds(loop(store, 5, LoopKind.VECTORIZED)) == [LoopKind.VECTORIZED]


def test_floats_round_the_same_on_every_host() -> None:
    halved = Store(F, (I,), F[I] * 0.5)
    assert kinds(loop(halved, 16)) == [LoopKind.VECTORIZED]
    assert kinds(loop(halved, 16), ARM) == [LoopKind.SERIAL]
    assert kinds(loop(Store(Y, (I,), X[I]), 16), ARM) == [LoopKind.VECTORIZED]


def test_kernels_on_the_accelerator_have_no_vectors() -> None:
    plain = nest_of(conv2d(ci=2, co=2, height=4, width=4), SIM)
    func = lower(replay(Tiling(slots=2, acc_slots=2, co=2, h=2).trace(), plain, SIM), SIM)
    assert LoopKind.VECTORIZED not in [each.kind for each in of_kind(func.body, For)]


def test_loops_that_walk_as_one_are_merged(golden: Golden) -> None:
    one = For(K, 1, Store(Y, (I * 5 + J,), X[I * 10 + J * 2 + K] + Cast(DType.INT32, I * 5 + J)))
    golden(show(merge_loops(loop(For(J, 5, one), 4), SIM)))


@pytest.mark.parametrize(
    "store",
    [
        Store(Y, (I * 6 + J,), X[I * 5 + J]),
        Store(Y, (I * 5 + J,), X[J]),
        Store(Y, (I * 5 + J,), X[(I * 6 + J) // 4]),
        Store(Y, (I * 5 + J,), Select(Lt(J, Const(3, INDEX)), X[I * 5 + J], X[I])),
    ],
    ids=["gap", "row", "division", "condition"],
)
def test_loops_that_walk_otherwise_stay(store: Stmt) -> None:
    func = loop(For(J, 5, store), 4)
    assert show(merge_loops(func, SIM)) == show(func)


def test_loops_are_cut_where_conditions_turn(golden: Golden) -> None:
    inside = And(Le(Const(2, INDEX), I), Lt(I, Const(8, INDEX)))
    value = Select(inside, X[I - 2], Const(0, DType.INT32))
    golden(show(partition_loops(loop(Store(Y, (I,), value), 9), SIM)))


@given(
    step=st.integers(-3, 3),
    offset=st.integers(-12, 12),
    bound=st.integers(-12, 12),
    relation=st.sampled_from([Lt, Le]),
)
def test_parts_do_what_the_whole_did(
    step: int, offset: int, bound: int, relation: Callable[[Expr, Expr], Expr]
) -> None:
    condition = relation(I * step + offset, Const(bound, INDEX))
    func = loop(Store(Y, (I,), Select(condition, X[I], Const(7, DType.INT32))), 10)
    func = Func("f", (X, Y), func.body)
    parted = partition_loops(func, SIM)
    arrays = {"x": np.arange(80, dtype=np.int32), "y": np.zeros(80, np.int32)}
    assert (interpret(parted, arrays)["y"] == interpret(func, arrays)["y"]).all()
    assert len(list(of_kind(parted.body, For))) <= 2
    assert "select" not in show(simplify(parted))


def test_lowering_cuts_loops_where_conditions_turn() -> None:
    value = Select(Lt(I, Const(3, INDEX)), Const(1, DType.INT32), Const(2, DType.INT32))
    assert "select" not in show(lower(loop(Store(Y, (I,), value)), SIM))


def test_a_loop_with_many_turns_stays_whole() -> None:
    turns: Expr = X[I]
    for at in range(5):
        turns = Select(Lt(I, Const(3 * at + 2, INDEX)), turns, Const(at, DType.INT32))
    assert len(list(of_kind(partition_loops(loop(Store(Y, (I,), turns)), SIM).body, For))) == 1


def test_stores_that_fill_memory_are_independent() -> None:
    pair = sequence([Store(Y, (I * 2,), X[I]), Store(Y, (I * 2 + 1,), X[I + 40])])
    assert kinds(loop(pair, 16)) == [LoopKind.VECTORIZED]
    late = sequence([Store(Y, (I * 2,), X[I]), Store(Y, (I * 2 + 2,), X[I + 40])])
    assert kinds(loop(late, 16)) == [LoopKind.SERIAL]


def test_unrolled_loops_are_written_out(golden: Golden) -> None:
    inner = For(J, 3, Store(Y, (I * 3 + J,), X[J * 2 + I]))
    golden(show(unroll_loops(loop(inner, 2, LoopKind.UNROLLED), SIM)))


def test_a_loop_with_storage_of_its_own_is_not_written_out() -> None:
    local: list[Expr] = [X[I]]
    room = Buffer("room", (4,), DType.INT32, "local")
    body = Alloc(room, sequence([Store(room, (I,), local[0]), Store(Y, (I,), room[I])]))
    func = loop(body, 4, LoopKind.UNROLLED)
    assert show(unroll_loops(func, SIM)) == show(func)


def test_marks_on_very_long_loops_cost_no_more_than_the_loop() -> None:
    store = Store(LONG, (I,), I)
    func = Func("f", (LONG,), For(I, 1 << 20, store, LoopKind.UNROLLED))
    assert show(unroll_loops(func, SIM)) == show(func)
    func = Func("f", (LONG,), For(I, 1 << 20, store, LoopKind.VECTORIZED))
    assert [loop.extent for loop in of_kind(vectorize_loops(func, SIM).body, For)] == [1 << 16, 16]


def test_every_blocked_operator_has_vectors() -> None:
    for name, work in EXAMPLES.items():
        found = [each.kind for each in of_kind(lower(nest(name), SIM).body, For)]
        assert LoopKind.VECTORIZED in found or work.operator == "dynamic_grid", name


def test_the_ends_of_a_row_have_vectors_by_their_schedule() -> None:
    name = "dynamic_grid_of_lines"
    func = replay(cpu_trace(EXAMPLES[name], SIM), nest(name), SIM)
    found = [each.kind for each in of_kind(lower(func, SIM).body, For)]
    assert LoopKind.VECTORIZED in found
