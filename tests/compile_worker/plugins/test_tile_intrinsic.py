"""Intrinsics of users that are loops: found in operators, exact, and refused in one line."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from kit.kernels.scripts import DOT
from kit.objects.hosts import runs_here
from numpy.typing import NDArray
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.dtype import DType
from tilefarm.errors import ScheduleError, SettingsError
from tilefarm.space import violations
from tilefarm.target import Target
from tilefarm.trace import Step, Trace
from tilefarm.workload import TensorSpec, Workload

from compile_worker.compiler import compile_kernel, lowered
from compile_worker.emit import kernel_text
from compile_worker.generated import Generated
from compile_worker.ir.interpret import interpret
from compile_worker.ir.parser import parse
from compile_worker.ir.printer import show
from compile_worker.machines.cpu.space.script_rules import set_rules_of_users
from compile_worker.plugins.passes import (
    default_trace,
    lowered_as_here,
    plugins_of,
    set_passes_of_users,
)
from compile_worker.plugins.plugin import plugin_of
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of
from driver.benchmarks.script_sources import GEMM
from driver.targets import usable_target
from tuner.sampler import Sampler

HEAD: Final = """
from compile_worker.plugins.custom_intrinsic import custom_intrinsic
from compile_worker.plugins.custom_pass import custom_pass
"""
PAIRS: Final = '''
@custom_intrinsic(
    """
    %products = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %a, <16 x i16> %b)
    %sums = add <8 x i32> %out, %products
    ret <8 x i32> %sums
    """,
    needs="avx2",
)
def pairs(a: "int16[8, 2]", b: "int16[8, 2]", out: "int32[8]"):
    for i in range(8):
        for k in range(2):
            out[i] += int32(a[i, k]) * int32(b[i, k])
'''
OUTER: Final = '''
@custom_intrinsic("""
    %left = shufflevector <2 x float> %a, <2 x float> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0,
        i32 1, i32 1, i32 1, i32 1>
    %right = shufflevector <4 x float> %b, <4 x float> poison, <8 x i32> <i32 0, i32 1, i32 2,
        i32 3, i32 0, i32 1, i32 2, i32 3>
    %products = fmul <8 x float> %left, %right
    %sums = fadd <8 x float> %out, %products
    ret <8 x float> %sums
    """)
def outer(a: "float32[2]", b: "float32[4]", out: "float32[2, 4]"):
    for i in range(2):
        for j in range(4):
            out[i, j] += a[i] * b[j]
'''
TURNED: Final = '''
@custom_intrinsic("""
    %x = zext <8 x i8> %a to <8 x i32>
    %y = sext <8 x i8> %b to <8 x i32>
    %each = mul <8 x i32> %x, %y
    %low = shufflevector <8 x i32> %each, <8 x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
    %high = shufflevector <8 x i32> %each, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
    %both = add <4 x i32> %low, %high
    %sums = add <4 x i32> %out, %both
    ret <4 x i32> %sums
    """)
def turned(a: "uint8[2, 4]", b: "int8[2, 4]", out: "int32[4]"):
    for i in range(4):
        for k in range(2):
            out[i] += int32(b[k, i]) * int32(a[k, i])
'''
WINDOWS: Final = """
def windows(a, b, out):
    sums = buffer(int32, out.shape[0], out.shape[1], out.shape[2])
    for o in range(out.shape[0]):
        for h in range(out.shape[1]):
            for w in range(out.shape[2]):
                sums[o, h, w] = 0
                for i in range(b.shape[2]):
                    for c in range(a.shape[2]):
                        sums[o, h, w] += int32(a[h, w + i, c]) * int32(b[o, c, i])
    for o in range(out.shape[0]):
        for h in range(out.shape[1]):
            for w in range(out.shape[2]):
                out[o, h, w] = max(sums[o, h, w] >> 3, -100)
"""
I16, I32, F32, U8, I8 = DType.INT16, DType.INT32, DType.FLOAT32, DType.UINT8, DType.INT8


def workload(text: str, kinds: tuple[DType, DType, DType], *shapes: tuple[int, ...]) -> Workload:
    a, b, out = map(TensorSpec, ("a", "b", "out"), shapes, kinds)
    return Workload("script", (a, b), (out,), (("source", text),))


@dataclass(frozen=True)
class Case:
    """An operator, the intrinsic that does its sums, and in how many ways."""

    intrinsic: str
    name: str
    work: Workload
    ways: int


SMALL: Final = workload(DOT, (I16, I16, I32), (6, 12), (24, 12), (6, 24))
CASES: Final = {
    "pairs": Case(PAIRS, "pairs", workload(DOT, (I16, I16, I32), (24, 12), (16, 12), (24, 16)), 2),
    "pairs, one way": Case(PAIRS, "pairs", SMALL, 1),
    "outer products": Case(
        OUTER, "outer", workload(GEMM, (F32, F32, F32), (6, 5), (5, 12), (6, 12)), 1
    ),
    "turned": Case(TURNED, "turned", workload(DOT, (U8, I8, I32), (8, 6), (12, 6), (8, 12)), 2),
    "turned, the other operand first": Case(
        TURNED, "turned", workload(DOT, (I8, U8, I32), (8, 6), (12, 6), (8, 12)), 2
    ),
    "windows": Case(
        PAIRS, "pairs", workload(WINDOWS, (I16, I16, I32), (3, 10, 4), (8, 4, 3), (8, 3, 8)), 2
    ),
}


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forget()


@pytest.fixture
def target() -> Target:
    return usable_target("cpu:x86-64-v3")


def forget() -> None:
    set_passes_of_users(())
    set_rules_of_users(())


def load(text: str) -> None:
    """As a driver loads a file."""
    plugin = plugin_of("mine.py", f"{HEAD}{text}".encode())
    set_passes_of_users(plugin.passes)
    set_rules_of_users(plugin.rules)


def arrays_of(work: Workload) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    found = {}
    for spec in work.inputs:
        if spec.dtype.is_float:
            found[spec.name] = rng.standard_normal(spec.shape, np.float32)
        else:
            ends = np.iinfo(spec.dtype.value)
            drawn = rng.integers(ends.min, ends.max, spec.shape, endpoint=True)
            found[spec.name] = drawn.astype(spec.dtype.value)
    return found


def points_of(made: Generated, name: str, way: int, count: int) -> list[dict[str, int]]:
    """Valid points with a way to use an intrinsic."""
    drawn = Sampler(made.space).sample(400, np.random.default_rng(way))
    found = [dict(point) for point in drawn if point[f"tensorize_{name}"] == way]
    assert found, "no point has it"
    return found[:count]


def job_at(made: Generated, point: dict[str, int], work: Workload, target: Target) -> CompileJob:
    """What a worker gets, which knows no plugin."""
    assert not violations(made.space, made.completed(point))
    trace = made.trace(made.completed(point))
    job = CompileJob(
        workload=work, trace=trace, target=target, symbol="entry", plugins=plugins_of(trace)
    )
    sent: CompileJob = pickle.loads(pickle.dumps(job))
    return sent


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_it_does_is_found_used_and_exact(case: Case, target: Target, tmp_path: Path) -> None:
    load(case.intrinsic)
    work, made = case.work, generate(case.work, target)
    (rule,) = [each for each in made.rules if each.rule == f"Tensorize-{case.name}"]
    assert rule.fired, rule.why
    (tunable,) = [each for each in made.space.tunables if each.name == f"tensorize_{case.name}"]
    assert len(tunable.domain) == case.ways + 1
    assert dict(made.space.default)[tunable.name] == 0
    arrays = arrays_of(work)
    wanted = interpret(nest_of(work, target), arrays)["out"]
    jobs = [
        job_at(made, point, work, target)
        for way in range(1, case.ways + 1)
        for point in points_of(made, case.name, way, 3)
    ]
    forget()
    for number, job in enumerate(jobs):
        assert any(step.primitive == "tensorize" for step in job.trace.steps)
        func = lowered(job)
        assert parse(show(func)) is func
        flat = {name: values.reshape(-1) for name, values in arrays.items()}
        np.testing.assert_array_equal(interpret(func, flat)["out"], wanted.reshape(-1))
        assert f"@entry.body.{case.name}_" in kernel_text(func, "entry", target)
        if runs_here("avx2"):
            built = compile_kernel(job)
            assert isinstance(built, Artifact)
            kernel = tmp_path / f"kernel{number}.so"
            kernel.write_bytes(built.code)
            out = outputs_like({"out": (wanted.shape, wanted.dtype)})["out"]
            given = [*arrays.values(), out]
            assert call(runtime_double(tmp_path), kernel, "entry", given) == 0
            np.testing.assert_array_equal(out, wanted, err_msg=str(job.trace))


@pytest.mark.parametrize(
    ("work", "named", "why"),
    [
        (
            workload(DOT, (I16, I16, I32), (24, 9), (16, 9), (24, 16)),
            "cpu:x86-64-v3",
            "no block of these loops is made of tiles of 8 and 2",
        ),
        (
            workload(DOT, (I16, I16, I32), (6, 12), (5, 12), (6, 5)),
            "cpu:x86-64-v3",
            "no block of these loops is made of tiles of 8 and 2",
        ),
        (
            workload(DOT, (I8, I8, I32), (6, 12), (24, 12), (6, 24)),
            "cpu:x86-64-v3",
            r"no stage that sums up does out\[out_i\] = ",
        ),
        (
            workload(GEMM, (F32, F32, F32), (8, 8), (8, 8), (8, 8)),
            "cpu:x86-64-v3",
            r"no stage that sums up does out\[out_i\] = ",
        ),
        (SMALL, "cpu:neoverse-n1", "it needs avx2, which the processor has not"),
    ],
    ids=["terms", "sums", "types", "floats", "target"],
)
def test_where_it_does_not_fit_the_rule_says_why(work: Workload, named: str, why: str) -> None:
    load(PAIRS)
    made = generate(work, usable_target(named))
    (rule,) = [each for each in made.rules if each.rule == "Tensorize-pairs"]
    assert not rule.fired
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(rule.why)
    assert not any(each.name == "tensorize_pairs" for each in made.space.variables)


def named(text: str) -> str:
    """How schedules name the intrinsic of a file that is loaded."""
    load(text)
    ((name, digest),) = (step.args for step in default_trace().steps)
    return f"{name}_{str(digest)[:12]}"


TILED: Final = (
    Step("split", ("out_j", 8)),
    Step("split", ("out_k", 2)),
    Step("reorder", ("out_k_0", "out_i", "out_j_0", "out_j_1", "out_k_1")),
)


def test_the_primitive_refuses_what_it_is_not(target: Target) -> None:
    name, nest = named(PAIRS), nest_of(SMALL, target)
    step = Step("tensorize", ("out", name))
    replay(Trace((*TILED, step)), nest, target)
    for steps in ((), TILED[:1], (*TILED[:2], Step("reorder", ("out_k_1", "out_j_1")))):
        with pytest.raises(ScheduleError, match=r"it is not what pairs_.* does") as no:
            replay(Trace((*steps, step)), nest, target)
        assert "loops as " in no.value.hint
    unrolled = Step("unroll", ("out_k_1",))
    with pytest.raises(ScheduleError, match="it is not what"):
        replay(Trace((*TILED, unrolled, step)), nest, target)
    other = usable_target("cpu:neoverse-n1")
    with pytest.raises(ScheduleError, match="needs avx2, which cpu:neoverse-n1 has not"):
        replay(Trace((*TILED, step)), nest, other)
    with pytest.raises(ScheduleError, match="the target has no 'pairs_0'") as no:
        replay(Trace((*TILED, Step("tensorize", ("out", "pairs_0")))), nest, target)
    assert "--plugin" in no.value.hint


def test_a_schedule_with_it_is_lowered_with_another_version_of_its_file(target: Target) -> None:
    before = named(PAIRS)
    trace = Trace((*TILED, Step("tensorize", ("out", before)), *default_trace().steps))
    now = named(f"{PAIRS}# edited")
    assert before != now
    found = lowered_as_here(trace)
    assert Step("tensorize", ("out", now)) in found.steps
    assert Step("tensorize", ("out", before)) not in found.steps
    gemm = Trace((Step("tensorize", ("conv", "gemm")),))
    assert lowered_as_here(gemm).steps[0] == gemm.steps[0]


LIE: Final = PAIRS.replace("%sums = add <8 x i32>", "%sums = sub <8 x i32>")


def test_one_that_lies_makes_other_answers(target: Target, tmp_path: Path) -> None:
    if not runs_here("avx2"):
        pytest.skip("this processor has no avx2")
    load(LIE)
    made = generate(SMALL, target)
    (point,) = points_of(made, "pairs", 1, 1)
    built = compile_kernel(job_at(made, point, SMALL, target))
    assert isinstance(built, Artifact)
    kernel = tmp_path / "kernel.so"
    kernel.write_bytes(built.code)
    arrays = arrays_of(SMALL)
    wanted = interpret(nest_of(SMALL, target), arrays)["out"]
    out = np.zeros_like(wanted)
    assert call(runtime_double(tmp_path), kernel, "entry", [*arrays.values(), out]) == 0
    np.testing.assert_array_equal(out, -wanted)


SPOILING: Final = """
@custom_pass(after="vectorize_loops")
def spoiled(func, target):
    from compile_worker.ir.expr import Const
    from compile_worker.ir.stmt import For, Store
    from compile_worker.ir.func import Func
    from compile_worker.ir.visit import rewrite

    def rule(node):
        if isinstance(node, For) and node.marks and isinstance(node.body, Store):
            return For(node.var, 1, node.body, node.kind, node.marks)
        return None

    return Func(func.name, func.params, rewrite(func.body, rule), func.attrs)
"""


def test_a_nest_that_another_pass_has_changed_is_refused(target: Target) -> None:
    load(f"{PAIRS}{SPOILING}")
    made = generate(SMALL, target)
    (point,) = points_of(made, "pairs", 1, 1)
    failed = compile_kernel(job_at(made, point, SMALL, target))
    assert isinstance(failed, BuildFailure)
    assert "pass pairs of mine.py fails" in failed.why
    assert "is not what it does any more: a pass before has changed it" in failed.why


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("pmadd.wd", "nonsense", "is refused by LLVM: .*unknown intrinsic"),
        ("ret <8 x i32> %sums", "ret <4 x i32> %sums", "is refused by LLVM: .*expected"),
        ("ret <8 x i32> %sums", "", "is refused by LLVM"),
        ('needs="avx2",', "", "has instructions of one processor, and does not say of which"),
        ("%sums = add", "%p = inttoptr i64 0 to ptr\n %sums = add", "says ptr in its instructions"),
        ("%sums = add", "}\n%sums = add", "says } in its instructions"),
        ('a: "int16[8, 2]"', "a", "does not say what a is"),
        ('a: "int16[8, 2]"', 'a: "int64[8, 2]"', "does not say what a is"),
        ('a: "int16[8, 2]"', 'a: "int16[8, 4]"', "reads a of .* otherwise than by whole loops"),
        ('a: "int16[8, 2]"', 'a: "int16[9, 2]"', "reads a of .* otherwise than by whole loops"),
        ("range(2)", "range(4)", "is no script: .*index 1 of a can be 2"),
        ("range(8)", "range(1)", "has a loop .* of less than two iterations"),
        ("a[i, k])", "a[i, 0])", "reads a of .* otherwise than by whole loops"),
        ("int32(a[i, k]) *", "int32(a[i, k]) * int32(a[i, 1 - k]) *", "reads a at 2 places"),
        ("int32(a[i, k]) *", "", "reads a at 0 places"),
        ("out[i] += ", "out[i] = ", "does not add to out"),
        ("out[i] += ", "raise ValueError  # ", "is no script: .*Raise is no statement"),
        ("for k in range(2):", "while True:", "is no script: .*While is no statement"),
        (", out: ", ", other: ", "is no script"),
        ("8", "1024", "has 2048 lanes of a"),
    ],
)
def test_one_that_cannot_be_is_one_line_when_its_file_is_loaded(
    old: str, new: str, why: str
) -> None:
    assert old in PAIRS
    with pytest.raises(SettingsError, match=f"mine.py: the intrinsic pairs {why}") as raised:
        load(PAIRS.replace(old, new))
    assert "\n" not in raised.value.what
    assert raised.value.hint


def test_what_llvm_makes_a_call_of_a_library_of_is_refused() -> None:
    text = OUTER.replace(
        "%sums = fadd <8 x float> %out, %products", "%sums = frem <8 x float> %out, %products"
    )
    with pytest.raises(SettingsError, match="the intrinsic outer needs fmodf, which kernels have"):
        load(text)


@pytest.mark.parametrize("call_with", ["(3)", "(None)", "('', needs=3)"])
def test_what_is_no_text_is_said_where_the_file_is_loaded(call_with: str) -> None:
    with pytest.raises(SettingsError, match=r"cannot be loaded: TypeError: .* are texts in line 4"):
        load(f"@custom_intrinsic{call_with}\ndef mine(a):\n    pass\n")


def test_two_intrinsics_do_not_do_one_sum_at_once(target: Target) -> None:
    load(f"{PAIRS}{PAIRS.replace('def pairs', 'def others')}")
    made = generate(SMALL, target)
    drawn = Sampler(made.space).sample(300, np.random.default_rng(0))
    used = {(point["tensorize_pairs"], point["tensorize_others"]) for point in drawn}
    assert used == {(0, 0), (0, 1), (1, 0)}


def test_of_dot_products_and_an_intrinsic_one_does_the_sums(target: Target) -> None:
    load(TURNED)
    work = workload(DOT, (U8, I8, I32), (8, 8), (12, 8), (8, 12))
    drawn = Sampler(generate(work, target).space).sample(300, np.random.default_rng(0))
    used = {(bool(point["tensorize_turned"]), point["products"] > 1) for point in drawn}
    assert used == {(False, False), (True, False), (False, True)}
