"""Entries of a table of 256 bytes for 64 indices at once, where a processor has the instruction.

vpermi2b takes 64 of 128 bytes by the low seven bits of each index. Two of them see the whole table,
and the upper bit of an index says which one is right.
"""

from __future__ import annotations

from typing import Final

from compile_worker.codegen.interleave import shuffled
from compile_worker.codegen.text import FunctionText
from compile_worker.passes.byte_tables import ENTRIES

INDICES: Final = 64
"""Of one instruction."""

_VECTOR: Final = f"<{INDICES} x i8>"


def looked_up(text: FunctionText, table: str, indices: str, lanes: int, *, signed: bool) -> str:
    """The entries of a table at an address; an index that is signed begins in its middle."""
    if lanes < INDICES:
        order = [*range(lanes), *[None] * (INDICES - lanes)]
        indices = shuffled(text, indices, "poison", order, lanes, "i8")
    first, second, third, fourth = (_loaded(text, table, at) for at in range(0, ENTRIES, INDICES))
    lower = _permuted(text, first, second, indices)
    upper = _permuted(text, third, fourth, indices)
    if signed:
        lower, upper = upper, lower
    is_upper = text.op(f"icmp slt {_VECTOR} {indices}, zeroinitializer")
    found = text.op(f"select <{INDICES} x i1> {is_upper}, {_VECTOR} {upper}, {_VECTOR} {lower}")
    if lanes < INDICES:
        return shuffled(text, found, "poison", range(lanes), INDICES, "i8")
    return found


def _loaded(text: FunctionText, table: str, at: int) -> str:
    part = text.op(f"getelementptr i8, ptr {table}, i64 {at}")
    return text.op(f"load {_VECTOR}, ptr {part}, align 1")


def _permuted(text: FunctionText, first: str, second: str, indices: str) -> str:
    return text.op(
        f"call {_VECTOR} @llvm.x86.avx512.vpermi2var.qi.512"
        f"({_VECTOR} {first}, {_VECTOR} {indices}, {_VECTOR} {second})"
    )
