"""Lives of buffers, and local buffers that share memory: which may, which must not, the meaning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.golden import Golden
from kit.kernels.nests import SIM
from tilefarm.dtype import DType

from compile_worker.ir.expr import INDEX, Buffer, Const, Expr, Lt, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import Alloc, For, If, Stmt, Store, sequence
from compile_worker.ir.verify import Stage, verify
from compile_worker.lowering import lower
from compile_worker.passes.liveness import line
from compile_worker.passes.nests import of_kind
from compile_worker.passes.rewrite_storage import rewrite_storage

X = Buffer("x", (8,), DType.INT32)
OUT = Buffer("out", (8,), DType.INT32)
T = Var("t")


def local(name: str, size: int = 8, dtype: DType = DType.INT32) -> Buffer:
    return Buffer(name, (size,), dtype, "local")


A, B, C = local("a"), local("b", 4), local("c", 4)


def nest(number: int, into: Buffer, value: Expr | None = None) -> Stmt:
    """for i: into[i] = x[i] + number, or another value that may speak of i0, i1, …"""
    var = Var(f"i{number}")
    given = X[var] + number if value is None else value
    return For(var, into.shape[0], Store(into, (var,), given))


def func(buffers: list[Buffer], *stmts: Stmt, around: int = 0) -> Func:
    """The statements below the allocations; both inside a loop if `around` is not 0."""
    body = sequence(stmts)
    for buffer in reversed(buffers):
        body = Alloc(buffer, body)
    return Func("f", (X, OUT), For(T, around, body) if around else body)


I = [Var(f"i{number}") for number in range(8)]  # noqa: E741

CHAIN = func(
    [A, B, C],
    nest(0, A),
    nest(1, B, A[I[1] * 2] + A[I[1] * 2 + 1]),
    nest(2, C, B[I[2]] * B[I[2]]),
    nest(3, OUT, C[I[3] // 2]),
)
"""The picture of the pass."""


def buffers_of(made: Func) -> list[tuple[str, tuple[int, ...]]]:
    return [(alloc.buffer.name, alloc.buffer.shape) for alloc in of_kind(made.body, Alloc)]


def same_meaning(before: Func) -> Func:
    """The rewritten function, which is well formed and computes the same."""
    made = rewrite_storage(before, SIM)
    verify(made, Stage.FLAT)
    inputs = {"x": np.arange(8, dtype=np.int32) * 7 - 20}
    for name, array in interpret(before, inputs).items():
        np.testing.assert_array_equal(interpret(made, inputs)[name], array)
    return made


def test_the_picture(golden: Golden) -> None:
    golden(show(CHAIN), "before")
    golden(show(same_meaning(CHAIN)), "after")


def births_and_deaths(body: Stmt) -> list[tuple[int, tuple[Buffer, ...], tuple[Buffer, ...]]]:
    """The positions at which buffers are born or die, and which."""
    found = line(body)
    lives = [(home.alloc.buffer, life) for home in found.homes if (life := found.life(home))]
    events = []
    for touch in found.touches:
        born = tuple(buffer for buffer, life in lives if life.first == touch.position)
        dead = tuple(buffer for buffer, life in lives if life.last == touch.position)
        if born or dead:
            events.append((touch.position, born, dead))
    return events


def test_where_buffers_are_born_and_die() -> None:
    assert births_and_deaths(CHAIN.body) == [
        (0, (A,), ()),
        (1, (B,), (A,)),
        (2, (C,), (B,)),
        (3, (), (C,)),
    ]


def test_in_a_loop_inside_its_home_a_buffer_lives_as_long_as_the_loop() -> None:
    looped = For(T, 2, sequence([nest(0, A), nest(1, B, A[I[1]])]))
    after = nest(2, OUT, B[I[2] // 2])
    inside = For(T, 2, Alloc(A, Alloc(B, sequence([nest(0, A), nest(1, B, A[I[1]])]))))
    assert births_and_deaths(Alloc(A, Alloc(B, sequence([looped, after])))) == [
        (0, (A, B), ()),
        (1, (), (A,)),
        (2, (), (B,)),
    ]
    assert births_and_deaths(inside) == [(0, (A,), ()), (1, (B,), (A, B))]


D, E = local("d"), local("e")

APART = {
    "read at another element": func(
        [D, E], nest(0, D), nest(1, E, D[7 - I[1]]), nest(2, OUT, E[I[2]])
    ),
    "read at two elements": func(
        [D, E], nest(0, D), nest(1, E, D[I[1]] + D[Const(0, INDEX)]), nest(2, OUT, E[I[2]])
    ),
    "written twice": func(
        [D, E],
        nest(0, D),
        For(T, 2, nest(1, E, D[I[1]] + 1)),
        nest(2, OUT, E[I[2]]),
    ),
    "needed later": func([D, E], nest(0, D), nest(1, E, D[I[1]]), nest(2, OUT, E[I[2]] + D[I[2]])),
    "of another type": func(
        [D, local("e", 8, DType.INT64)],
        nest(0, D),
        nest(1, OUT, D[I[1]]),
        nest(2, local("e", 8, DType.INT64), Const(3, DType.INT64)),
    ),
    "needed by the next iteration": func(
        [D, E],
        nest(0, D),
        For(T, 2, sequence([nest(1, OUT, D[I[1]]), nest(2, E), nest(3, OUT, E[I[3]])])),
    ),
    "read by a condition": func(
        [D, E],
        nest(0, D),
        For(T, 2, If(Lt(D[T], Const(3, DType.INT32)), nest(1, E))),
        nest(2, OUT, E[I[2]]),
    ),
}


@pytest.mark.parametrize("case", APART)
def test_buffers_that_must_stay_apart(case: str) -> None:
    assert same_meaning(APART[case]) is APART[case]


TOGETHER = {
    "dead before": (
        func([D, E], nest(0, D), nest(1, OUT, D[I[1]]), nest(2, E), nest(3, OUT, E[7 - I[3]])),
        [("d", (8,))],
    ),
    "in place": (
        func([D, E], nest(0, D), nest(1, E, D[I[1]] + D[I[1]]), nest(2, OUT, E[I[2]])),
        [("d", (8,))],
    ),
    "in an iteration": (
        func(
            [D, E],
            nest(0, D),
            nest(1, OUT, D[7 - I[1]]),
            nest(2, E),
            nest(3, OUT, E[7 - I[3]]),
            around=2,
        ),
        [("d", (8,))],
    ),
    "the larger second": (
        func([B, E], nest(0, B), nest(1, OUT, B[I[1] // 2]), nest(2, E), nest(3, OUT, E[I[3]])),
        [("b", (8,))],
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_buffers_that_share(case: str) -> None:
    before, buffers = TOGETHER[case]
    assert buffers_of(same_meaning(before)) == buffers


@st.composite
def stages(draw: st.DrawFn) -> Func:
    """Stages that each fill a local buffer from earlier ones, perhaps several times, in a loop."""
    count = draw(st.integers(2, 5))
    buffers: list[Buffer] = []
    nests: list[Stmt] = []
    for number in range(count):
        var = I[number]
        into = local(f"s{number}", draw(st.sampled_from([4, 8])))
        value: Expr = X[var] + number
        for source in draw(st.lists(st.sampled_from(buffers), max_size=2)) if buffers else ():
            size = source.shape[0]
            at = draw(st.sampled_from([var % size, (size - 1 + 0 * var) - var % size, var // 2]))
            value = (
                value * 3 + source[at if draw(st.booleans()) or into.shape != source.shape else var]
            )
        stage = nest(number, into, value)
        nests.append(For(Var(f"r{number}"), 2, stage) if draw(st.booleans()) else stage)
        buffers.append(into)
    last = I[count]
    kept = draw(st.sampled_from(buffers))
    total = kept[last % kept.shape[0]] + buffers[-1][last % buffers[-1].shape[0]]
    nests.append(nest(count, OUT, total))
    return func(buffers, *nests, around=draw(st.sampled_from([0, 2])))


@given(before=stages())
def test_sharing_never_changes_the_meaning(before: Func) -> None:
    made = same_meaning(before)
    assert len(buffers_of(made)) <= len(buffers_of(before))


def test_lowering_shares_memory() -> None:
    assert len(buffers_of(lower(CHAIN, SIM))) < len(buffers_of(CHAIN))
