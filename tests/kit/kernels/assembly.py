"""VTA instructions from the text that `disassembly.line` writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from tilefarm.vta_isa import ALU, FORMATS, TRANSFER

from device_server.vta.programs.disassembly import UNKNOWN, mnemonic
from device_server.vta.programs.instructions import (
    NEIGHBOURS,
    Alu,
    Finish,
    Gemm,
    Instruction,
    Tokens,
    Transfer,
    Unknown,
    opcode_of,
)


def _kinds() -> Iterator[Instruction]:
    """One instruction of every mnemonic; transfers of nothing have others."""
    yield from (Gemm(), Gemm(reset=1), Finish(), Unknown(0, 0))
    for number in ALU.field("alu_opcode").values:
        yield from (Alu(alu_opcode=number, use_imm=use_imm) for use_imm in (0, 1))
    for memory in TRANSFER.field("memory").values:
        for store in (False, True):
            yield Transfer(store=store, memory=memory)
            yield Transfer(store=store, memory=memory, y_size=1, x_size=1)


_KINDS: Final = {mnemonic(each): each for each in _kinds()}
_OPERANDS: Final = {opcode: form.operands for form in FORMATS for opcode in form.opcodes}


def parse(text: str) -> tuple[Instruction, ...]:
    """The instructions of lines; empty ones do not count, nor do the numbers in front."""
    return tuple(parse_line(each) for each in text.splitlines() if each.strip())


def parse_line(text: str) -> Instruction:
    """The instruction of a line."""
    _, module, name, *words = text.split()
    given = dict(word.split("=", 1) for word in words)
    flags = {}
    for verb in ("pop", "push"):
        named = given.pop(verb, "").split(",")
        for side, neighbour in zip(("prev", "next"), NEIGHBOURS[module], strict=True):
            flags[f"{verb}_{side}"] = int(neighbour in named)
    kind = _KINDS[name]
    values: dict[str, Any] = {}
    for operand in UNKNOWN if isinstance(kind, Unknown) else _OPERANDS[opcode_of(kind)]:
        if numbers := given.pop(operand.key, ""):
            parts = [int(each, 0) for each in numbers.split(operand.separator)]
            values |= dict(zip(operand.fields, parts, strict=True))
    assert not given, f"{text}: no such operands: {given}"
    if isinstance(kind, Unknown):
        return replace(kind, **values)
    return replace(kind, tokens=Tokens(**flags), **values)
