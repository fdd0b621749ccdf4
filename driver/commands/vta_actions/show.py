"""`tilefarm vta show`: a program's instructions as text, and what they add up to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefarm.plural import plural

if TYPE_CHECKING:
    from device_server.vta.programs.instructions import Instruction, InstructionSet
    from device_server.vta.programs.program import Program
    from device_server.vta.programs.stream_statistics import StreamStatistics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("program", type=Path, metavar="PROGRAM", help="a program file")
    option("--uops", action="store_true", help="the micro-ops of every GEMM and ALU instruction")
    option("--summary", action="store_true", help="only what they add up to")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = (
        "example:\n  tilefarm vta show c2/conv.npz --uops\n"
        "Columns: number, module, instruction, operands, tokens taken and given. Addresses, sizes\n"
        "and strides count elements; pad is top,bottom,left,right; loops and the factors of dst,\n"
        "src and wgt are outer,inner."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from device_server.vta.programs.disassembly import disassemble
    from device_server.vta.programs.instructions import InstructionSet
    from device_server.vta.programs.program import read_program
    from device_server.vta.programs.stream_statistics import statistics

    program = read_program(args.program)
    isa = InstructionSet(program.target.geometry)
    records = disassemble(program.instructions, isa)
    counted = statistics(records, program.target.geometry)
    lines = [] if args.summary else list(listing(program, records, isa, uops=args.uops))
    if args.json:
        document: dict[str, Any] = {
            "program": program.name,
            "statistics": {"instructions": counted.instructions, **asdict(counted)},
            "lines": lines,
        }
        print(json.dumps(document))
        return 0
    for line in (*lines, *[""][: len(lines)], *summary(program, counted)):
        print(line)
    return 0


def listing(
    program: Program, records: tuple[Instruction, ...], isa: InstructionSet, *, uops: bool
) -> Iterator[str]:
    """One line an instruction; with `uops`, its micro-ops on lines of their own below it."""
    from device_server.vta.programs.disassembly import line, uops_of

    depth = program.target.geometry.uop_depth
    listed = dict(uops_of(records, program.image(), depth)) if uops else {}
    for number, record in enumerate(records):
        yield line(number, record)
        begin = getattr(record, "uop_begin", 0)
        for index, word in enumerate(listed.get(number, ()), begin):
            dst, src, wgt = isa.decode_uop(word)
            yield f"{'':15}uop {index}: dst={dst} src={src} wgt={wgt}"


def summary(program: Program, counted: StreamStatistics) -> Iterator[str]:
    """What the instructions add up to, and what the file promises."""
    kinds = ("load", "gemm", "alu", "store", "nop", "finish", "unknown")
    parts = [f"{getattr(counted, kind)} {kind}" for kind in kinds if getattr(counted, kind)]
    yield f"program       {program.name or 'unnamed'}"
    yield f"instructions  {counted.instructions}: {', '.join(parts)}"
    yield (
        f"micro-ops     {counted.gemm_uops} gemm, {counted.reset_uops} reset,"
        f" {counted.alu_uops} alu"
    )
    loaded = [f"{nbytes} {memory}" for memory, nbytes in counted.load_nbytes.items()]
    yield f"bytes loaded  {sum(counted.load_nbytes.values())}: {', '.join(loaded) or 'none'}"
    yield f"bytes stored  {counted.store_nbytes}"
    yield f"memory image  {plural(program.dram_nbytes, 'byte')}"
    if program.cycles is not None:
        yield f"promises      {plural(program.cycles, 'cycle')}"
