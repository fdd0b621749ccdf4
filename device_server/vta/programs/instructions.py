"""The 128-bit instructions and 32-bit micro-ops as records, to bits and back.

Numbers, fields and their bits are those of the table `tilefarm.vta_isa`; records have its names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from tilefarm.errors import DataError
from tilefarm.target import VtaConfig
from tilefarm.vta_isa import (
    FORMATS,
    HEAD,
    MODULES,
    TOKENS,
    UOP,
    WORD_BITS,
    Opcode,
    Placed,
    executed_by,
    index_bits,
    instruction_layout,
    layout,
)

NEIGHBOURS: Final = {
    module: (before, after)
    for before, module, after in zip(
        ("nobody", *MODULES), MODULES, (*MODULES[1:], "nobody"), strict=False
    )
}
"""Whose tokens "prev" and "next" mean, by module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The four dependence flags: prev and next are the neighbouring modules."""

    pop_prev: int = 0
    pop_next: int = 0
    push_prev: int = 0
    push_next: int = 0


NO_TOKENS: Final = Tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """LOAD or STORE. Addresses, sizes, stride and pads count elements of the memory."""

    store: bool
    tokens: Tokens = NO_TOKENS
    memory: int = 0
    sram_base: int = 0
    dram_base: int = 0
    y_size: int = 0
    x_size: int = 0
    x_stride: int = 0
    y_pad_0: int = 0
    y_pad_1: int = 0
    x_pad_0: int = 0
    x_pad_1: int = 0

    @property
    def is_nop(self) -> bool:
        """Whether it moves nothing and only handles tokens."""
        return self.x_size == 0 or self.y_size == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """Two nested loops around the micro-ops [uop_begin, uop_end) of the matrix unit."""

    tokens: Tokens = NO_TOKENS
    reset: int = 0
    uop_begin: int = 0
    uop_end: int = 0
    iter_out: int = 0
    iter_in: int = 0
    dst_out: int = 0
    dst_in: int = 0
    src_out: int = 0
    src_in: int = 0
    wgt_out: int = 0
    wgt_in: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alu:
    """As Gemm, of the vector unit; `reset` means nothing."""

    tokens: Tokens = NO_TOKENS
    reset: int = 0
    uop_begin: int = 0
    uop_end: int = 0
    iter_out: int = 0
    iter_in: int = 0
    dst_out: int = 0
    dst_in: int = 0
    src_out: int = 0
    src_in: int = 0
    alu_opcode: int = 0
    use_imm: int = 0
    imm: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of a stream."""

    tokens: Tokens = NO_TOKENS


@dataclass(frozen=True, slots=True)
class Unknown:
    """An opcode that VTA does not have: its bits."""

    low: int
    high: int


Instruction: TypeAlias = Transfer | Gemm | Alu | Finish | Unknown


class Uop(NamedTuple):
    """One micro-op's indices; `wgt` means nothing to the ALU."""

    dst: int
    src: int
    wgt: int


_OPCODE_BITS: Final = HEAD[0].width.bits
_TOKENS: Final = tuple(layout(TOKENS, _OPCODE_BITS, {}))


class InstructionSet:
    """The encoding of one accelerator geometry. The config is a possible one."""

    def __init__(self, vta: VtaConfig) -> None:
        bits = index_bits(vta)
        self._layouts = {
            opcode: instruction_layout(form, bits)[len(HEAD) :]
            for form in FORMATS
            for opcode in form.opcodes
        }
        self._uop = tuple(layout(UOP, 0, bits))

    def decode(self, low: int, high: int) -> Instruction:
        """The record of one instruction; bits that no field has are dropped."""
        number = low & ((1 << _OPCODE_BITS) - 1)
        if number not in self._layouts:
            return Unknown(low, high)
        opcode, word = Opcode(number), low | high << WORD_BITS
        tokens = Tokens(**_taken(word, _TOKENS))
        values = _taken(word, self._layouts[opcode])
        match opcode:
            case Opcode.GEMM:
                return Gemm(tokens=tokens, **values)
            case Opcode.FINISH:
                return Finish(tokens=tokens)
            case Opcode.ALU:
                return Alu(tokens=tokens, **values)
            case Opcode.LOAD | Opcode.STORE:
                return Transfer(store=opcode is Opcode.STORE, tokens=tokens, **values)

    def encode(self, instruction: Instruction) -> tuple[int, int]:
        """The low and the high word of a record.

        Raises:
            DataError: a value does not fit its field; the message names it.
        """
        if isinstance(instruction, Unknown):
            return instruction.low, instruction.high
        opcode = opcode_of(instruction)
        word = opcode | _put(_TOKENS, instruction.tokens) | _put(self._layouts[opcode], instruction)
        return word & ((1 << WORD_BITS) - 1), word >> WORD_BITS

    def decode_uop(self, word: int) -> Uop:
        """The indices of one micro-op."""
        return Uop(**_taken(word, self._uop))


def opcode_of(instruction: Transfer | Gemm | Alu | Finish) -> Opcode:
    """Its first field."""
    match instruction:
        case Transfer(store=store):
            return Opcode.STORE if store else Opcode.LOAD
        case Gemm():
            return Opcode.GEMM
        case Alu():
            return Opcode.ALU
        case Finish():
            return Opcode.FINISH


def module_of(instruction: Instruction) -> str:
    """Where fetch sends it: "load", "compute" or "store"; what is unknown goes to compute."""
    if not isinstance(instruction, Transfer):
        return "compute"
    return executed_by(opcode_of(instruction), instruction.memory)


def _taken(word: int, places: Iterable[Placed]) -> dict[str, int]:
    values = {}
    for name, bit, width, signed in places:
        value = word >> bit & ((1 << width) - 1)
        sign = 1 << (width - 1) if signed else 0
        values[name] = (value ^ sign) - sign
    return values


def _put(places: Iterable[Placed], record: object) -> int:
    word = 0
    for name, bit, width, signed in places:
        value: int = getattr(record, name)
        reach = 1 << width
        least = -(reach >> 1) if signed else 0
        if not least <= value < least + reach:
            raise DataError(
                f"{name} = {value} does not fit its {width} bits", f"{least} to {least + reach - 1}"
            )
        word |= (value & (reach - 1)) << bit
    return word
