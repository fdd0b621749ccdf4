"""What is simplified means what it meant before."""

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.kernels import nests
from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.affine import Affine, as_affine, linear, sum_of
from compile_worker.ir.bounds import RANGES, Interval, extents_of, interval, truth
from compile_worker.ir.evaluate import evaluate
from compile_worker.ir.expr import (
    INDEX,
    And,
    Buffer,
    Cast,
    Const,
    Expr,
    Le,
    Lt,
    Max,
    Min,
    Or,
    Select,
    Var,
    index,
)
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.parser import parse_expr
from compile_worker.ir.printer import show
from compile_worker.ir.simplify import FALSE, TRUE, simplify
from compile_worker.ir.stmt import NOTHING, Block, For, If, Seq, Store
from compile_worker.te import nest_of

ROW, COLUMN, UNIT, FREE = Var("i"), Var("j"), Var("k"), Var("n")
EVERY = [
    dict(zip(nests.VARS, values, strict=True))
    for values in product(*map(range, nests.VARS.values()))
]


@given(nests.index_exprs())
@settings(max_examples=examples(300), deadline=None)
def test_simplified_means_the_same_and_stays_within_its_interval(expr: Expr) -> None:
    short = simplify(expr, nests.VARS)
    bounds, tighter = interval(expr, nests.VARS), interval(short, nests.VARS)
    for values in EVERY:
        value = evaluate(expr, values, {})
        assert evaluate(short, values, {}) == value
        assert value in bounds
        assert value in tighter


@given(nests.index_exprs())
@settings(max_examples=examples(200), deadline=None)
def test_a_sum_is_its_terms(expr: Expr) -> None:
    terms, constant = linear(expr)
    assert 0 not in terms.values()
    rebuilt = sum_of(terms, constant)
    for values in EVERY:
        assert evaluate(rebuilt, values, {}) == evaluate(expr, values, {})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i + j - i + 3 - 1", "j + 2"),
        ("(i * 2 + j) * 3", "i * 6 + j * 3"),
        ("1 + j * 4 - n * 2 + i * 16", "i * 16 + j * 4 - n * 2 + 1"),
        ("i - i", "0"),
        ("k * 100 + i", "i"),  # k has one value
        ("(i * 8 + j) // 8", "i"),
        ("(i * 8 + j) % 8", "j"),
        ("(i * 16 + j * 4 + 3) // 8", "i * 2 + j // 2"),
        ("(i * 16 + j * 4) % 8", "j % 2 * 4"),
        ("(i * 6 + n) // 3", "i * 2 + n // 3"),
        ("n // 2 // 3", "n // 6"),
        ("n % 6 % 3", "n % 3"),
        ("n // 4 * 4 + n % 4", "n"),
        ("n // 4 * 8 + n % 4 * 2", "n * 2"),
        ("(i + 8) // 4", "2"),
        ("(i - 4) // 4", "-1"),
        ("(j - 6) % 6", "j"),
        ("min(i, 5)", "i"),
        ("max(i, 5)", "5"),
        ("max(i * 2, i)", "i * 2"),
        ("min(n, n)", "n"),
        ("select(i < 4, j, n)", "j"),
        ("select(4 <= i, j, n)", "n"),
        ("select(n < 4, j, j)", "j"),
        ("select(n < 4 and i < 4, j, i)", "select(n < 4, j, i)"),
        ("n * n", "n * n"),
        ("n * (i - i)", "0"),
        ("(n + 1) * (2 + 2)", "n * 4 + 4"),
    ],
)
def test_rules(text: str, wanted: str) -> None:
    assert show(simplify(parse_expr(text), nests.VARS)) == wanted


@given(nests.index_exprs())
@settings(max_examples=examples(200), deadline=None)
@example(parse_expr("(i * 16 + j * 4 + 3) // 8"))
def test_simplifying_twice_is_simplifying_once_up_to_size(expr: Expr) -> None:
    once = simplify(expr, nests.VARS)
    assert len(show(simplify(once, nests.VARS))) <= len(show(once))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i32(127) + i32(2147483647)", "i32(-2147483522)"),
        ("int8(i32(200))", "i8(-56)"),
        ("a[i] + i32(0)", "a[i]"),
        ("a[i] * i32(1) - i32(0)", "a[i]"),
        ("a[i] * i32(0)", "i32(0)"),
        ("a[i] >> i32(0)", "a[i]"),
        ("int32(a[i])", "a[i]"),
        ("a[i + 0 * j]", "a[i]"),
        ("max(int32(c[i]), i32(-128))", "int32(c[i])"),
        ("min(int32(c[i]), i32(126))", "min(int32(c[i]), i32(126))"),
        ("f[i] + f32(0.0)", "f[i] + f32(0.0)"),  # -0.0 + 0.0 is not -0.0
        ("f[i] * f32(0.0)", "f[i] * f32(0.0)"),
    ],
)
def test_data_is_folded_only_where_that_is_exact(text: str, wanted: str) -> None:
    buffers = {
        "a": Buffer("a", (9,), DType.INT32),
        "c": Buffer("c", (9,), DType.INT8),
        "f": Buffer("f", (9,), DType.FLOAT32),
    }
    assert show(simplify(parse_expr(text, buffers), nests.VARS)) == wanted


@given(st.sampled_from(list(nests.EXAMPLES.values())))
@settings(max_examples=len(nests.EXAMPLES), deadline=None)
def test_simplifying_a_function_keeps_its_answer(work: Workload) -> None:
    func = nest_of(work, nests.SIM)
    arrays = nests.inputs_of(work)
    before, after = interpret(func, arrays), interpret(simplify(func), arrays)
    assert before["out"].tobytes() == after["out"].tobytes()


@given(nests.nests())
@settings(max_examples=examples(10), deadline=None)
def test_loops_blocks_and_reductions_stay(func: Func) -> None:
    short = simplify(func)
    assert extents_of(short.body) == extents_of(func.body)


def test_a_loop_with_one_trip_has_the_value_0_inside_but_stays() -> None:
    a = Buffer("a", (4,), DType.INT32)
    loop = For(UNIT, 1, Block("b", Store(a, (UNIT,), a[UNIT]), None, (UNIT,)))
    assert simplify(loop) is For(UNIT, 1, Block("b", Store(a, (index(0),), a[0]), None, (UNIT,)))


def test_decided_branches_are_taken() -> None:
    a = Buffer("a", (9,), DType.INT32)
    store = Store(a, (ROW,), a[ROW])
    assert simplify(If(Lt(ROW, index(4)), store), nests.VARS) is store
    assert simplify(If(Lt(index(9), ROW), store), nests.VARS) is NOTHING
    assert simplify(If(Lt(index(9), ROW), NOTHING, store), nests.VARS) is store
    gone = For(ROW, 4, If(Lt(index(9), ROW), store))
    assert simplify(gone) is NOTHING
    assert simplify(Seq((gone, store, store))) is Seq((store, store))


def test_as_affine() -> None:
    assert as_affine(ROW * 4 + COLUMN - (ROW - 2) * 3) == Affine({ROW: 1, COLUMN: 1}, 6)
    assert as_affine(index(7)) == Affine({}, 7)
    assert as_affine(ROW * (COLUMN - COLUMN + 2)) == Affine({ROW: 2}, 0)
    assert as_affine(ROW * COLUMN) is None
    assert as_affine(ROW // 2) is None


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (ROW * 4 - ROW * 3, (0, 3)),
        (Const(5, INDEX) - COLUMN, (0, 5)),
        (ROW * -2 + COLUMN, (-6, 5)),
        (COLUMN // 2, (0, 2)),
        (COLUMN % 4, (0, 3)),
        ((COLUMN + 8) % 16, (8, 13)),
        (Min(ROW, COLUMN), (0, 3)),
        (Max(ROW, index(2)), (2, 3)),
        (Select(Lt(ROW, index(9)), ROW, COLUMN), (0, 3)),
        (Select(Lt(ROW, COLUMN), ROW, COLUMN + 10), (0, 15)),
        (FREE, RANGES[INDEX]),
        (FREE * 2, RANGES[INDEX]),
        (FREE % 4, (0, 3)),
        (Cast(DType.INT8, ROW), (0, 3)),
        (Cast(DType.INT8, ROW + 126), RANGES[DType.INT8]),
        (Const(100, DType.INT8) + Const(100, DType.INT8), RANGES[DType.INT8]),
        (Buffer("c", (4,), DType.INT8)[ROW] >> 4, (-8, 7)),
    ],
)
def test_intervals(expr: Expr, wanted: tuple[int, int]) -> None:
    assert interval(expr, nests.VARS) == Interval(*wanted)


def test_floats_have_no_interval() -> None:
    with pytest.raises(TypeError):
        interval(Const(1.0, DType.FLOAT32), {})


def test_truth() -> None:
    assert truth(Le(ROW, index(3)), nests.VARS) is True
    assert truth(Lt(index(3), ROW), nests.VARS) is False
    assert truth(Lt(ROW, COLUMN), nests.VARS) is None
    assert truth(And(Lt(ROW, COLUMN), FALSE), nests.VARS) is False
    assert truth(Or(TRUE, Lt(ROW, COLUMN)), nests.VARS) is True


@pytest.mark.parametrize(
    "text", ["x[i] * i32(4) // i32(4)", "x[i] % i32(4)", "int64(x[i] % i32(4))"]
)
def test_data_wraps_so_its_divisions_stay(text: str) -> None:
    data = Buffer("x", (24,), DType.INT32)
    expr = parse_expr(text, {"x": data})
    assert simplify(expr, {Var("i"): 24}) is expr
