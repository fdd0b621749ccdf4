"""The most products a second: the instruction that makes most, on registers, over and over.

sum0 = dot(sum0, a, b)      as many sums as there are registers but a few, so that no
sum1 = dot(sum1, a, b)      instruction waits for the one before; no memory but for a and b
...                         at the beginning and the sums at the end
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.target import Host

from compile_worker.codegen.dots import INSTRUCTIONS
from compile_worker.codegen.link import shared_object
from compile_worker.codegen.machine import object_code
from compile_worker.isa import isa_of

ENTRY: Final = "peak"

_STEPS: Final = 20_000
_SPARE: Final = 4
"""Registers that are no sums."""

_OPERANDS: Final = {"vpdpbusd": "i8", "sdot": "i8", "usmmla": "i8", "pmaddwd": "i16"}
"""What the instructions multiply, by their names without numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakObject:
    """A shared object whose `ENTRY` has two buffers, operands and sums, and multiplies all along.

    Attributes:
        products: of one call.
        operands_nbytes, sums_nbytes: of the buffers; any operands do.
    """

    code: bytes
    products: int
    operands_nbytes: int
    sums_nbytes: int


def peak_object(host: Host) -> PeakObject | None:
    """Of a processor; None where its best instruction is none that this knows."""
    isa = isa_of(host)
    text = peak_text(host)
    if text is None:
        return None
    sums = isa.registers - _SPARE
    return PeakObject(
        code=shared_object(object_code(text, host, fast_code=True), host),
        products=_STEPS * sums * isa.lanes * isa.depth,
        operands_nbytes=8 * isa.lanes,
        sums_nbytes=4 * isa.lanes,
    )


def peak_text(host: Host) -> str | None:
    """Its LLVM text; None where there is no object."""
    isa = isa_of(host)
    element = _OPERANDS.get((isa.matrix or isa.dot).rstrip("0123456789"))
    return None if element is None else _text(host, element, isa.registers - _SPARE)


def _text(host: Host, element: str, count: int) -> str:
    """LLVM text of the entry: a loop over one instruction for each of `count` sums."""
    isa = isa_of(host)
    instruction = INSTRUCTIONS[isa.matrix or isa.dot]
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
            f"define i32 @{ENTRY}(ptr %buffers, ptr %offsets) {{",
            "entry:",
            "  %operands = load ptr, ptr %buffers",
            "  %slot = getelementptr ptr, ptr %buffers, i64 1",
            "  %result = load ptr, ptr %slot",
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
            "  ret i32 0",
            "}",
        ]
    )
