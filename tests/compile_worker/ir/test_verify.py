"""One program that breaks each rule, and that nothing else is found in what is right."""

import pickle

import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.kernels import nests
from tilefarm.dtype import DType

from compile_worker.ir.accesses import accesses, outside
from compile_worker.ir.bounds import extents_of
from compile_worker.ir.expr import Buffer, Load, index
from compile_worker.ir.func import Func
from compile_worker.ir.parser import parse
from compile_worker.ir.stmt import Seq, Store
from compile_worker.ir.verify import RULES, Stage, VerifyError, verify

HEAD = "func f\nparam a: int32[8] dram\nparam out: int32[8] dram\n"
STORE = "out[i] = a[i]"
LOOP = "for i in 8\n"
ON_CHIP = "func f\nparam a: int32[8] dram\nparam out: int32[8] acc\n"
BLOCK = f"{HEAD}{LOOP}  block b\n    {STORE}\n"
DEVICE = "func f\nparam x: int8[8, 16] dram\nparam out: int8[8, 16] dram\n"
COPY = "rows=1, columns=1, stride=1"
BACK = f"alloc t: int32[8, 16] acc {{base=0}}\nstore(t @ 0, out @ 0, {COPY})\n"
LOADED = f"alloc d: int8[8, 16] inp {{base=0}}\nload(d @ 0, x @ 0, {COPY})\n"

BROKEN = [
    ("names are unique", Stage.NEST, f"{HEAD}alloc a: int8[2] local\n{LOOP}  {STORE}"),
    ("names are unique", Stage.NEST, f"{HEAD}{LOOP}  {STORE}\nfor i in 4\n  {STORE}"),
    (
        "every block has its own name",
        Stage.SCHEDULED,
        f"{HEAD}{LOOP}  block b\n    {STORE}\nfor j in 8\n  block b\n    out[j] = a[j]",
    ),
    ("every extent is positive", Stage.NEST, f"{HEAD}for i in 0\n  {STORE}"),
    ("every extent is positive", Stage.NEST, f"{HEAD}alloc t: int8[2, 0] local\n{LOOP}  {STORE}"),
    ("variables are bound", Stage.FLAT, f"{HEAD}{STORE}"),
    (
        "variables are bound",
        Stage.FLAT,
        f"{HEAD}{LOOP}  {LOOP}    {STORE}",
    ),
    ("ranks agree", Stage.FLAT, f"{HEAD}out[0] = a[0, 0]"),
    ("ranks agree", Stage.FLAT, f"{HEAD}out[0, 0] = a[0]"),
    ("types agree", Stage.FLAT, f"{HEAD}out[0] = int8(a[0])"),
    ("types agree", Stage.FLAT, f"{HEAD}out[a[0]] = a[0]"),
    ("types agree", Stage.FLAT, f"{HEAD}out[0] = a[0] + i32(1) * int32(int8(a[0]) + a[0])"),
    ("types agree", Stage.FLAT, f"{HEAD}out[0] = select(a[0], a[0], a[0])"),
    ("types agree", Stage.FLAT, f"{HEAD}out[0] = select(1 < 2, a[0], i8(0))"),
    ("types agree", Stage.FLAT, f"{HEAD}out[0] = a[0] / a[0]"),
    ("types agree", Stage.FLAT, f"{HEAD}out[0] = int32(float32(a[0]) // f32(2.0))"),
    ("types agree", Stage.FLAT, f"{HEAD}out[0] = sin[int32](a[0])"),
    ("types agree", Stage.FLAT, f"{HEAD}if a[0]\n  out[0] = a[0]"),
    ("types agree", Stage.FLAT, f"{HEAD}if a[0] and 1 < 2\n  out[0] = a[0]"),
    ("types agree", Stage.FLAT, f"{DEVICE}{BACK.replace('rows=1', 'rows=i32(1)')}"),
    (
        "scopes are legal",
        Stage.FLAT,
        ON_CHIP + "out[0] = a[0]",
    ),
    ("scopes are legal", Stage.FLAT, f"{HEAD}alloc t: int8[4] dram\nout[0] = a[0]"),
    ("scopes are legal", Stage.FLAT, f"{HEAD}alloc t: int32[4] inp\nout[0] = a[0]"),
    ("accesses are in bounds", Stage.FLAT, f"{HEAD}{LOOP}  out[i + 1] = a[i]"),
    ("accesses are in bounds", Stage.FLAT, f"{HEAD}{LOOP}  if i < 7\n    out[i] = a[i + 2]"),
    ("accesses are in bounds", Stage.FLAT, f"{HEAD}{LOOP}  out[i * i % 10] = a[i]"),
    ("inputs are read, outputs written", Stage.FLAT, f"{HEAD}{LOOP}  a[i] = out[i]"),
    ("inputs are read, outputs written", Stage.FLAT, f"{HEAD}{LOOP}  out[i] = i32(0)"),
    ("inputs are read, outputs written", Stage.FLAT, f"{HEAD}pass"),
    ("a nest is loops around a block", Stage.NEST, f"{HEAD}{LOOP}  {STORE}"),
    (
        "work is blocks of the host",
        Stage.SCHEDULED,
        BLOCK + "synchronize()",
    ),
    (
        "reductions start what they sum",
        Stage.SCHEDULED,
        f"{HEAD}alloc t: int32[1] local\n{LOOP}  block b over i\n    init\n      t[0] = i32(0)\n"
        "    out[0] = out[0] + a[i]",
    ),
    (
        "what is done at once is independent",
        Stage.SCHEDULED,
        f"{HEAD}parallel i in 8\n  block b over i\n    out[0] = out[0] + a[i]",
    ),
    (
        "what is done at once is independent",
        Stage.SCHEDULED,
        f"{HEAD}vectorized i in 8\n  block b over i\n    out[0] = out[0] + a[i]",
    ),
    (
        "no reduction initialises",
        Stage.DECOMPOSED,
        f"{HEAD}{LOOP}  block b over i\n    init\n      out[0] = i32(0)\n    out[0] = a[i]",
    ),
    ("no blocks are left", Stage.FLAT, BLOCK),
    (
        "the host stays off the chip",
        Stage.EXPLICIT,
        f"{HEAD}alloc t: int32[8] acc\n{LOOP}  t[i] = a[i]\n  out[i] = t[i]",
    ),
    (
        "operands are in their memories",
        Stage.EXPLICIT,
        f"{DEVICE}{LOADED}store(d @ 0, out @ 0, {COPY})",
    ),
    (
        "operands are in their memories",
        Stage.EXPLICIT,
        f"{DEVICE}{LOADED}gemm(mac, dst=d @ 0, src=d @ 0, wgt=d @ 0, loops=[], uops=[(0, 0, 0)])"
        f"\n{BACK}",
    ),
    *(
        ("instructions stay in their buffers", Stage.EXPLICIT, f"{DEVICE}{LOADED}{line}\n{BACK}")
        for line in (
            f"load(d @ 8, x @ 0, {COPY})",
            f"load(d @ 0, x @ 8, {COPY})",
            f"for k in 9\n  load(d @ 0, x @ (k - 1), {COPY})",
            f"for k in 9\n  load(d @ k, x @ 0, {COPY})",
            f"for k in 8\n  load(d @ k, x @ 0, {COPY}, pad_top=k % 2)",
            f"load(d @ 0, x @ 0, {COPY}, pad_top=16)",
            f"load(d @ 0, x @ 0, {COPY.replace('rows=1', 'rows=0')})",
            f"for k in 8\n  load(d @ 0, x @ k, {COPY.replace('columns=1', 'columns=2')})",
            "alloc u: int32[2, 16] acc:\n  gemm(reset, dst=u @ 1, loops=[], uops=[(1, 0, 0)])",
        )
    ),
    (
        "on-chip buffers are placed",
        Stage.PLACED,
        f"{DEVICE}{LOADED}{BACK.replace(' {base=0}', '')}synchronize()",
    ),
    ("the accelerator is waited for", Stage.PLACED, f"{DEVICE}{LOADED}{BACK}"),
    ("host buffers are flat", Stage.FLAT, f"{DEVICE}{LOADED}{BACK}synchronize()"),
]


@pytest.mark.parametrize(("rule", "stage", "text"), BROKEN)
def test_a_broken_rule_is_named(rule: str, stage: Stage, text: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse(text), stage)
    assert caught.value.rule == rule
    assert str(caught.value).startswith(f"{rule}: ")


def test_every_rule_has_a_program_that_breaks_it() -> None:
    in_code = {"sequences are flat", "buffers are declared"}
    assert {rule for rule, _, _ in BROKEN} | in_code == {rule.name for rule in RULES}


A = Buffer("a", (8,), DType.INT32)
OUT = Buffer("out", (8,), DType.INT32)
COPIED = Store(OUT, (index(0),), A[0])


def test_what_text_cannot_say() -> None:
    with pytest.raises(VerifyError, match="sequences are flat"):
        verify(Func("f", (A, OUT), Seq((COPIED,))), Stage.FLAT)
    with pytest.raises(VerifyError, match="buffers are declared: buffer out does not exist"):
        verify(Func("f", (A,), COPIED), Stage.FLAT)


@pytest.mark.parametrize(
    "line",
    [
        f"for k in 9\n  if k < 8\n    load(d @ k, x @ k, {COPY})",
        f"for k in 8\n  load(d @ k, x @ (7 - k), {COPY}, pad_top=0 * k)",
        f"load(d @ 0, x @ 0, {COPY}, pad_top=1, pad_left=1, pad_bottom=1, pad_right=0)",
        "gemm(reset, dst=t @ 0, loops=[(2, 4, 0, 0), (2, 2, 0, 0)], uops=[(0, 0, 0), (1, 0, 0)])",
    ],
)
def test_instructions_that_stay_in_their_buffers(line: str) -> None:
    text = f"{DEVICE}alloc t: int32[8, 16] acc\n{LOADED}{line}\nstore(t @ 0, out @ 0, {COPY})"
    verify(parse(text), Stage.EXPLICIT)


def test_instructions_in_too_many_iterations_are_not_checked() -> None:
    text = f"{DEVICE}{LOADED}for k in 2000\n  for l in 2000\n    load(d @ (k * l), x @ 0, {COPY})"
    with pytest.raises(VerifyError, match="too many iterations"):
        verify(parse(f"{text}\n{BACK}"), Stage.EXPLICIT)


@given(nests.nests())
@settings(max_examples=examples(20), deadline=None)
def test_nests_are_right(func: Func) -> None:
    verify(func, Stage.NEST)


def test_an_error_says_what_and_shows_where() -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse(f"{HEAD}{LOOP}  out[i + 1] = a[i]"), Stage.FLAT)
    assert str(caught.value) == (
        "accesses are in bounds: index 0 of out can be 8, extent 8\nout[i + 1] = a[i]"
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_only_the_beginning_of_a_long_place_is_shown() -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse(f"{HEAD}alloc a: int8[2] local\n" + "out[0] = a[0]\n" * 20), Stage.FLAT)
    lines = str(caught.value).splitlines()
    assert len(lines) == 8
    assert lines[-1] == "..."


@pytest.mark.parametrize(
    "body",
    [
        "for i in 9\n  out[i % 8] = a[0]",
        "for i in 9\n  if i < 8\n    out[i] = a[i]",
        "for i in 9\n  if 8 <= i\n    pass\n  else\n    out[i] = a[i]",
        "for i in 9\n  out[0] = select(1 <= i and i < 9, a[i - 1], i32(0))",
        "for i in 4\n  for j in 3\n    out[0] = select(i * 2 + j < 8, a[i * 2 + j], i32(0))",
        "for i in 8\n  out[i] = a[int64(a[i])]",  # data is trusted
        "for i in 3\n  out[0] = a[i * i]",  # by trying
        "for i in 9\n  out[0] = select(i // 2 < 4, a[i // 2 * 2], i32(0))",
    ],
)
def test_accesses_that_stay_in_bounds(body: str) -> None:
    func = parse(HEAD + body)
    extents = extents_of(func)
    assert [outside(access, extents) for access in accesses(func.body)].count("") > 1
    assert not any(outside(access, extents) for access in accesses(func.body))


def test_too_many_iterations_to_try_are_not_tried() -> None:
    func = parse(f"{HEAD}for i in 2000\n  for j in 2000\n    out[0] = a[i * j % 2000]")
    (access,) = [each for each in accesses(func.body) if isinstance(each.place, Load)]
    assert "cannot be shown" in outside(access, extents_of(func))
