"""What a run answered against what its program file promises."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from device_server.vta.library.library import StreamResult
from device_server.vta.programs.disassembly import disassemble, line
from device_server.vta.programs.instructions import InstructionSet
from device_server.vta.programs.program import Bytes, Program
from device_server.vta.programs.stream_statistics import statistics


def differences(program: Program, result: StreamResult) -> list[str]:
    """Every promise that was not kept, in words; empty if the run agrees with the file.

    A file that promises neither cycles nor memory is a difference too: nothing was checked.
    """
    if program.cycles is None and program.after is None:
        return ["the file promises neither cycles nor memory"]
    found = [*_cycles(program, result), *_writes(program)]
    expected = program.expected_image()
    return found if expected is None else [*found, *_memory(expected, result.dram)]


def _cycles(program: Program, result: StreamResult) -> Iterator[str]:
    cycles = result.counters.cycles
    if program.cycles is not None and cycles != program.cycles:
        yield f"cycles {cycles}, expected {program.cycles}{_first_late(program, result)}"


def _first_late(program: Program, result: StreamResult) -> str:
    """Where time first went another way, if file and run both have a timeline."""
    spans = program.spans
    if spans is None or result.spans is None:
        return ""
    different = (spans != result.spans).any(axis=1)
    rows = np.flatnonzero(different)
    if not rows.size:
        return ""
    first = min(rows.tolist(), key=lambda row: int(spans[row, 0]))
    record = disassemble(
        program.instructions[first : first + 1], InstructionSet(program.target.geometry)
    )[0]
    begin, end = result.spans[first]
    wanted_begin, wanted_end = spans[first]
    return (
        f" (first at instruction {' '.join(line(first, record).split()[:3])}:"
        f" {begin}..{end}, expected {wanted_begin}..{wanted_end})"
    )


def _writes(program: Program) -> Iterator[str]:
    if program.accumulator_writes is None:
        return
    vta = program.target.geometry
    counted = statistics(disassemble(program.instructions, InstructionSet(vta)), vta)
    writes = counted.gemm_uops + counted.reset_uops + counted.alu_uops
    if writes != program.accumulator_writes:
        yield f"accumulator writes {writes}, expected {program.accumulator_writes}"


def _memory(expected: Bytes, found: Bytes) -> Iterator[str]:
    wrong = np.flatnonzero(expected != found)
    if wrong.size:
        at = int(wrong[0])
        bytes_differ = "byte differs" if wrong.size == 1 else "bytes differ"
        yield (
            f"{wrong.size} DRAM {bytes_differ}, first at {at:#x}:"
            f" {found[at]}, expected {expected[at]}"
        )
