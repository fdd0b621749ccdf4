"""`tilefarm vta run`: a program on the simulator, and where its time went."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilefarm.errors import OutputError, SettingsError, TargetError

if TYPE_CHECKING:
    from tilefarm.target import Target

    from device_server.library import StreamResult
    from device_server.program import Program

MODELS: Final = ("chisel", "functional")
_MEMORIES: Final = ("inp", "wgt", "acc", "uop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("program", type=Path, metavar="PROGRAM", help="a program file")
    option(
        "--model",
        choices=MODELS,
        default="chisel",
        help="whose time: VTA's Chisel design, exact (the default); or nobody's, results only",
    )
    option("--len-bits", type=int, metavar="N", help="bursts of 2^N beats (default: the file's)")
    option("--timeline", type=Path, metavar="OUT.json", help="Chrome trace of every instruction")
    option("--svg", type=Path, metavar="OUT.svg", help="the same as a picture")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = (
        "example:\n  tilefarm vta run c2/conv.npz --svg c2.svg --timeline c2.json\n"
        "Shows cycles, what the modules waited for, and bytes moved. Open the trace with\n"
        "ui.perfetto.dev; one microsecond is one cycle."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from device_server.library import VtaLibrary
    from device_server.program import read_program
    from driver.vta.simulate import simulate

    timed = args.model != "functional"
    drawn = bool(args.timeline or args.svg)
    if drawn and not timed:
        raise SettingsError("the functional model knows no time", "leave out --timeline and --svg")
    program = read_program(args.program)
    target = _target(program, args.len_bits)
    library = VtaLibrary()
    library.configure(target, functional_only=not timed)
    result = simulate(library, program, args.program, timeline=drawn)
    if drawn:
        _draw(args, program, result)
    told = _promises(program, result) if timed and target == program.target else []
    if args.json:
        print(json.dumps(_document(program, result, args.model, told)))
        return 0
    for line in _lines(program, target, result, args.model):
        print(line)
    for difference in told:
        print(f"differs       {difference}")
    return 0


def _target(program: Program, len_bits: int | None) -> Target:
    """The program's accelerator, with other bursts if they are asked for."""
    from tilefarm.target import impossibilities

    target = program.target
    if len_bits is None:
        return target
    other = replace(target, timing=replace(target.timing, log_burst_beats=len_bits))
    reasons = impossibilities(other)
    if reasons:
        raise TargetError(f"--len-bits {len_bits}: " + "; ".join(reasons))
    return other


def _draw(args: argparse.Namespace, program: Program, result: StreamResult) -> None:
    from driver.summary import KernelTimeline
    from driver.vta.timelines import picture, trace

    name = program.name or args.program.stem
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
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from None


def _promises(program: Program, result: StreamResult) -> list[str]:
    """Where the run differs from what the file promises, if it promises anything."""
    from driver.vta.compare import differences

    if program.cycles is None and program.after is None:
        return []
    return differences(program, result)


def _document(
    program: Program, result: StreamResult, model: str, told: list[str]
) -> dict[str, Any]:
    return {
        "program": program.name,
        "model": model,
        "counters": asdict(result.counters),
        "differences": told,
    }


def _lines(program: Program, target: Target, result: StreamResult, model: str) -> Iterator[str]:
    counters = result.counters
    yield f"program       {program.name or 'unnamed'}"
    if model == "functional":
        yield "model         functional: results only"
    else:
        yield f"model         {model}, bursts of {1 << target.timing.log_burst_beats} beats"
        yield f"cycles        {counters.cycles}"
        for module in ("load", "compute", "store"):
            busy = getattr(counters, f"{module}_busy_cycles")
            yield f"{module:13} busy {busy} ({100 * busy / max(1, counters.cycles):.0f} %)"
    yield f"instructions  {counters.instructions}"
    yield f"micro-ops     {counters.gemm_uops} gemm, {counters.alu_uops} alu"
    loaded = {memory: getattr(counters, f"{memory}_load_nbytes") for memory in _MEMORIES}
    parts = ", ".join(f"{nbytes} {memory}" for memory, nbytes in loaded.items())
    yield f"bytes loaded  {sum(loaded.values())}: {parts}"
    yield f"bytes stored  {counters.out_store_nbytes}"
