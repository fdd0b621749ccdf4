"""What no instruction can do is refused with the block's name and the reason."""

from __future__ import annotations

import pytest
from kit.kernels.nests import SIM, conv2d, with_epilogue
from kit.kernels.schedules import Tiling, keeps_meaning, scheduled
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.trace import Step, Trace

from compile_worker.errors import Refused
from compile_worker.ir.annotations import ALU, DMA, TENSORIZE
from compile_worker.ir.expr import (
    INDEX,
    Add,
    Buffer,
    Cast,
    Const,
    Expr,
    FloorDiv,
    Load,
    Mul,
    Sub,
    Var,
)
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, For, MicroKernel, Stmt, Store
from compile_worker.ir.visit import find, rewrite
from compile_worker.lowering import lower
from compile_worker.machines.vta.passes.lower_alu import lower_alu
from compile_worker.machines.vta.passes.lower_dma import lower_dma
from compile_worker.machines.vta.passes.lower_gemm import lower_gemm
from compile_worker.passes.flatten import LOCAL_NBYTES, flatten
from compile_worker.schedule import PRIMITIVES, Schedule, replay
from compile_worker.te import nest_of

OUT = Buffer("out", (4, 1, 16), DType.INT32)
ACC = Buffer("acc", (4, 1, 16), DType.INT32, "acc")
E, O = Var("e"), Var("o")  # noqa: E741
AT: tuple[Expr, ...] = (E, Const(0, INDEX), O)


def nest(block: Stmt) -> Func:
    return Func("f", (OUT,), Alloc(ACC, For(E, 4, For(O, 16, block))))


def alu(value: Expr) -> Func:
    return nest(Block("step", Store(ACC, AT, value), marks=(ALU(1),)))


def why(run: object, func: Func) -> str:
    assert callable(run)
    with pytest.raises(Refused) as refused:
        run(func, SIM)
    assert refused.value.constraint == "instruction"
    return refused.value.why


def test_alu_operations_that_do_not_exist() -> None:
    own = Load(ACC, AT)
    assert why(lower_alu, alu(Sub(own, Const(3, DType.INT32)))) == "the ALU has no Sub"
    assert "16-bit constant" in why(lower_alu, alu(Add(own, Const(1 << 15, DType.INT32))))
    assert "not x = operation" in why(lower_alu, alu(Const(0, DType.INT32)))


def test_mul_is_for_targets_that_have_it() -> None:
    func = alu(Mul(Load(ACC, AT), Const(3, DType.INT32)))
    with pytest.raises(Refused, match="lower_alu: alu_mul: the ALU of sim has no MUL"):
        lower_alu(func, SIM)
    (kernel,) = find(lower_alu(func, TARGETS["sim-mul"]).body, MicroKernel)
    assert (kernel.opcode, kernel.imm) == ("mul", 3)


def test_parts_of_hardware_elements() -> None:
    reversed_lanes = (E, Const(0, INDEX), Const(15, INDEX) - O)
    value = Load(ACC, reversed_lanes) + Const(1, DType.INT32)
    block = Block("step", Store(ACC, reversed_lanes, value), marks=(ALU(1),))
    assert "whole hardware elements" in why(lower_alu, nest(block))


def test_indices_that_are_no_sums() -> None:
    halved: tuple[Expr, ...] = (FloorDiv(E, Const(2, INDEX)), Const(0, INDEX), O)
    block = Block("step", Store(ACC, halved, Load(ACC, halved) + 1), marks=(ALU(1),))
    assert "not a linear sum" in why(lower_alu, nest(block))


def test_copies_that_compute() -> None:
    value = Load(OUT, AT) + Const(1, DType.INT32)
    block = Block("fetch", Store(ACC, AT, value), marks=(DMA("load"),))
    assert why(lower_dma, nest(block)) == "fetch does more than copy"


def test_a_tensorized_block_that_is_no_product() -> None:
    block = Block("mul", Store(ACC, AT, Load(ACC, AT) + 1), marks=(TENSORIZE("gemm"),))
    assert "not acc += int32(inp) * int32(wgt)" in why(lower_gemm, nest(block))


def test_an_accumulation_that_starts_at_one() -> None:
    work = conv2d(1, 1, 4, 4)
    func = scheduled(work, Tiling())

    def ones(node: Node) -> Node | None:
        if isinstance(node, Block) and node.init is not None:
            assert isinstance(node.init, Store)
            init = Store(node.init.buffer, node.init.index, Const(1, DType.INT32))
            return Block(node.name, node.body, init, node.reductions, node.marks)
        return None

    with pytest.raises(Refused, match="starts with something else than 0"):
        lower(rewrite(func, ones), SIM)


def test_stack_buffers_have_a_limit() -> None:
    big = Buffer("big", (LOCAL_NBYTES + 1,), DType.INT8, "local")
    body = For(E, 4, Store(big, (E,), Cast(DType.INT8, E)))
    with pytest.raises(Refused, match="local_nbytes: big takes 65537 bytes on the stack"):
        flatten(Func("f", (OUT,), Alloc(big, body)), SIM)


def test_a_constant_for_each_lane() -> None:
    work = with_epilogue(conv2d(ci=2, co=2, height=4, width=4), shift="lanes")
    tiling = Tiling(co=2, h=2, shift_by_lane=True)
    trace = Trace((*tiling.trace().steps, Step("compute_inline", ("shift_acc",))))
    func = replay(trace, nest_of(work, SIM), SIM)
    with pytest.raises(Refused, match="shifted needs another constant for each lane"):
        lower(func, SIM)


PADDED = {"out_co_1": "", "weight_wgt_i0": "", "out_w_0": "guard", "conv_ci_0": "guard"}


@pytest.mark.parametrize("loop", PADDED)
def test_a_guard_around_several_instructions(loop: str) -> None:
    work, tiling = conv2d(ci=2, co=2, height=8, width=8), Tiling(slots=2, acc_slots=2, co=2, h=2)
    trace = Trace((*tiling.trace().steps, Step("pad", (loop, 5))))
    func = replay(trace, nest_of(work, SIM), SIM)
    if PADDED[loop]:
        with pytest.raises(
            Refused, match=r"check_guards: guard: one guard around .*weight_wgt, conv"
        ):
            lower(func, SIM)
    else:
        keeps_meaning(work, func)


def test_copies_that_are_not_between_memory_and_the_chip() -> None:
    staged = Buffer("staged", (4, 1, 16), DType.INT32, "local")
    copy = Block("copy", Store(staged, AT, Load(OUT, AT)), marks=(DMA("load"),))
    assert why(lower_dma, nest(Alloc(staged, copy))) == (
        "copy copies from dram to local, not between memory and the chip"
    )


def test_a_host_that_reaches_the_chip() -> None:
    assert why(lower_dma, nest(Block("fill", Store(ACC, AT, Load(OUT, AT))))) == (
        "fill runs on the host, which cannot reach acc in acc"
    )


@pytest.mark.parametrize("operand", ["unit_inp", "bias_wgt"])
def test_operands_loaded_behind_the_steps_of_a_tile(operand: str) -> None:
    work = conv2d(2, 2, 4, 4)
    layer = replay(Tiling(co=2, h=2, slots=2, acc_slots=2).trace(), nest_of(work, SIM), SIM)
    moved = PRIMITIVES["compute_at"](Schedule(layer, SIM), operand, "out_w_0")
    late = "an operand is loaded after the GEMM that uses it"
    assert why(lower, moved.func) == late
