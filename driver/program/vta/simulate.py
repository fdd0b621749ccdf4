"""One program on the simulator, with errors that name the file and the instruction."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tilefarm.errors import DataError

from device_server.vta.library.library import StreamResult, VtaError, VtaLibrary
from device_server.vta.programs.disassembly import disassemble
from device_server.vta.programs.instructions import Instruction, InstructionSet, Unknown
from device_server.vta.programs.program import Program
from device_server.vta.programs.stream_statistics import unbalanced

_HINT: Final = "`tilefarm vta show` prints its instructions"


def simulate(
    library: VtaLibrary, program: Program, path: Path, *, timeline: bool = False
) -> StreamResult:
    """Run a program on the configured library.

    Raises:
        DataError: an instruction cannot be run, or they wait for one another; says which.
    """
    records = disassemble(program.instructions, InstructionSet(program.target.geometry))
    _refuse(records, path)
    try:
        result = library.run_stream(program.instructions, program.image(), timeline=timeline)
    except VtaError as error:
        raise DataError(f"{path}: {error.what}", error.hint or _HINT) from None
    _refuse_leftovers(records, path)
    return result


def _refuse(records: tuple[Instruction, ...], path: Path) -> None:
    for number, record in enumerate(records):
        if isinstance(record, Unknown):
            raise DataError(f"{path}: instruction {number}: unknown opcode {record.low & 7}", _HINT)


def _refuse_leftovers(records: tuple[Instruction, ...], path: Path) -> None:
    for queue, (tokens, number) in unbalanced(records).items():
        if tokens > 0:
            raise DataError(
                f"{path}: instruction {number}: nobody takes {tokens} of the tokens {queue}",
                _HINT,
            )
