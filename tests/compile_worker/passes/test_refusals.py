"""What no instruction can do is refused with the block's name and the reason."""

from __future__ import annotations

import pytest
from kit.nests import SIM, conv2d
from kit.schedules import Tiling, scheduled
from tilefarm.dtype import DType

from compile_worker.errors import Refused
from compile_worker.ir.expr import INDEX, Add, Buffer, Cast, Const, Expr, FloorDiv, Load, Mul, Var
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, For, Stmt, Store
from compile_worker.ir.visit import rewrite
from compile_worker.passes import lower
from compile_worker.passes.flatten import LOCAL_NBYTES, flatten
from compile_worker.passes.lower_alu import lower_alu
from compile_worker.passes.lower_dma import lower_dma
from compile_worker.passes.lower_gemm import lower_gemm

OUT = Buffer("out", (4, 1, 16), DType.INT32)
ACC = Buffer("acc", (4, 1, 16), DType.INT32, "acc")
E, O = Var("e"), Var("o")  # noqa: E741
AT: tuple[Expr, ...] = (E, Const(0, INDEX), O)


def nest(block: Stmt) -> Func:
    return Func("f", (OUT,), Alloc(ACC, For(E, 4, For(O, 16, block))))


def alu(value: Expr) -> Func:
    return nest(Block("step", Store(ACC, AT, value), marks=(("alu", 1),)))


def why(run: object, func: Func) -> str:
    assert callable(run)
    with pytest.raises(Refused) as refused:
        run(func, SIM)
    assert refused.value.constraint == "instruction"
    return refused.value.why


def test_alu_operations_that_do_not_exist() -> None:
    own = Load(ACC, AT)
    assert why(lower_alu, alu(Mul(own, Const(3, DType.INT32)))) == "the ALU has no Mul"
    assert "16-bit constant" in why(lower_alu, alu(Add(own, Const(1 << 15, DType.INT32))))
    assert "not x = operation" in why(lower_alu, alu(Const(0, DType.INT32)))


def test_parts_of_hardware_elements() -> None:
    reversed_lanes = (E, Const(0, INDEX), Const(15, INDEX) - O)
    value = Load(ACC, reversed_lanes) + Const(1, DType.INT32)
    block = Block("step", Store(ACC, reversed_lanes, value), marks=(("alu", 1),))
    assert "whole hardware elements" in why(lower_alu, nest(block))


def test_indices_that_are_no_sums() -> None:
    halved: tuple[Expr, ...] = (FloorDiv(E, Const(2, INDEX)), Const(0, INDEX), O)
    block = Block("step", Store(ACC, halved, Load(ACC, halved) + 1), marks=(("alu", 1),))
    assert "not a linear sum" in why(lower_alu, nest(block))


def test_copies_that_compute() -> None:
    value = Load(OUT, AT) + Const(1, DType.INT32)
    block = Block("fetch", Store(ACC, AT, value), marks=(("dma", "load"),))
    assert why(lower_dma, nest(block)) == "fetch does more than copy"


def test_a_tensorized_block_that_is_no_product() -> None:
    block = Block("mul", Store(ACC, AT, Load(ACC, AT) + 1), marks=(("tensorize", "gemm"),))
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
