"""Copies, kernels and tokens, on programs of a few instructions."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from compile_worker.ir.interpret import InterpretError, interpret
from compile_worker.ir.parser import parse

Array = npt.NDArray[Any]

LOAD = "rows=1, columns=1, stride=1"
ONE = "loops=[], uops=[(0, 0, 0)]"


def run(text: str, **arrays: Array) -> dict[str, Array]:
    return interpret(parse(f"func f {{batch=1, block=16}}\n{text}\nsynchronize()"), arrays)


def test_a_load_pads_with_zeros_and_a_store_narrows() -> None:
    found = run(
        """
param x: int32[2, 3, 1, 16] dram
param out: int8[4, 5, 1, 16] dram
alloc t: int32[4, 5, 1, 16] acc
load(t @ 0, x @ 0, rows=2, columns=3, stride=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1)
alu(add, dst=t @ 0, imm=0, loops=[(20, 1, 0, 0)], uops=[(0, 0, 0)])
store(t @ 0, out @ 0, rows=1, columns=20, stride=20)
""",
        x=np.arange(96, dtype=np.int32).reshape(2, 3, 1, 16) + 200,
    )["out"]
    wanted = np.zeros((4, 5, 1, 16), np.int32)
    wanted[1:3, 1:4] = np.arange(96).reshape(2, 3, 1, 16) + 200
    assert (found == wanted.astype(np.int8)).all()


def test_a_load_takes_rows_at_a_stride() -> None:
    found = run(
        """
param x: int32[4, 5, 1, 16] dram
param out: int8[4, 1, 16] dram
alloc t: int32[4, 1, 16] acc
load(t @ 0, x @ 6, rows=2, columns=2, stride=10)
alu(max, dst=t @ 0, imm=0, loops=[(4, 1, 0, 0)], uops=[(0, 0, 0)])
store(t @ 0, out @ 0, rows=1, columns=4, stride=4)
""",
        x=np.repeat(np.arange(20, dtype=np.int32), 16).reshape(4, 5, 1, 16),
    )["out"]
    assert found[:, 0, 0].tolist() == [6, 7, 16, 17]


def test_a_shift_by_a_negative_constant_is_one_to_the_left() -> None:
    found = run(
        """
param x: int32[1, 1, 16] dram
param out: int8[1, 1, 16] dram
alloc t: int32[1, 1, 16] acc
load(t @ 0, x @ 0, rows=1, columns=1, stride=1)
alu(shr, dst=t @ 0, imm=-8, loops=[], uops=[(0, 0, 0)])
alu(shr, dst=t @ 0, imm=26, loops=[], uops=[(0, 0, 0)])
store(t @ 0, out @ 0, rows=1, columns=1, stride=1)
""",
        x=(np.arange(16, dtype=np.int32) << 21).reshape(1, 1, 16),
    )["out"]
    assert found.ravel().tolist() == [0, 8, 16, 24, -32, -24, -16, -8] * 2


LOOPS = "loops=[(3, 2, 2, 0), (2, 1, 0, 2)], uops=[(0, 0, 0), (0, 1, 1)]"
MATMUL = f"""
param x: int8[3, 2, 1, 16] dram
param w: int8[2, 2, 16, 16] dram
param out: int8[3, 2, 1, 16] dram
alloc t: int32[3, 2, 1, 16] acc
alloc a: int8[3, 2, 1, 16] inp
alloc b: int8[2, 2, 16, 16] wgt
load(a @ 0, x @ 0, rows=1, columns=6, stride=6)
load(b @ 0, w @ 0, rows=1, columns=4, stride=4)
gemm(reset, dst=t @ 0, reset=True, loops=[(6, 1, 0, 0)], uops=[(0, 0, 0)])
gemm(mac, dst=t @ 0, src=a @ 0, wgt=b @ 0, {LOOPS})
alu(shr, dst=t @ 0, imm=6, loops=[(6, 1, 0, 0)], uops=[(0, 0, 0)])
store(t @ 0, out @ 0, rows=1, columns=6, stride=6)
"""


def test_gemm_multiplies_tiles_through_both_loops_and_all_micro_ops() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-128, 128, (3, 2, 1, 16)).astype(np.int8)
    w = rng.integers(-128, 128, (2, 2, 16, 16)).astype(np.int8)
    wide = np.einsum("rcbi,kcoi->rkbo", x.astype(int), w.astype(int))
    assert (run(MATMUL, x=x, w=w)["out"] == (wide >> 6).astype(np.int8)).all()


def test_placed_buffers_share_their_memory() -> None:
    text = """
param x: int32[2, 16] dram
param out: int8[2, 16] dram
alloc t: int32[2, 16] acc {{base=3}}
alloc u: int32[2, 16] acc {{base={base}}}
load(t @ 0, x @ 0, rows=1, columns=2, stride=2)
load(u @ 0, x @ 0, rows=1, columns=2, stride=2)
alu(add, dst=t @ 0, src=u @ 0, loops=[(2, 1, 1, 0)], uops=[(0, 0, 0)])
store(t @ 0, out @ 0, rows=1, columns=2, stride=2)
"""
    x = np.arange(32, dtype=np.int32).reshape(2, 16)
    apart = run(text.format(base=5), x=x)["out"]
    assert (apart == (2 * x).astype(np.int8)).all()
    overlapping = run(text.format(base=4), x=x)["out"]
    assert not (overlapping == apart).all()


TOKENS = """
param x: int8[4, 1, 16] dram
param w: int8[16, 16] dram
param out: int8[4, 1, 16] dram
alloc t: int32[4, 1, 16] acc
alloc b: int8[1, 16, 16] wgt
load(b @ 0, w @ 0, {load})
push(compute, load)
{second}
for k in 4
  alloc a: int8[1, 16] inp {{slots={slots}}}
  {wait}
  load(a @ 0, x @ k, {load})
  push(load, compute)
  pop(load, compute)
  gemm(reset, dst=t @ k, reset=True, {one})
  gemm(mac, dst=t @ k, src=a @ 0, wgt=b @ 0, {one})
  {free}
{drain}
push(compute, store)
{store_waits}
store(t @ 0, out @ 0, rows=1, columns=4, stride=4)
"""


def tokens(slots: int, charged: int, **changed: str) -> str:
    parts = {
        "wait": "pop(compute, load)",
        "free": "push(compute, load)",
        "store_waits": "pop(compute, store)",
        "second": "push(compute, load)\n" * (charged - 1) + "pass",
        "drain": "pop(compute, load)\n" * charged + "pass",
        **changed,
    }
    return TOKENS.format(slots=slots, load=LOAD, one=ONE, **parts)


def matrices() -> dict[str, Array]:
    rng = np.random.default_rng(5)
    return {
        "x": rng.integers(-9, 9, (4, 1, 16)).astype(np.int8),
        "w": rng.integers(-9, 9, (16, 16)).astype(np.int8),
    }


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_as_many_tokens_as_slots_are_right(slots: int) -> None:
    arrays = matrices()
    found = run(tokens(slots, slots), **arrays)["out"]
    wide = arrays["x"][:, 0].astype(int) @ arrays["w"].T.astype(int)
    assert (found[:, 0] == wide.astype(np.int8)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tokens(1, 2), "no token orders it after compute's use of a 0"),
        (tokens(2, 3), "no token orders it after compute's use of a"),
        (tokens(1, 1, store_waits="pass"), "no token orders it after compute's use of t 0"),
        (tokens(1, 1, wait="pass", drain="pass"), "no token orders it after compute's use of a 0"),
        (tokens(1, 1, free="pass"), "waits for a token that nobody has sent"),
        (tokens(1, 1, drain="pass"), "1 tokens from compute to load are left at the end"),
        (tokens(1, 1, store_waits="pop(load, store)"), "nobody has sent"),
    ],
)
def test_tokens_that_are_not_right(text: str, message: str) -> None:
    with pytest.raises(InterpretError, match=message):
        run(text, **matrices())


def test_without_tokens_nothing_is_ordered_and_nothing_is_checked() -> None:
    run(MATMUL, x=np.zeros((3, 2, 1, 16), np.int8), w=np.zeros((2, 2, 16, 16), np.int8))


SMALL = """
param x: int32[4, 16] dram
param out: int8[4, 16] dram
alloc t: int32[4, 16] acc
load(t @ 0, x @ 0, rows=1, columns=4, stride=4)
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"load(t @ 4, x @ 0, {LOAD})", "element 4 of t, which has 4"),
        (f"load(t @ 0, x @ -1, {LOAD})", "element -1 of x, which has 4"),
        (f"load(t @ 0, out @ 0, {LOAD})", "int8 loaded as int32"),
        (f"load(x @ 0, t @ 0, {LOAD})", "x is no on-chip buffer"),
        (f"load(t @ 0, x @ 0, {LOAD.replace('rows=1', 'rows=0')})", "impossible"),
        (f"store(t @ 0, out @ 0, {LOAD})", "stores what no GEMM or ALU operation has produced"),
        (f"store(t @ 0, out @ 0, {LOAD + ', pad_top=1'})", "cannot pad"),
        (f"alu(add, dst=t @ 0, src=t @ 0, {ONE})", "reads what it writes"),
        (f"alu(add, dst=t @ 0, {ONE})", "needs src, or imm of 16 bits"),
        (f"alu(add, dst=t @ 0, imm=40000, {ONE})", "imm of 16 bits"),
        (f"alu(shr, dst=t @ 0, imm=32, {ONE})", "shift outside -16..31"),
        (f"alu(shr, dst=t @ 0, imm=-17, {ONE})", "shift outside -16..31"),
        (f"alu(add, dst=t @ 4, imm=1, {ONE})", "element 4 of t"),
        (f"gemm(mac, dst=t @ 0, {ONE})", "needs src and wgt"),
        ("gemm(reset, dst=t @ 0, reset=True, loops=[], uops=[])", "needs a micro-op"),
        (
            f"gemm(reset, dst=t @ 0, reset=True, {ONE})\nstore(t @ 0, out @ 0, {LOAD})",
            "no GEMM or ALU operation",
        ),
    ],
)
def test_what_the_accelerator_cannot_do(line: str, message: str) -> None:
    with pytest.raises(InterpretError, match=message):
        run(SMALL + line, x=np.zeros((4, 16), np.int32), out=np.zeros((4, 16), np.int8))


def test_an_alu_operation_may_visit_an_element_again() -> None:
    text = f"{SMALL}alu(add, dst=t @ 0, imm=3, loops=[(5, 0, 0, 0)], uops=[(0, 0, 0)])\n"
    found = run(f"{text}store(t @ 0, out @ 0, {LOAD})", x=np.zeros((4, 16), np.int32))
    assert found["out"][0].tolist() == [15] * 16
