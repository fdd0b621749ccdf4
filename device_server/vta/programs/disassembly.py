"""Instructions in bits, as records, and as text, one a line.

    number module mnemonic operands tokens
         3 load    load.inp       sram=0 dram=0x40 y=14 x=14 stride=16 pad=1,1,1,1 push=compute
         4 compute gemm           uops=0..9 loops=14x14 dst=14,1 src=16,1 wgt=0,0 pop=load
         5 compute alu.add.imm    uops=9..10 loops=14x14 dst=14,1 src=14,1 imm=64 push=store
         6 store   store.out      sram=0 dram=0x1000 y=1 x=196 stride=196 pop=compute
         7 compute finish

Addresses, sizes and strides count elements of the memory. `pad` is top,bottom,left,right; `loops`
and the factors of dst, src and wgt are outer,inner. `pop` and `push` name the modules whose tokens
are taken before and given after. A transfer of empty rows moves nothing: `nop.load.inp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from tilefarm.errors import DataError
from tilefarm.vta_isa import ALU, FORMATS, TRANSFER, AluOp, Field, Memory, Operand

from device_server.vta.programs.instructions import (
    NEIGHBOURS,
    Alu,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Tokens,
    Transfer,
    Unknown,
    module_of,
    opcode_of,
)
from device_server.vta.programs.program import Bytes


def _words(kind: type[AluOp | Memory], unknown: str, field: Field) -> tuple[str, ...]:
    """The words of all numbers that fit a field; those without a meaning are numbered."""
    known = [each.word for each in kind]
    return (*known, *(f"{unknown}{number}" for number in field.values[len(known) :]))


_ALU_NAMES: Final = _words(AluOp, "op", ALU.field("alu_opcode"))
_MEMORY_NAMES: Final = _words(Memory, "mem", TRANSFER.field("memory"))

UNKNOWN: Final = (
    Operand("low", ("low",), hexadecimal=True),
    Operand("high", ("high",), hexadecimal=True),
)
_OPERANDS: Final = {opcode: form.operands for form in FORMATS for opcode in form.opcodes}


def disassemble(
    instructions: npt.NDArray[np.uint64], isa: InstructionSet
) -> tuple[Instruction, ...]:
    """The records of a stream, uint64[n, 2] with the low word first."""
    return tuple(isa.decode(low, high) for low, high in instructions.tolist())


def assemble(records: Sequence[Instruction], isa: InstructionSet) -> npt.NDArray[np.uint64]:
    """The stream of records; what `disassemble` made comes back but for bits without a meaning.

    Raises:
        DataError: a value does not fit its field; the message names instruction and field.
    """
    words = np.zeros((len(records), 2), np.uint64)
    for number, record in enumerate(records):
        try:
            words[number] = isa.encode(record)
        except DataError as error:
            raise DataError(f"instruction {number}: {error.what}", error.hint) from None
    return words


def line(number: int, instruction: Instruction) -> str:
    """One instruction as one line."""
    module = module_of(instruction)
    parts = [mnemonic(instruction).ljust(14), *_operand_texts(instruction)]
    if not isinstance(instruction, Unknown):
        parts += _token_texts(instruction.tokens, module)
    return f"{number:6} {module:7} {' '.join(filter(None, parts))}".rstrip()


def mnemonic(instruction: Instruction) -> str:
    """The instruction's name, for example `alu.shr.imm`."""
    match instruction:
        case Transfer(store=store, memory=memory):
            verb = "store" if store else "load"
            return f"{'nop.' * instruction.is_nop}{verb}.{_MEMORY_NAMES[memory]}"
        case Gemm(reset=reset):
            return "gemm.reset" if reset else "gemm"
        case Alu(alu_opcode=operation, use_imm=use_imm):
            return f"alu.{_ALU_NAMES[operation]}{'.imm' * use_imm}"
        case Finish():
            return "finish"
        case Unknown():
            return "unknown"


def uops_of(
    records: Sequence[Instruction], image: Bytes, uop_depth: int
) -> Iterator[tuple[int, list[int]]]:
    """(instruction, the words of its micro-ops) of every GEMM and ALU instruction.

    Micro-ops are followed from the image through loads into the micro-op buffer; what was never
    loaded is 0, and what lies outside of the image is not loaded.
    """
    buffer = np.zeros(uop_depth, np.uint32)
    words = image[: image.size // 4 * 4].view(np.uint32)
    for number, record in enumerate(records):
        match record:
            case Transfer(store=False, memory=memory) if memory == Memory.UOP:
                _load_uops(record, words, buffer)
            case Gemm() | Alu():
                yield number, buffer[record.uop_begin : record.uop_end].tolist()


def _load_uops(
    record: Transfer, words: npt.NDArray[np.uint32], buffer: npt.NDArray[np.uint32]
) -> None:
    pitch = record.x_pad_0 + record.x_size + record.x_pad_1
    most = -(-max(0, buffer.size - record.sram_base) // max(1, pitch))
    rows = min(most, record.y_pad_0 + record.y_size + record.y_pad_1)
    tile = np.zeros((rows, pitch), np.uint32)
    for row in range(min(record.y_size, rows - record.y_pad_0)):
        begin = record.dram_base + row * record.x_stride
        found = words[begin : begin + record.x_size]
        tile[record.y_pad_0 + row, record.x_pad_0 : record.x_pad_0 + found.size] = found
    room = buffer[record.sram_base : record.sram_base + tile.size]
    room[:] = tile.reshape(-1)[: room.size]


def _operands(instruction: Instruction) -> tuple[Operand, ...]:
    return UNKNOWN if isinstance(instruction, Unknown) else _OPERANDS[opcode_of(instruction)]


def _operand_texts(instruction: Instruction) -> Iterator[str]:
    moves = not (isinstance(instruction, Transfer) and instruction.is_nop)
    for key, names, separator, hexadecimal, always in _operands(instruction):
        values = [getattr(instruction, name) for name in names]
        if any(values) or (always and moves):
            shown = [hex(value) if hexadecimal else str(value) for value in values]
            yield f"{key}={separator.join(shown)}"


def _token_texts(tokens: Tokens, module: str) -> Iterator[str]:
    for verb in ("pop", "push"):
        flags = (getattr(tokens, f"{verb}_prev"), getattr(tokens, f"{verb}_next"))
        names = [n for n, flag in zip(NEIGHBOURS[module], flags, strict=True) if flag]
        if names:
            yield f"{verb}={','.join(names)}"
