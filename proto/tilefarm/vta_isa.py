"""VTA's instruction set in one table: opcodes, memories, operations, and the bits of every field.

Whatever encodes, decodes, limits or prints instructions takes its numbers from here: the tools in
Python and the compiler read the table; `device_server/vta/runtime/generate.py` makes the C++ header
and the page INSTRUCTIONS.md of it, and a test proves that both are fresh.

Source: hw/include/vta/hw_spec.h of apache/tvm-vta, whose bit-fields begin at bit 0 of each of the
two 64-bit words and never straddle them; MUL and ACC8 as in its intelfocl design.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, Self

from tilefarm.machine import VtaConfig

WORD_BITS: Final = 64
INSTRUCTION_BITS: Final = 2 * WORD_BITS
UOP_BITS: Final = 32


class _Meaningful(IntEnum):
    """Numbers of the hardware, each with what it stands for."""

    meaning: str

    def __new__(cls, number: int, meaning: str = "") -> Self:
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        return member

    @property
    def word(self) -> str:
        """Its name as it is written in text."""
        return self.name.lower()


class Opcode(_Meaningful):
    """The first field of every instruction."""

    LOAD = 0, "fills a part of an on-chip memory from DRAM, with zeros around it"
    STORE = 1, "writes results to DRAM"
    GEMM = 2, "acc[dst] += inp[src] . wgt[wgt] transposed, for every executed micro-op"
    FINISH = 3, "ends the stream"
    ALU = 4, "acc[dst] = operation(acc[dst], operand), for every executed micro-op"


class Memory(_Meaningful):
    """What a LOAD fills or a STORE reads, and so what its addresses count."""

    UOP = 0, "micro-ops of 32 bits"
    WGT = 1, "tiles of weights, block x block of int8"
    INP = 2, "tiles of inputs, batch x block of int8"
    ACC = 3, "tiles of accumulators, batch x block of int32"
    OUT = 4, "the low 8 bits of accumulators; only STORE names it"
    ACC8 = 5, "accumulators from int8 in DRAM; the Chisel and HLS designs lack it"


class Element(NamedTuple):
    """What an address counts: values of so many bytes, in as many rows and lanes."""

    nbytes: int
    rows: str = ""
    lanes: str = ""


ELEMENTS: Final[Mapping[Memory, Element]] = {
    Memory.UOP: Element(UOP_BITS // 8),
    Memory.WGT: Element(1, "block", "block"),
    Memory.INP: Element(1, "batch", "block"),
    Memory.ACC: Element(4, "batch", "block"),
    Memory.OUT: Element(1, "batch", "block"),
    Memory.ACC8: Element(1, "batch", "block"),
}
"""The elements of each memory as they lie in DRAM."""


class AluOp(_Meaningful):
    """What the ALU computes of two operands."""

    MIN = 0, "the smaller one, signed"
    MAX = 1, "the larger one, signed"
    ADD = 2, "the sum, wrapped to 32 bits"
    SHR = 3, "a shift to the right, rounding down; to the left by a negative operand"
    MUL = 4, "the product, wrapped to 32 bits; the Chisel and HLS designs lack it"


class UopMode(_Meaningful):
    """Which unit a micro-op is recorded for, in calls of the runtime."""

    GEMM = 0, "the matrix unit"
    ALU = 1, "the vector unit"


MODULES: Final = ("load", "compute", "store")
"""What executes instructions; "prev" and "next" in tokens are the neighbours in this order."""

FIRST_STAGE: Final = 1
"""VTADepPush and VTADepPop of the runtime number the modules from here on."""

INPUTS: Final = (Memory.WGT, Memory.INP)
"""What the load module fills; the compute module loads the rest itself."""


def executed_by(opcode: int, memory: int = 0) -> str:
    """The module that executes an instruction; `memory` counts for a LOAD alone."""
    if opcode == Opcode.STORE:
        return "store"
    if opcode == Opcode.LOAD and memory in INPUTS:
        return "load"
    return "compute"


class Width(NamedTuple):
    """So many bits, and as many more as an index into the largest of some memories has."""

    bits: int = 0
    index_of: tuple[Memory, ...] = ()

    def of(self, index_bits: Mapping[Memory, int]) -> int:
        """Bits, where so many address each memory."""
        return self.bits + max((index_bits[memory] for memory in self.index_of), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Consecutive bits: `unit` is what they count, "" where they are a number or a flag."""

    name: str
    width: Width
    meaning: str
    unit: str = ""
    signed: bool = False

    @property
    def values(self) -> range:
        """What fits, where the width is the same for all geometries."""
        reach = 1 << self.width.bits
        return range(-(reach >> 1), reach >> 1) if self.signed else range(reach)


class Operand(NamedTuple):
    """How text has some fields: `key=` and their values. Zeros are left out unless `always`."""

    key: str
    fields: tuple[str, ...]
    separator: str = ","
    hexadecimal: bool = False
    always: bool = True


@dataclass(frozen=True, slots=True)
class Format:
    """The fields of an instruction's low and high word, from bit 0 on, and its operands in text."""

    opcodes: tuple[Opcode, ...]
    low: tuple[Field, ...]
    high: tuple[Field, ...]
    operands: tuple[Operand, ...]

    def field(self, name: str) -> Field:
        """The field of that name; there is one."""
        return next(field for field in (*self.low, *self.high) if field.name == name)


class Placed(NamedTuple):
    """A field's name and bits in one geometry; from bit 64 on they are the high word's."""

    name: str
    bit: int
    width: int
    signed: bool


def _of(memory: Memory) -> Width:
    return Width(0, (memory,))


def _flag(name: str, meaning: str) -> Field:
    return Field(name=name, width=Width(1), meaning=meaning)


def _steps(name: str, memory: Memory) -> Iterator[Field]:
    """By how much an index grows from one iteration to the next."""
    for loop, word in (("out", "outer"), ("in", "inner")):
        yield Field(
            name=f"{name}_{loop}",
            width=_of(memory),
            meaning=f"step of the {name} index in the {word} loop",
            unit=f"{memory.word} elements",
        )


TOKENS: Final = (
    _flag("pop_prev", "waits for a token of the module before"),
    _flag("pop_next", "waits for a token of the module after"),
    _flag("push_prev", "gives the module before a token, when it is done"),
    _flag("push_next", "gives the module after a token, when it is done"),
)

HEAD: Final = (Field(name="opcode", width=Width(3), meaning="Opcode"), *TOKENS)

TRANSFER: Final = Format(
    opcodes=(Opcode.LOAD, Opcode.STORE),
    low=(
        *HEAD,
        Field(name="memory", width=Width(3), meaning="Memory; OUT in a STORE"),
        Field(name="sram_base", width=Width(16), meaning="first on-chip element", unit="elements"),
        Field(name="dram_base", width=Width(32), meaning="first element in DRAM", unit="elements"),
    ),
    high=(
        Field(name="y_size", width=Width(16), meaning="rows", unit="rows"),
        Field(
            name="x_size", width=Width(16), meaning="elements of a row; 0 is a NOP", unit="elements"
        ),
        Field(
            name="x_stride",
            width=Width(16),
            meaning="from one row to the next in DRAM",
            unit="elements",
        ),
        Field(name="y_pad_0", width=Width(4), meaning="zeros above", unit="rows"),
        Field(name="y_pad_1", width=Width(4), meaning="zeros below", unit="rows"),
        Field(name="x_pad_0", width=Width(4), meaning="zeros to the left", unit="elements"),
        Field(name="x_pad_1", width=Width(4), meaning="zeros to the right", unit="elements"),
    ),
    operands=(
        Operand("sram", ("sram_base",)),
        Operand("dram", ("dram_base",), hexadecimal=True),
        Operand("y", ("y_size",)),
        Operand("x", ("x_size",)),
        Operand("stride", ("x_stride",)),
        Operand("pad", ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"), always=False),
    ),
)

_LOOPS: Final = (
    *HEAD,
    _flag("reset", "GEMM: acc[dst] = 0 instead of a product; the ALU ignores it"),
    Field(name="uop_begin", width=_of(Memory.UOP), meaning="first micro-op", unit="micro-ops"),
    Field(
        name="uop_end",
        width=Width(1, (Memory.UOP,)),
        meaning="micro-op after the last",
        unit="micro-ops",
    ),
    Field(name="iter_out", width=Width(14), meaning="extent of the outer loop", unit="iterations"),
    Field(name="iter_in", width=Width(14), meaning="extent of the inner loop", unit="iterations"),
)
_LOOP_OPERANDS: Final = (
    Operand("uops", ("uop_begin", "uop_end"), ".."),
    Operand("loops", ("iter_out", "iter_in"), "x"),
    Operand("dst", ("dst_out", "dst_in")),
    Operand("src", ("src_out", "src_in")),
)

GEMM: Final = Format(
    opcodes=(Opcode.GEMM,),
    low=_LOOPS,
    high=(
        *_steps("dst", Memory.ACC),
        *_steps("src", Memory.INP),
        *_steps("wgt", Memory.WGT),
    ),
    operands=(*_LOOP_OPERANDS, Operand("wgt", ("wgt_out", "wgt_in"))),
)

ALU: Final = Format(
    opcodes=(Opcode.ALU,),
    low=_LOOPS,
    high=(
        *_steps("dst", Memory.ACC),
        *_steps("src", Memory.ACC),
        Field(name="alu_opcode", width=Width(3), meaning="AluOp"),
        _flag("use_imm", "the operand is `imm`, not acc[src]"),
        Field(name="imm", width=Width(16), meaning="the operand of all lanes", signed=True),
    ),
    operands=(
        *_LOOP_OPERANDS,
        Operand("imm", ("imm",), always=False),
        Operand("reset", ("reset",), always=False),
    ),
)

FINISH: Final = Format(opcodes=(Opcode.FINISH,), low=HEAD, high=(), operands=())

FORMATS: Final = (TRANSFER, GEMM, FINISH, ALU)

UOP: Final = (
    Field(name="dst", width=_of(Memory.ACC), meaning="accumulator", unit="acc elements"),
    Field(
        name="src",
        width=Width(0, (Memory.ACC, Memory.INP)),
        meaning="input of a GEMM, accumulator of an ALU operation",
        unit="elements",
    ),
    Field(name="wgt", width=_of(Memory.WGT), meaning="weights of a GEMM", unit="wgt elements"),
)
"""A micro-op's fields from bit 0 on: indices before the steps of the loops are added."""


def element_nbytes(vta: VtaConfig) -> tuple[int, ...]:
    """Bytes of one element in DRAM, by number of the memory."""
    of = {"": 1, "batch": vta.batch, "block": vta.block}
    return tuple(each.nbytes * of[each.rows] * of[each.lanes] for each in ELEMENTS.values())


def index_bits(vta: VtaConfig) -> Mapping[Memory, int]:
    """How many bits address the elements of each memory that instructions index."""
    depths = {
        Memory.UOP: vta.uop_depth,
        Memory.WGT: vta.wgt_depth,
        Memory.INP: vta.inp_depth,
        Memory.ACC: vta.acc_depth,
    }
    return {memory: depth.bit_length() - 1 for memory, depth in depths.items()}


def width_of(fields: Sequence[Field], bits: Mapping[Memory, int]) -> int:
    """Bits that fields take together."""
    return sum(field.width.of(bits) for field in fields)


def instruction_layout(form: Format, bits: Mapping[Memory, int]) -> tuple[Placed, ...]:
    """Where every field of a format lies, opcode and tokens included."""
    return (*layout(form.low, 0, bits), *layout(form.high, WORD_BITS, bits))


def layout(fields: Sequence[Field], bit: int, bits: Mapping[Memory, int]) -> Iterator[Placed]:
    """Where fields lie that follow one another from a bit on."""
    for field in fields:
        width = field.width.of(bits)
        yield Placed(field.name, bit, width, field.signed)
        bit += width
