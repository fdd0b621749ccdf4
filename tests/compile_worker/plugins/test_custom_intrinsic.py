"""Intrinsics of users' files: found by their expression, the same in value, in the end LLVM's."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import numpy as np
import pytest
from kit.kernels.scripts import SATURATED_SUM, script_of
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.dtype import DType
from tilefarm.errors import SettingsError
from tilefarm.target import Target

from compile_worker.compiler import compile_kernel, lowered
from compile_worker.emit import kernel_text
from compile_worker.ir.expr import Add, Buffer, Const, Expr, Lt, Max, Min, Mul, Select, Sub
from compile_worker.ir.interpret import interpret
from compile_worker.ir.intrinsics import intrinsic_of_user
from compile_worker.ir.matching import matched
from compile_worker.ir.parser import parse
from compile_worker.ir.printer import show
from compile_worker.plugins.passes import default_trace, plugins_of, set_passes_of_users
from compile_worker.plugins.plugin import plugin_of
from driver.targets import usable_target

HEAD = """
from tilefarm.dtype import DType
from compile_worker.ir.expr import Cast, Const, Max, Min
from compile_worker.plugins.custom_intrinsic import custom_intrinsic

def number(value):
    return Const(value, DType.INT32)

"""
SUM = """
@custom_intrinsic("llvm.sadd.sat", of=DType.INT8)
def saturated(a, b):
    total = Cast(DType.INT32, a) + Cast(DType.INT32, b)
    return Cast(DType.INT8, Min(Max(total, number(-128)), number(127)))
"""
ADDED = script_of(SATURATED_SUM, (100,), x=(100,), y=(100,))


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    set_passes_of_users(())


@pytest.fixture
def target() -> Target:
    return usable_target("cpu:x86-64-v3")


def job_with(text: str, target: Target) -> CompileJob:
    """What a driver that has loaded such a file sends."""
    set_passes_of_users(plugin_of("mine.py", text.encode()).passes)
    trace = default_trace()
    job = CompileJob(workload=ADDED, trace=trace, target=target, plugins=plugins_of(trace))
    set_passes_of_users(())
    sent: CompileJob = pickle.loads(pickle.dumps(job))
    return sent


def test_it_is_called_where_its_expression_is_and_means_the_same(target: Target) -> None:
    seen = {}
    job = job_with(HEAD + SUM, target)
    func = lowered(job, watch=lambda name, func: seen.update({name: func}))
    name = f"saturated_{job.plugins[0].digest.short}[int8]"
    assert name not in show(seen["rewrite_storage"])
    assert name in show(func)
    assert parse(show(func)) is func
    rng = np.random.default_rng(0)
    inputs = {each: (rng.standard_normal(100) * 2).astype(np.float32) for each in ("x", "y")}
    found, wanted = interpret(func, inputs), interpret(seen["rewrite_storage"], inputs)
    np.testing.assert_array_equal(found["out"], wanted["out"])
    assert (np.abs(wanted["out"]) == 127).any(), "some are saturated"


def test_llvm_has_it_of_all_lanes_at_once(target: Target) -> None:
    job = job_with(HEAD + SUM, target)
    text = kernel_text(lowered(job), "kernel", target)
    assert re.search(r"call <\d+ x i8> @llvm\.sadd\.sat\.v\d+i8\(", text)
    made = compile_kernel(job)
    assert isinstance(made, Artifact)
    assert made.job == job.digest


def test_another_version_of_the_file_is_another_intrinsic(target: Target) -> None:
    one, other = job_with(HEAD + SUM, target), job_with(HEAD + SUM + "# changed", target)
    assert one.digest != other.digest
    names = [f"saturated_{each.plugins[0].digest.short}" for each in (one, other)]
    assert names[0] != names[1]
    assert all(intrinsic_of_user(name) is not None for name in names)


X, Y = (Buffer(name, (8,), DType.INT32)[0] for name in "xy")
F, G = (Buffer(name, (8,), DType.FLOAT32)[0] for name in "fg")
A, B = (Buffer(name, (), DType.INT32)[()] for name in "ab")
C, D = (Buffer(name, (), DType.FLOAT32)[()] for name in "cd")
ONE = Const(1, DType.INT32)


@pytest.mark.parametrize(
    ("pattern", "expr", "found"),
    [
        (Add(A, ONE), Add(X, ONE), {A: X}),
        (Add(A, ONE), Add(ONE, X), {A: X}),
        (Add(A, ONE), Add(X, Y), None),
        (Add(A, ONE), Sub(X, ONE), None),
        (Mul(A, A), Mul(X, X), {A: X}),
        (Mul(A, A), Mul(X, Y), None),
        (Max(A, Sub(B, A)), Max(Sub(Y, X), X), {A: X, B: Y}),
        (Min(C, Max(D, C)), Min(F, Max(G, F)), {C: F, D: G}),
        (Min(C, Max(D, C)), Min(Max(G, F), F), None),
        (Add(A, ONE), Add(Mul(X, Y), ONE), {A: Mul(X, Y)}),
        (Select(Lt(A, ONE), A, B), Select(Lt(X, ONE), X, Y), {A: X, B: Y}),
    ],
)
def test_an_expression_is_of_a_form_or_not(
    pattern: Expr, expr: Expr, found: dict[Expr, Expr] | None
) -> None:
    assert matched(pattern, expr, (A, B, C, D), {}) == found


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("llvm.sadd.sat", "llvm.nonsense", "is refused: .*unknown intrinsic"),
        ("llvm.sadd.sat", "llvm.abs", "is refused: .*invalid intrinsic signature"),
        ("llvm.sadd.sat", "system", "names system, which is nothing of LLVM's"),
        ("llvm.sadd.sat", "llvm.x86.sse2.padds.b", "names llvm.x86"),
        ("of=DType.INT8", "of=DType.INT64", "has the type int64, which no data have"),
        ("of=DType.INT8", "of=DType.INT32", "gives int8"),
        ("of=DType.INT8", 'of=DType.INT8, literals=("i1 %v0) ;",)', "names .*, which is nothing"),
        ("Cast(DType.INT32, b)", "number(1)", "its expression has no b"),
        ("return Cast", "return 1 / 0 #", "fails: ZeroDivisionError: .* in line 13"),
        ("return Cast", "return 1 #", "gives int"),
        ("return Cast", "while True: pass #", "fails: OverdueError: not done after"),
    ],
)
def test_one_that_cannot_be_is_one_line_when_its_file_is_loaded(
    old: str, new: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compile_worker.plugins.custom_intrinsic.SECONDS", 0.2)
    with pytest.raises(SettingsError, match=f"mine.py: the intrinsic saturated {why}") as raised:
        plugin_of("mine.py", (HEAD + SUM.replace(old, new)).encode())
    assert "\n" not in raised.value.what
    assert raised.value.hint


def test_what_llvm_makes_a_call_of_a_library_of_is_refused() -> None:
    sine = '\n@custom_intrinsic("llvm.sin", of=DType.FLOAT32)\ndef sine(x):\n    return x * x\n'
    with pytest.raises(SettingsError, match="the intrinsic sine needs sinf, which kernels have"):
        plugin_of("mine.py", (HEAD + sine).encode())
