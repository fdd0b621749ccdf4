"""Micro-op kernels: a call of the runtime, and the function that records the micro-ops for it.

    static void* site[2];
    static int record(void* key) { VTAUopLoopBegin(...); VTAUopPush(...); ... }
    VTAPushGEMMOp(&site[k / 99], record, &(struct {k % 99; k}), 4)

The runtime calls `record` once per handle and closure value, of which it takes 0 to 98, and
remembers the result. `record` gets the closure's address and finds the whole key behind its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from compile_worker.codegen.llvm import PLAIN_CODE
from compile_worker.codegen.text import FunctionText
from compile_worker.ir.expr import Expr
from compile_worker.ir.stmt import MicroKernel, MicroOp, Ref
from compile_worker.machines.vta.codegen.runtime_abi import ALU_MODE, ALU_OPCODES, GEMM_MODE
from compile_worker.machines.vta.passes.slots import Digit, base_of

_UNROLLED_UOPS: Final = 4
"""Up to as many micro-ops are pushed one by one; more come from a table."""


def recorder(
    name: str, kernel: MicroKernel, digits: Sequence[Digit], sram: Mapping[str, int]
) -> str:
    """LLVM text of the recording function @`name`, and of its table of micro-ops if it has one.

    `sram` gives the first element of every on-chip buffer by name.
    """
    text = FunctionText(name)
    values = _decoded(text, digits)
    source = kernel.dst if _reads_dst(kernel) else kernel.src
    bases = [_base(text, ref, values, sram) for ref in (kernel.dst, source, kernel.wgt)]
    for loop in kernel.loops:
        src_step = loop.dst if _reads_dst(kernel) else loop.src
        text.do(
            f"call void @VTAUopLoopBegin(i32 {loop.extent}, i32 {loop.dst}, i32 {src_step},"
            f" i32 {loop.wgt})"
        )
    imm = values[kernel.imm] if isinstance(kernel.imm, Expr) else str(kernel.imm or 0)
    table = _push_all(text, kernel, bases, imm)
    for _ in kernel.loops:
        text.do("call void @VTAUopLoopEnd()")
    text.do("ret i32 0")
    head = f"define internal i32 @{name}(ptr %key) {PLAIN_CODE}"
    return f"{table}{head} {{\n{text.body()}\n}}\n"


def _reads_dst(kernel: MicroKernel) -> bool:
    """Whether the source index has to be the destination's: with immediates the RTL reads there."""
    return kernel.engine == "alu" and kernel.src is None


def _decoded(text: FunctionText, digits: Sequence[Digit]) -> dict[Expr, str]:
    """The digits of the key that the closure points to."""
    if not digits:
        return {}
    rest = text.op(f"load i32, ptr {text.op('getelementptr i32, ptr %key, i64 1')}")
    values = {}
    for digit in digits:
        values[digit.value] = text.op(f"urem i32 {rest}, {digit.cases}")
        rest = text.op(f"udiv i32 {rest}, {digit.cases}")
    return values


def _base(
    text: FunctionText, ref: Ref | None, values: Mapping[Expr, str], sram: Mapping[str, int]
) -> str:
    """The base element of an operand, as a literal where no digit takes part."""
    base = base_of(ref)
    total = str(base.constant + (sram[ref.buffer.name] if ref is not None else 0))
    for digit, coefficient in base.terms:
        term = text.op(f"mul i32 {values[digit]}, {coefficient}")
        total = text.op(f"add i32 {term}, {total}")
    return total


def _push_all(text: FunctionText, kernel: MicroKernel, bases: Sequence[str], imm: str) -> str:
    """Push every micro-op; gives the text of the table they come from, if any."""
    if len(kernel.uops) <= _UNROLLED_UOPS:
        for uop in kernel.uops:
            pairs = zip(bases, _offsets(kernel, uop), strict=True)
            _push(text, kernel, [_plus(text, base, str(offset)) for base, offset in pairs], imm)
        return ""
    table = f"@{text.name}.uops"
    with text.loop(len(kernel.uops)) as position:
        operands = []
        for column, base in enumerate(bases):
            at = text.op(
                f"getelementptr inbounds [3 x i16], ptr {table}, i64 {position}, i64 {column}"
            )
            offset = text.op(f"zext i16 {text.op(f'load i16, ptr {at}')} to i32")
            operands.append(_plus(text, base, offset))
        _push(text, kernel, operands, imm)
    rows = ", ".join(
        "[3 x i16] [" + ", ".join(f"i16 {o}" for o in _offsets(kernel, uop)) + "]"
        for uop in kernel.uops
    )
    return f"{table} = internal constant [{len(kernel.uops)} x [3 x i16]] [{rows}]\n"


def _offsets(kernel: MicroKernel, uop: MicroOp) -> tuple[int, int, int]:
    return uop.dst, uop.dst if _reads_dst(kernel) else uop.src, uop.wgt


def _plus(text: FunctionText, left: str, right: str) -> str:
    if left.isdecimal() and right.isdecimal():
        return str(int(left) + int(right))
    return text.op(f"add i32 {left}, {right}")


def _push(text: FunctionText, kernel: MicroKernel, operands: Sequence[str], imm: str) -> None:
    mode = GEMM_MODE if kernel.engine == "gemm" else ALU_MODE
    opcode = ALU_OPCODES[kernel.opcode] if kernel.engine == "alu" else 0
    indices = ", ".join(f"i32 {operand}" for operand in operands)
    text.do(
        f"call void @VTAUopPush(i32 {mode}, i32 {int(kernel.reset)}, {indices}, i32 {opcode},"
        f" i32 {int(kernel.imm is not None)}, i32 {imm})"
    )
