"""The most products a second: the dot-product instruction on registers, over and over."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

from tilefarm.target import Host

from compile_worker.codegen.dots import INSTRUCTIONS
from compile_worker.codegen.link import shared_object
from compile_worker.codegen.machine import object_code
from compile_worker.isa import isa_of
from driver.benchmarks.processor.kernels import Call

_STEPS: Final = 20_000
_SPARE: Final = 4
"""Registers that are no sums."""

_OPERANDS: Final = {"vpdpbusd": "i8", "sdot": "i8", "pmaddwd": "i16"}
"""What the instructions multiply, by their names without numbers."""


def peak_call(host: Host, file: Path) -> tuple[Call, int] | None:
    """A call that multiplies at the host's limit, and how many products it makes.

    None where the best instruction of the host is none that this knows.
    """
    isa = isa_of(host)
    element = _OPERANDS.get(isa.dot.rstrip("0123456789"))
    if element is None:
        return None
    sums = isa.registers - _SPARE
    file.write_bytes(shared_object(object_code(_text(host, sums), host, fast_code=True), host))
    function = ctypes.CDLL(str(file)).peak
    result = (ctypes.c_int32 * isa.lanes)()
    operands = (ctypes.c_int8 * (8 * isa.lanes))(*range(8 * isa.lanes))

    def call() -> None:
        function(operands, result)

    return call, _STEPS * sums * isa.lanes * (4 if element == "i8" else 2)


def _text(host: Host, count: int) -> str:
    """LLVM text of `peak`: a loop over one instruction for each of `count` sums."""
    isa = isa_of(host)
    instruction = INSTRUCTIONS[isa.dot]
    element = _OPERANDS[isa.dot.rstrip("0123456789")]
    total, narrow = f"<{isa.lanes} x i32>", 4 if element == "i8" else 2
    operand = f"<{isa.lanes * narrow} x {element}>"
    has_start = element == "i8"
    phis, steps, ends = [], [], []
    for at in range(count):
        phis.append(f"  %s{at} = phi {total} [ zeroinitializer, %entry ], [ %t{at}, %loop ]")
        if has_start:
            call = f"call {total} @{instruction}({total} %s{at}, {operand} %a, {operand} %b)"
            steps.append(f"  %t{at} = {call}")
        else:
            # The sum is an operand, so that no product is made only once.
            steps.append(f"  %c{at} = bitcast {total} %s{at} to {operand}")
            steps.append(f"  %p{at} = call {total} @{instruction}({operand} %c{at}, {operand} %b)")
            steps.append(f"  %t{at} = add {total} %p{at}, %s{at}")
        before = "zeroinitializer" if at == 0 else f"%e{at - 1}"
        ends.append(f"  %e{at} = add {total} {before}, %t{at}")
    arguments = f"{total}, {operand}, {operand}" if has_start else f"{operand}, {operand}"
    return "\n".join(
        [
            f"declare {total} @{instruction}({arguments})",
            "define void @peak(ptr %operands, ptr %result) {",
            "entry:",
            f"  %a = load {operand}, ptr %operands, align 1",
            f"  %second = getelementptr i8, ptr %operands, i64 {4 * isa.lanes}",
            f"  %b = load {operand}, ptr %second, align 1",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
            *phis,
            *steps,
            "  %next = add i64 %i, 1",
            f"  %more = icmp ult i64 %next, {_STEPS}",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *ends,
            f"  store {total} %e{count - 1}, ptr %result, align 4",
            "  ret void",
            "}",
        ]
    )
