"""The accelerator's limits: where they begin, what they say, and that they travel."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.kernels.nests import SIM
from tilefarm.target import Limits

from compile_worker.errors import Refused, Violation, require
from compile_worker.ir.stmt import HardwareLoop, MicroOp
from compile_worker.machines.vta import limits
from compile_worker.passes.check_memories import memory_fits

ONE = HardwareLoop(1, 0, 0, 0)


def name(violation: Violation | None) -> str:
    return "" if violation is None else violation.name


@pytest.mark.parametrize(("scope", "depth"), [("inp", 2048), ("wgt", 1024), ("acc", 2048)])
def test_memories(scope: str, depth: int) -> None:
    memory = SIM.model.memory(scope)
    assert memory_fits(memory, depth) is None
    violation = memory_fits(memory, depth + 1)
    assert violation is not None
    assert violation.name == f"{scope}_sram"
    assert str(depth + 1) in violation.why
    assert str(depth) in violation.why


def test_uops() -> None:
    assert limits.uops_fit(SIM, 2048) is None
    assert name(limits.uops_fit(SIM, 2049)) == "uop_sram"
    larger = replace(SIM, limits=Limits(kernel_uops=1 << 20))
    assert limits.uops_fit(larger, 8192) is None
    assert name(limits.uops_fit(larger, 8193)) == "uop_sram"


def test_instructions() -> None:
    assert limits.instructions_fit(limits.instruction_capacity()) is None
    assert name(limits.instructions_fit(limits.instruction_capacity() + 1)) == "insn_queue"


@pytest.mark.parametrize(
    ("rows", "columns", "stride", "pads", "fits"),
    [
        (1, 1, 0, (0, 0, 0, 0), True),
        (65535, 65535, 65535, (15, 15, 15, 15), True),
        (65536, 1, 1, (0, 0, 0, 0), False),
        (1, 65536, 1, (0, 0, 0, 0), False),
        (1, 1, 65536, (0, 0, 0, 0), False),
        (1, 1, 1, (0, 16, 0, 0), False),
        (1, 1, 1, (0, 0, 0, -1), False),
        (0, 1, 1, (1, 0, 0, 0), False),
        (1, 0, 1, (1, 0, 0, 0), False),
    ],
)
def test_dma_fields(
    rows: int, columns: int, stride: int, pads: tuple[int, int, int, int], fits: bool
) -> None:
    violation = limits.dma_fields_fit(rows, columns, stride, pads)
    assert name(violation) == ("" if fits else "dma_fields")


@pytest.mark.parametrize(
    ("loop", "uop", "engine", "fits"),
    [
        (HardwareLoop(2, 1023, 1023, 511), MicroOp(0, 0, 0), "gemm", True),
        (HardwareLoop(16383, 0, 0, 0), MicroOp(2047, 2047, 1023), "gemm", True),
        (HardwareLoop(16384, 0, 0, 0), MicroOp(0, 0, 0), "gemm", False),
        (HardwareLoop(0, 0, 0, 0), MicroOp(0, 0, 0), "gemm", False),
        (HardwareLoop(1, 2048, 0, 0), MicroOp(0, 0, 0), "gemm", False),
        (HardwareLoop(2, 0, 0, 1023), MicroOp(0, 0, 1), "gemm", False),
        (HardwareLoop(3, 1024, 0, 0), MicroOp(0, 0, 0), "gemm", False),
        (ONE, MicroOp(0, 2048, 0), "alu", False),
    ],
)
def test_loop_fields(loop: HardwareLoop, uop: MicroOp, engine: limits.Engine, fits: bool) -> None:
    violation = limits.loop_fields_fit(SIM, [loop], [uop], engine=engine)
    assert name(violation) == ("" if fits else "loop_fields")


@pytest.mark.parametrize(("distance", "fits"), [(1, False), (2, False), (3, True)])
def test_distance(distance: int, fits: bool) -> None:
    assert name(limits.acc_distance_ok(SIM, distance)) == ("" if fits else "acc_distance")


def executed(loops: list[HardwareLoop], uops: list[MicroOp]) -> int:
    """The smallest distance by running the instruction."""
    outer, inner = ([*loops, ONE, ONE])[:2]
    last: dict[int, int] = {}
    best = limits.NEVER
    order = product(range(outer.extent), range(inner.extent), uops)
    for position, (o, i, uop) in enumerate(order):
        dst = uop.dst + o * outer.dst + i * inner.dst
        if dst in last:
            best = min(best, position - last[dst])
        last[dst] = position
    return best


small_loops = st.lists(
    st.builds(HardwareLoop, st.integers(1, 5), st.integers(0, 6), st.just(0), st.just(0)),
    max_size=2,
)
small_uops = st.lists(
    st.builds(MicroOp, st.integers(0, 12), st.just(0), st.just(0)), min_size=1, max_size=6
)


@settings(max_examples=examples(150), deadline=None)
@given(small_loops, small_uops)
def test_distance_is_that_of_execution(loops: list[HardwareLoop], uops: list[MicroOp]) -> None:
    wanted = executed(loops, uops)
    assert limits.acc_distance(loops, uops, horizon=1000) == wanted
    near = limits.acc_distance(loops, uops, horizon=4)
    assert near == (wanted if wanted <= 4 else limits.NEVER)


def test_refusal_travels() -> None:
    with pytest.raises(Refused) as caught:
        require("lower_gemm", limits.uops_fit(SIM, 9999))
    refusal = pickle.loads(pickle.dumps(caught.value))
    assert (refusal.stage, refusal.constraint) == ("lower_gemm", "uop_sram")
    assert str(refusal) == "lower_gemm: uop_sram: 9999 micro-ops, of which 2048 can be resident"
    require("lower_gemm", None)
