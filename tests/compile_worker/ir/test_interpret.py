"""The interpreter does what a program says, and refuses what no program may do."""

import pickle
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.kernels import nests
from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir import interpret as interpreter
from compile_worker.ir.expr import Buffer, Cast, Const, Expr, Lt, Max, Select, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import InterpretError, interpret
from compile_worker.ir.parser import parse
from compile_worker.ir.stmt import Block, For, Stmt, Store
from compile_worker.te import nest_of

Array = npt.NDArray[Any]


def run(text: str, **arrays: Array) -> dict[str, Array]:
    return interpret(parse("func f\n" + text), arrays)


def iterated(func: Func, arrays: dict[str, Array]) -> dict[str, Array]:
    """What the interpreter answers when it does every iteration by itself."""
    with mock.patch.object(interpreter, "nest_at", return_value=None):
        return interpret(func, arrays)


@given(st.one_of(nests.denses(), nests.convolutions().filter(lambda w: w.outputs[0].nbytes < 65)))
@settings(max_examples=4, deadline=None)
def test_nests_at_once_are_the_same_as_iterated(work: Workload) -> None:
    func, arrays = nest_of(work, nests.SIM), nests.inputs_of(work)
    assert interpret(func, arrays)["out"].tobytes() == iterated(func, arrays)["out"].tobytes()


VARS = [Var("i"), Var("j"), Var("r")]


@st.composite
def awkward_nests(draw: st.DrawFn) -> Func:
    """Loops around one store whose iterations may meet in one element, in any way."""
    out = Buffer("out", (24,), DType.INT32)
    data = Buffer("data", (24,), DType.INT32)
    factors = st.integers(0, 3)

    def place() -> Expr:
        i, j, r = VARS
        return (i * draw(factors) + j * draw(factors) + r * draw(st.integers(0, 1))) % 24

    at = (place(),)
    terms = [data[place()], Cast(DType.INT32, VARS[0] - VARS[1]), out[at], out[place()]]
    first, second = draw(st.sampled_from(terms)), draw(st.sampled_from(terms))
    kind = draw(st.sampled_from(["add", "max", "sub", "guarded", "first"]))
    value: Expr = {
        "add": first + second,
        "max": Max(first, second),
        "sub": first - second,
        "guarded": Select(Lt(data[place()], Const(3, DType.INT32)), first, second),
        "first": first,
    }[kind]
    reductions = tuple(draw(st.lists(st.sampled_from(VARS), unique=True, max_size=2)))
    init = Store(out, at, Const(draw(st.integers(-9, 9)), DType.INT32))
    body: Stmt = Block("b", Store(out, at, value), draw(st.sampled_from([None, init])), reductions)
    for var in draw(st.permutations(VARS)):
        body = For(var, draw(st.integers(1, 4)), body)
    return Func("awkward", (data, out), body)


@given(awkward_nests(), st.integers(0, 99))
@settings(max_examples=examples(250), deadline=None)
def test_awkward_nests_at_once_are_the_same_as_iterated(func: Func, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.integers(-9, 9, 24).astype(np.int32) for name in ("data", "out")}
    assert interpret(func, arrays)["out"].tolist() == iterated(func, arrays)["out"].tolist()


def test_integers_wrap_and_shift_arithmetically() -> None:
    found = run(
        """
param a: int32[3] dram
param out: int32[3] dram
param narrow: int8[3] dram
for i in 3
  out[i] = a[i] * i32(3) >> i32(1)
for j in 3
  narrow[j] = int8(a[j] + i32(2147483647))
""",
        a=np.array([-5, 1 << 30, (1 << 31) - 1], np.int32),
    )
    product = np.array([-15, 3 << 30, 3 * ((1 << 31) - 1)]).astype(np.int32)
    assert found["out"].tolist() == (product >> 1).tolist()
    assert found["narrow"].tolist() == [-6, -1, -2]


def test_rounding_is_to_even_and_conversion_truncates() -> None:
    found = run(
        """
param x: float32[6] dram
param rounded: int8[6] dram
param cut: int8[6] dram
for i in 6
  rounded[i] = int8(round_even[float32](x[i]))
for j in 6
  cut[j] = int8(x[j])
""",
        x=np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.7], np.float32),
    )
    assert found["rounded"].tolist() == [0, 2, 2, 0, -2, -3]
    assert found["cut"].tolist() == [0, 1, 2, 0, -1, -2]


def test_float_sums_are_done_in_order() -> None:
    text = """
param x: float32[64] dram
param out: float32[1] dram
for i in 64
  block out over i
    init
      out[0] = f32(0.0)
    out[0] = out[0] + x[i]
"""
    x = np.array([1 << 24, *[1] * 63], np.float32)  # each 1 alone is lost, together they are not
    assert run(text, x=x)["out"][0] == 1 << 24
    assert np.sum(x) > 1 << 24


def test_only_the_chosen_side_is_evaluated() -> None:
    found = run(
        """
param a: int32[4] dram
param out: int32[6] dram
for i in 6
  out[i] = select(1 <= i and i < 5, a[i - 1], i32(7))
""",
        a=np.arange(4, dtype=np.int32),
    )
    assert found["out"].tolist() == [7, 0, 1, 2, 3, 7]


def test_branches_and_loops_that_depend_on_one_another() -> None:
    found = run(
        """
param out: int32[8] dram
out[0] = i32(1)
for i in 7
  out[i + 1] = out[i] + out[i]
if 1 < 2
  out[0] = i32(5)
else
  out[9] = i32(5)
""",
    )
    assert found["out"].tolist() == [5, 2, 4, 8, 16, 32, 64, 128]


def test_inputs_stay_and_only_written_parameters_come_back() -> None:
    a = np.arange(4, dtype=np.int32)
    found = run("param a: int32[4] dram\nfor i in 4\n  a[i] = a[i] + i32(1)", a=a)
    assert found["a"].tolist() == [1, 2, 3, 4]
    assert a.tolist() == [0, 1, 2, 3]
    assert found.keys() == {"a"}


def test_memory_starts_as_garbage_each_time() -> None:
    text = """
param out: int32[2] dram
for i in 2
  alloc t: int32[1] local
  out[i] = t[0]
  t[0] = i32(5)
"""
    found = run(text)["out"]
    assert found[0] == found[1] == 0x5A5A5A5A


def test_a_flat_parameter_takes_any_shape() -> None:
    text = "param a: int32[4] dram\nparam out: int32[4] dram\nfor i in 4\n  out[i] = a[i]"
    assert run(text, a=np.arange(4, dtype=np.int32).reshape(2, 2))["out"].tolist() == [0, 1, 2, 3]


HEAD = "param a: int32[4] dram\nparam out: int32[4] dram\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for i in 5\n  out[i] = a[0]", r"out\[i\]: index 0 is 4, extent 4"),
        ("for i in 4\n  out[i] = a[i - 1]", r"a\[i - 1\]: index 0 is -1, extent 4"),
        ("for i in 5\n  if i < 5\n    out[i] = a[0]", "index 0 is 4"),
        ("out[0] = a[0, 0]", "rank 1, not 2"),
        ("out[i] = a[0]", "loop variable i has no value"),
        ("for i in 4\n  out[i] = a[0 // i]", "division by zero in 0 // i"),
        ("for i in 4\n  out[i] = a[i] >> i32(32)", r"shift outside 0..31 in a\[i\] >> i32\(32\)"),
        ("out[0] = sin[int32](a[0])", "unknown intrinsic sin"),
        ("out[0] = a[0]\npop(load, compute)", "token that nobody has sent"),
        ("out[0] = a[0]\npush(load, compute)", "1 tokens from load to compute are left"),
    ],
)
def test_what_has_no_meaning(body: str, message: str) -> None:
    with pytest.raises(InterpretError, match=message):
        run(HEAD + body, a=np.zeros(4, np.int32))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "parameter a is missing"),
        ({"a": np.zeros(5, np.int32)}, r"a is int32\[4\], not int32\[5\]"),
        ({"a": np.zeros(4, np.int8)}, r"a is int32\[4\], not int8\[4\]"),
    ],
)
def test_arrays_must_fit(arrays: dict[str, Array], message: str) -> None:
    with pytest.raises(InterpretError, match=message):
        run(HEAD + "out[0] = a[0]", **arrays)


def test_errors_pickle() -> None:
    error = InterpretError("here", "try that")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
