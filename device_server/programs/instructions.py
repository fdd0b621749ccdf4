"""The 128-bit instructions and 32-bit micro-ops as records, to bits and back.

Source: `hw/include/vta/hw_spec.h` of apache/tvm-vta; fields do not straddle the two 64-bit words.
`device_server/runtime/src/encoding.cc` is the same in the simulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final, NamedTuple, TypeAlias

from tilefarm.errors import DataError
from tilefarm.target import VtaConfig

LOAD, STORE, GEMM, FINISH, ALU = range(5)
MEMORIES: Final = ("uop", "wgt", "inp", "acc", "out", "acc8")
ALU_OPERATIONS: Final = ("min", "max", "add", "shr", "mul")
UOP_MEMORY, WGT_MEMORY, INP_MEMORY, ACC_MEMORY, OUT_MEMORY, ACC8_MEMORY = range(6)

NEIGHBOURS: Final = {
    "load": ("nobody", "compute"),
    "compute": ("load", "store"),
    "store": ("compute", "nobody"),
}
"""Whose tokens "prev" and "next" mean, by module."""

_WORD_BITS: Final = 64
_IMMEDIATE_BITS: Final = 16


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
    sram: int = 0
    dram: int = 0
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
        return self.x_size == 0


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
    """As Gemm, of the vector unit; `operation` indexes ALU_OPERATIONS; `reset` means nothing."""

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
    operation: int = 0
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


class _Field(NamedTuple):
    name: str
    bit: int
    width: int


_TOKEN_FIELDS: Final = tuple(_Field(f.name, 3 + i, 1) for i, f in enumerate(fields(Tokens)))
_TRANSFER_FIELDS: Final = (
    _Field("memory", 7, 3),
    _Field("sram", 10, 16),
    _Field("dram", 26, 32),
    _Field("y_size", 64, 16),
    _Field("x_size", 80, 16),
    _Field("x_stride", 96, 16),
    _Field("y_pad_0", 112, 4),
    _Field("y_pad_1", 116, 4),
    _Field("x_pad_0", 120, 4),
    _Field("x_pad_1", 124, 4),
)


class InstructionSet:
    """The encoding of one accelerator geometry. The config is a possible one."""

    def __init__(self, vta: VtaConfig) -> None:
        uop, acc, inp, wgt = map(
            _log2, (vta.uop_depth, vta.acc_depth, vta.inp_depth, vta.wgt_depth)
        )
        loops = (
            ("reset", 1),
            ("uop_begin", uop),
            ("uop_end", uop + 1),
            ("iter_out", 14),
            ("iter_in", 14),
        )
        low = tuple(_row(7, loops))
        dst = (("dst_out", acc), ("dst_in", acc))
        gemm = (("src_out", inp), ("src_in", inp), ("wgt_out", wgt), ("wgt_in", wgt))
        alu = (("src_out", acc), ("src_in", acc), ("operation", 3), ("use_imm", 1))
        imm = ("imm", _IMMEDIATE_BITS)
        self._gemm = (*low, *_row(_WORD_BITS, (*dst, *gemm)))
        self._alu = (*low, *_row(_WORD_BITS, (*dst, *alu, imm)))
        self._uop = tuple(_row(0, (("dst", acc), ("src", max(acc, inp)), ("wgt", wgt))))

    def decode(self, low: int, high: int) -> Instruction:
        """The record of one instruction; bits that no field has are dropped."""
        word = low | high << _WORD_BITS
        opcode = word & 7
        if opcode > ALU:
            return Unknown(low, high)
        tokens = Tokens(**_taken(word, _TOKEN_FIELDS))
        match opcode:
            case 2:
                return Gemm(tokens=tokens, **_taken(word, self._gemm))
            case 3:
                return Finish(tokens=tokens)
            case 4:
                values = _taken(word, self._alu)
                values["imm"] = _signed(values["imm"])
                return Alu(tokens=tokens, **values)
        store = opcode == STORE
        return Transfer(store=store, tokens=tokens, **_taken(word, _TRANSFER_FIELDS))

    def encode(self, instruction: Instruction) -> tuple[int, int]:
        """The low and the high word of a record.

        Raises:
            DataError: a value does not fit its field; the message names it.
        """
        match instruction:
            case Unknown(low=low, high=high):
                return low, high
            case Transfer(store=store):
                word = (STORE if store else LOAD) | _put(_TRANSFER_FIELDS, instruction)
            case Gemm():
                word = GEMM | _put(self._gemm, instruction)
            case Alu():
                word = ALU | _put(self._alu, instruction)
            case Finish():
                word = FINISH
        word |= _put(_TOKEN_FIELDS, instruction.tokens)
        return word & ((1 << _WORD_BITS) - 1), word >> _WORD_BITS

    def decode_uop(self, word: int) -> Uop:
        """The indices of one micro-op."""
        return Uop(**_taken(word, self._uop))

    def encode_uop(self, uop: Uop) -> int:
        """The word of a micro-op; raises as `encode` does."""
        return _put(self._uop, uop)


def module_of(instruction: Instruction) -> str:
    """Where fetch sends it: "load", "compute" or "store"; what is unknown goes to compute."""
    if not isinstance(instruction, Transfer):
        return "compute"
    if instruction.store:
        return "store"
    return "load" if instruction.memory in (WGT_MEMORY, INP_MEMORY) else "compute"


def element_nbytes(vta: VtaConfig) -> tuple[int, ...]:
    """Bytes of one element in DRAM, by number of the memory."""
    acc8 = vta.batch * vta.block
    return (vta.uop_nbytes, vta.wgt_nbytes, vta.inp_nbytes, vta.acc_nbytes, vta.out_nbytes, acc8)


def _row(bit: int, named: tuple[tuple[str, int], ...]) -> Iterator[_Field]:
    """Fields one after the other; those of no width are not there."""
    for name, width in named:
        yield _Field(name, bit, width)
        bit += width


def _taken(word: int, layout: tuple[_Field, ...]) -> dict[str, int]:
    return {name: word >> bit & ((1 << width) - 1) for name, bit, width in layout}


def _put(layout: tuple[_Field, ...], record: object) -> int:
    word = 0
    for name, bit, width in layout:
        value: int = getattr(record, name)
        reach = 1 << width
        if name == "imm":
            low, high = -(reach >> 1), reach >> 1
        else:
            low, high = 0, reach
        if not low <= value < high:
            raise DataError(
                f"{name} = {value} does not fit its {width} bits", f"{low} to {high - 1}"
            )
        word |= (value & (reach - 1)) << bit
    return word


def _signed(value: int) -> int:
    sign = 1 << (_IMMEDIATE_BITS - 1)
    return (value ^ sign) - sign


def _log2(depth: int) -> int:
    return depth.bit_length() - 1
