"""Expressions as machine code, one by one and in the lanes of vectors, against evaluation."""

from __future__ import annotations

import platform
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.kernels.nests import VARS, index_exprs
from kit.kernels.runtime_double import call, runtime_double
from tilefarm.dtype import DType
from tilefarm.target import TARGETS

from compile_worker.emit import kernel_object
from compile_worker.ir.evaluate import evaluate
from compile_worker.ir.expr import (
    INDEX,
    Add,
    Buffer,
    Call,
    Cast,
    Const,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Load,
    Max,
    Min,
    Mul,
    Select,
    Shr,
    Sub,
    Var,
)
from compile_worker.ir.expr import Lt as Less
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import For, LoopKind, Stmt, Store, sequence

SIM = TARGETS["sim"]

KINDS = st.sampled_from([LoopKind.SERIAL, LoopKind.VECTORIZED])

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code")


def run(func: Func, folder: Path, *arrays: np.ndarray[Any, Any]) -> None:
    with NamedTemporaryFile(dir=folder, suffix=".so", delete=False) as file:
        file.write(kernel_object(func, "entry", SIM))  # a loaded file may not change
    kernel = Path(file.name)
    assert call(runtime_double(folder), kernel, "entry", arrays) == 0


def table_of(expr: Expr, kind: LoopKind) -> Func:
    """Writes the value of an index expression for every value of its variables.

    The loop over the second one, which has more than one value, is of the given kind.
    """
    at = list(VARS)
    position: Expr = Const(0, INDEX)
    for var in at:
        position = Add(Mul(position, Const(VARS[var], INDEX)), var)
    out = Buffer("out", (int(np.prod(list(VARS.values()))),), INDEX)
    body: Stmt = Store(out, (position,), expr)
    for var in reversed(at):
        body = For(var, VARS[var], body, kind if var is at[1] else LoopKind.SERIAL)
    return Func("table", (out,), body)


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(expr=index_exprs(), kind=KINDS)
def test_index_arithmetic(expr: Expr, kind: LoopKind, tmp_path: Path) -> None:
    func = table_of(expr, kind)
    found = np.zeros(func.params[0].shape, np.int64)
    run(func, tmp_path, found)
    grids = np.meshgrid(*(np.arange(n) for n in VARS.values()), indexing="ij")
    wanted = evaluate(expr, dict(zip(VARS, grids, strict=True)), {})
    np.testing.assert_array_equal(found, np.broadcast_to(wanted, grids[0].shape).reshape(-1))


COUNT = 64
LEFT = Buffer("left", (COUNT,), DType.INT32)
RIGHT = Buffer("right", (COUNT,), DType.INT32)
X, Y = Buffer("x", (COUNT,), DType.FLOAT32), Buffer("y", (COUNT,), DType.FLOAT32)
I = Var("i")  # noqa: E741


def over(value: Expr, *inputs: Buffer) -> Func:
    """Computes the value for every element: first one by one, then all at once."""
    out = Buffer("out", (2 * COUNT,), value.dtype)
    serial = For(I, COUNT, Store(out, (I,), value))
    at_once = Store(out, (I + COUNT,), value)
    return Func(
        "over",
        (*inputs, out),
        sequence([serial, For(I, COUNT, at_once, LoopKind.VECTORIZED)]),
    )


left, right = Load(LEFT, (I,)), Load(RIGHT, (I,))
x, y = Load(X, (I,)), Load(Y, (I,))
few = Max(Min(right, Const(31, DType.INT32)), Const(0, DType.INT32))
some = Select(Less(right, Const(1, DType.INT32)), Const(7, DType.INT32), right)

INTEGERS = {
    "add": left + right,
    "sub": left - right,
    "mul": left * right,
    "shr": Shr(left, few),
    "floor_div": FloorDiv(left, some),
    "floor_mod": FloorMod(left, some),
    "narrow": Cast(DType.INT8, left),
    "widen": Cast(DType.INT64, Cast(DType.INT8, left)),
    "unsigned": Cast(DType.INT32, Cast(DType.UINT8, left)),
    "to_float": Cast(DType.FLOAT32, left),
    "guarded": Select(Less(left, right), Load(LEFT, (Const(3, INDEX),)), right),
    "truth": Less(left, right),
    "excluded": Select(Less(I, Const(9, INDEX)), Load(LEFT, (I * 7,)), right),
    "backwards": Load(LEFT, (COUNT - 1 - I,)),
    "in pieces": Load(LEFT, ((I * 5) // 7 + I % 3,)),
    "anywhere": Load(LEFT, (Cast(INDEX, right) % COUNT,)),
    "nested": Select(
        Less(left, right),
        Select(Less(I, Const(40, INDEX)), Load(LEFT, (Cast(INDEX, I) + 24,)), left),
        Select(Less(left, Const(0, DType.INT32)), Load(RIGHT, (Const(1, INDEX),)), left),
    ),
    "within bounds": Select(
        Less(Cast(INDEX, left) % 100, Const(COUNT, INDEX)),
        Load(RIGHT, (Cast(INDEX, left) % 100,)),
        right,
    ),
}
FLOATS = {
    "add": x + y,
    "sub": Sub(x, y),
    "mul": x * y,
    "div": Div(x, y),
    "min": Min(x, y),
    "max": Max(x, y),
    "even": Call("round_even", (x,), DType.FLOAT32),
    "truncate": Cast(DType.INT32, x),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap(name: str, tmp_path: Path) -> None:
    func = over(INTEGERS[name], LEFT, RIGHT)
    rng = np.random.default_rng(1)
    low, high = -(2**31), 2**31 - 1
    arrays: dict[str, np.ndarray[Any, Any]] = {
        n: rng.integers(low, high, COUNT).astype(np.int32) for n in ("left", "right")
    }
    check(func, arrays, tmp_path)


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    halves = np.arange(COUNT, dtype=np.float32) / 2 - 16
    noise = rng.normal(0, 9, COUNT).astype(np.float32)
    arrays: dict[str, np.ndarray[Any, Any]] = {"x": halves, "y": noise}
    check(over(FLOATS[name], X, Y), arrays, tmp_path)


@given(st.floats(-(2.0**21), 2.0**21, width=32))
@settings(max_examples=examples(200))
def test_rounding_trick_rounds_half_to_even(value: float) -> None:
    """The two float32 additions that the code generator emits."""
    lifter = np.float32(12582912.0)
    assert (np.float32(value) + lifter) - lifter == np.rint(np.float32(value))


def check(func: Func, arrays: dict[str, np.ndarray[Any, Any]], folder: Path) -> None:
    out = func.params[-1]
    found = np.zeros(out.shape, out.dtype.value)
    run(func, folder, *arrays.values(), found)
    np.testing.assert_array_equal(found, interpret(func, arrays)["out"])


@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTORIZED])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("operation", [Add, Sub, Mul, Min, Max, FloorDiv, FloorMod, Shr, Less, Le])
def test_bytes_have_the_sign_of_their_type(
    operation: type[Expr], dtype: DType, kind: LoopKind, tmp_path: Path
) -> None:
    """200 is above 100 where bytes are unsigned, and -56 below it where they are not."""
    small = operation is Shr
    left = np.array([200, 100, 255, 0, 128, 127, 1, 129, *range(40, 48)], np.uint8)
    right = np.array([100, 200, 1, 255, 127, 128, 7, 3, *range(240, 248)], np.uint8)
    right = right % 8 if small else right
    a, b = Buffer("a", (16,), dtype), Buffer("b", (16,), dtype)
    at = Var("i")
    found = operation(a[at], b[at])
    if operation in (Less, Le):
        found = Select(found, Const(1, dtype), Const(0, dtype))
    out = Buffer("out", (16,), dtype)
    func = Func("f", (a, b, out), For(at, 16, Store(out, (at,), found), kind))
    arrays = [left.view(dtype.value), right.view(dtype.value), np.zeros(16, dtype.value)]
    wanted = interpret(func, dict(zip("ab", arrays, strict=False)))["out"]
    run(func, tmp_path, *arrays)
    assert (arrays[-1] == wanted).all()
