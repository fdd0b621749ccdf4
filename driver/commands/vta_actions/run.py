"""`tilefarm vta run`: a program on the simulator, and where its time went."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilefarm.errors import SettingsError, TargetError
from tilefarm.machine import VTA_COUNTERS
from tilefarm.readable import readable
from tilefarm.system_errors import unwritable

if TYPE_CHECKING:
    from tilefarm.measurement import Counters
    from tilefarm.target import Target

    from device_server.vta.library.library import StreamResult
    from device_server.vta.programs.program import Program

MODELS: Final = ("chisel", "hls", "functional")
STRICTNESSES: Final = ("functional", "chisel", "hls")
EXIT_WRONG: Final = 1
_STALLS: Final = ("token", "queue", "memory")
_MEMORIES: Final = ("inp", "wgt", "acc", "uop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("program", type=Path, metavar="PROGRAM", help="a program file")
    option(
        "--model",
        choices=MODELS,
        help="whose time: VTA's Chisel design, exact, its HLS design, an estimate, or nobody's,"
        " results only (default: the design of the file's target)",
    )
    option(
        "--strictness",
        choices=STRICTNESSES,
        help="whose rules: the functional simulator's, or also a hardware's (default: the HLS"
        " design's where the file's target has it, else the functional simulator's)",
    )
    option("--len-bits", type=int, metavar="N", help="bursts of 2^N beats (default: the file's)")
    option("--timeline", type=Path, metavar="OUT.json", help="Chrome trace of every instruction")
    option("--svg", type=Path, metavar="OUT.svg", help="the same as a picture")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = (
        "example:\n  tilefarm vta run c2/conv.npz --svg c2.svg --timeline c2.json\n"
        "Shows cycles, what the modules waited for, and bytes moved. Open the trace with\n"
        "ui.perfetto.dev; one microsecond is one cycle. Stalled: `token`, waiting for another\n"
        "module; `queue`, for the next instruction; `memory`, for DRAM. Exit codes: 0 done, 1 the\n"
        "program is wrong on the hardware that --strictness names, 2 it cannot be run at all."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from device_server.vta.library.library import Strictness, TimingModel, VtaLibrary
    from device_server.vta.programs.program import read_program
    from driver.program.vta.simulate import simulate

    program = read_program(args.program)
    model = args.model or program.target.board.design
    timed = model != "functional"
    drawn = bool(args.timeline or args.svg)
    if drawn and not timed:
        raise SettingsError("the functional model knows no time", "leave out --timeline and --svg")
    target = _target(program, args.len_bits)
    library = VtaLibrary()
    library.configure(
        target,
        functional_only=not timed,
        strictness=Strictness(args.strictness) if args.strictness else None,
        model=TimingModel(model) if timed else None,
    )
    result = simulate(library, program, args.program, timeline=drawn)
    if drawn:
        _draw(args, program, result)
    comparable = model == target.board.design and target == program.target
    told = _promises(program, result) if comparable else []
    if args.json:
        print(json.dumps(_document(program, result, model, told)))
        return _exit_code(result)
    for line in _lines(program, target, result, model):
        print(line)
    for finding in result.findings:
        where = f"{finding.rule} at instruction {finding.instruction}"
        print(f"{finding.severity:13} {where}: {finding.text}")
    for difference in told:
        print(f"differs       {difference}")
    return _exit_code(result)


def _exit_code(result: StreamResult) -> int:
    return EXIT_WRONG if any(f.severity == "error" for f in result.findings) else 0


def _target(program: Program, len_bits: int | None) -> Target:
    """The program's accelerator, with other bursts if they are asked for."""
    from tilefarm.target import impossibilities

    target = program.target
    if len_bits is None:
        return target
    other = replace(target, timing=replace(target.timing, log_burst_beats=len_bits))
    reasons = impossibilities(other)
    if reasons:
        raise TargetError(
            f"--len-bits {len_bits}: " + "; ".join(reasons), "leave it out for the program's own"
        )
    return other


def _draw(args: argparse.Namespace, program: Program, result: StreamResult) -> None:
    from driver.program.vta.timelines import picture, trace
    from driver.report.summary import KernelTimeline

    name = program.name or readable(args.program.stem)
    timeline = KernelTimeline(
        workload=name, layer=name, cycles=result.counters.cycles, events=result.timeline
    )
    if args.timeline:
        _write(args.timeline, trace(timeline))
    if args.svg:
        _write(args.svg, picture(timeline))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise unwritable(path, error, "name a file in a folder that there is") from None


def _promises(program: Program, result: StreamResult) -> list[str]:
    """Where the run differs from what the file promises, if it promises anything."""
    from driver.program.vta.compare import differences

    if program.cycles is None and program.after is None:
        return []
    return differences(program, result)


def _document(
    program: Program, result: StreamResult, model: str, told: list[str]
) -> dict[str, Any]:
    return {
        "program": program.name,
        "model": model,
        "basis": result.basis.value,
        "counters": {name: result.counters[name] for name in VTA_COUNTERS},
        "findings": [asdict(finding) for finding in result.findings],
        "differences": told,
    }


def _lines(program: Program, target: Target, result: StreamResult, model: str) -> Iterator[str]:
    counters = result.counters
    yield f"program       {program.name or 'unnamed'}"
    if model == "functional":
        yield "model         functional: results only"
    else:
        bursts = f"; bursts of {1 << target.timing.log_burst_beats} beats" * (model == "chisel")
        yield f"model         {model}, {result.basis.value}{bursts}"
        yield f"cycles        {counters.cycles}"
        yield from _modules(counters)
    yield f"instructions  {counters['instructions']}"
    yield f"micro-ops     {counters['gemm_uops']} gemm, {counters['alu_uops']} alu"
    loaded = {memory: counters[f"{memory}_load_nbytes"] for memory in _MEMORIES}
    parts = ", ".join(f"{nbytes} {memory}" for memory, nbytes in loaded.items())
    yield f"bytes loaded  {sum(loaded.values())}: {parts}"
    yield f"bytes stored  {counters['out_store_nbytes']}"


def _modules(counters: Counters) -> Iterator[str]:
    """A row a module: cycles in which it worked, was stalled by a cause, or had nothing to do."""
    yield "".join(f"{word:>13}" for word in ("", "busy", *_STALLS, "idle"))
    for module in ("load", "compute", "store"):
        busy = counters[f"{module}_busy_cycles"]
        stalls = [counters[f"{module}_{cause}_stall_cycles"] for cause in _STALLS]
        row = (busy, *stalls, counters.cycles - busy - sum(stalls))
        yield f"{module:13}" + "".join(f"{cycles:13}" for cycles in row)
