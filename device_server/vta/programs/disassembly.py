"""Instructions as text, one a line, and that text read back.

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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

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

_HINT: Final = "`tilefarm vta show` prints instructions as they are written"
_UNKNOWN: Final = (
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


def parse_line(text: str) -> Instruction:
    """The record of a line that `line` wrote; the number in front is not looked at.

    Raises:
        DataError: the line is not one of ours; says what is wrong.
    """
    words = text.split()
    if len(words) < 3:
        raise DataError(f"not an instruction: {text.strip()!r}", _HINT)
    _, module, name, *operands = words
    record = _record(name, dict(_split(word) for word in operands))
    if module_of(record) != module:
        raise DataError(f"{name} does not run on {module!r}", _HINT)
    return record


def parse(text: str) -> tuple[Instruction, ...]:
    """The records of lines; empty ones do not count. Raises as `parse_line` does."""
    return tuple(parse_line(each) for each in text.splitlines() if each.strip())


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
    return _UNKNOWN if isinstance(instruction, Unknown) else _OPERANDS[opcode_of(instruction)]


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


def _record(name: str, operands: Mapping[str, str]) -> Instruction:
    """The record of a mnemonic and its operands."""
    head, *rest = name.removeprefix("nop.").split(".")
    given = dict(operands)
    popped, pushed = given.pop("pop", ""), given.pop("push", "")
    match head, rest:
        case (("load" | "store"), [memory]) if memory in _MEMORY_NAMES:
            kind: type[Any] = Transfer
            fixed = {"store": head == "store", "memory": _MEMORY_NAMES.index(memory)}
        case "gemm", [] | ["reset"]:
            kind, fixed = Gemm, {"reset": len(rest)}
        case "alu", [operation, *imm] if operation in _ALU_NAMES and imm in ([], ["imm"]):
            kind, fixed = Alu, {"alu_opcode": _ALU_NAMES.index(operation), "use_imm": len(imm)}
        case "finish", []:
            kind, fixed = Finish, {}
        case "unknown", []:
            return Unknown(**_values(_UNKNOWN, given))
        case _:
            raise DataError(f"no such instruction: {name!r}", _HINT)
    bare = kind(**fixed)
    tokens = _tokens(popped, pushed, module_of(bare))
    made: Instruction = kind(**fixed, **_values(_operands(bare), given), tokens=tokens)
    if mnemonic(made) != name:
        raise DataError(f"{name} with these operands is {mnemonic(made)}", _HINT)
    return made


def _values(operands: tuple[Operand, ...], given: Mapping[str, str]) -> dict[str, int]:
    known = {operand.key: operand for operand in operands}
    values: dict[str, int] = {}
    for key, text in given.items():
        if key not in known:
            raise DataError(f"no such operand: {key!r}", _HINT)
        values |= _numbers(known[key], text)
    return values


def _numbers(operand: Operand, text: str) -> dict[str, int]:
    parts = text.split(operand.separator)
    if len(parts) != len(operand.fields):
        raise DataError(f"{operand.key}={text}: {len(operand.fields)} numbers are needed", _HINT)
    try:
        return {name: int(part, 0) for name, part in zip(operand.fields, parts, strict=True)}
    except ValueError:
        raise DataError(f"{operand.key}={text}: not a number", _HINT) from None


def _tokens(popped: str, pushed: str, module: str) -> Tokens:
    flags = {}
    for verb, text in (("pop", popped), ("push", pushed)):
        names = text.split(",") if text else []
        for name in names:
            if name not in NEIGHBOURS[module]:
                raise DataError(f"{verb}={text}: {name!r} is no neighbour of {module}", _HINT)
        for side, neighbour in zip(("prev", "next"), NEIGHBOURS[module], strict=True):
            flags[f"{verb}_{side}"] = int(neighbour in names)
    return Tokens(**flags)


def _split(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise DataError(f"not an operand: {word!r}", _HINT)
    return key, value
