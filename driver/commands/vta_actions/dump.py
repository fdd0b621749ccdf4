"""`tilefarm vta dump`: compile a layer, and write what it runs as program files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilefarm.errors import SettingsError
from tilefarm.system_errors import unwritable

from driver.commands.options.networks import MODEL, add_network_options, source_of
from driver.commands.options.shared import add_target

if TYPE_CHECKING:
    from tilefarm.target import Target
    from tilefarm.trace import Trace
    from tilefarm.workload import Workload


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    layer = parser.add_mutually_exclusive_group(required=True)
    layer.add_argument("--conv", metavar="CI,CO,H,W,K,STRIDE,PAD", help="a convolution")
    layer.add_argument("--model", metavar=MODEL, help="the layers of a network")
    option("--workload", metavar="NAME", help="of the network's layers this one; part of its name")
    schedule = parser.add_mutually_exclusive_group()
    schedule.add_argument("--point", type=Path, metavar="FILE.json", help="values of the space")
    schedule.add_argument("--trace", type=Path, metavar="FILE.json", help="schedule primitives")
    schedule.add_argument(
        "--predicted", action="store_true", help="the schedule that is best by prediction"
    )
    add_target(parser)
    option("--seed", type=int, default=0, metavar="N", help="of the inputs (default: 0)")
    option("--out", type=Path, required=True, metavar="DIR", help="folder for the program files")
    add_network_options(parser)
    parser.epilog = (
        "examples:\n"
        "  tilefarm vta dump --conv 64,64,56,56,3,1,1 --predicted --out c2\n"
        "  tilefarm vta dump --model net.onnx --calibrate data.npz --out layers\n"
        "Without an option the schedule is the plain one. A program has the inputs in its memory,\n"
        "the result that was compared with the reference, and the cycles."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from device_server.vta.library.library import VtaLibrary
    from device_server.vta.programs.program import write_program
    from driver.program.vta.recording import record_workload
    from driver.targets import simulated_target

    target = simulated_target(args.target)
    layers = dict(_layers(args, target))
    folder = _folder(args.out)
    library = VtaLibrary()
    for name, workload in layers.items():
        trace = _schedule(args, workload, target)
        programs = record_workload(library, workload, trace, target, seed=args.seed, name=name)
        for program in programs:
            file = folder / f"{program.name}.npz"
            write_program(file, program)
            count = len(program.instructions)
            print(f"{file}: {count} instructions, {program.cycles} cycles", flush=True)
    return 0


def _layers(args: argparse.Namespace, target: Target) -> Iterator[tuple[str, Workload]]:
    """The layers that the options mean, by the names of their files."""
    from driver.network import forms_of
    from driver.program.vta.layers import Convolution

    if args.conv is not None:
        layer = Convolution.parse(args.conv)
        yield "conv_" + "_".join(args.conv.replace(" ", "").split(",")), layer.workload(target)
        return
    network = forms_of(source_of(args), target).network
    found = {workload.name: workload for workload, _ in network.workloads()}
    chosen = {name: w for name, w in found.items() if args.workload in (None, name)}
    if not chosen:
        chosen = {name: w for name, w in found.items() if args.workload in name}
    if not chosen:
        known = ", ".join(found) or "none"
        raise SettingsError(f"--workload {args.workload}: no such layer", f"one of {known}")
    yield from chosen.items()


def _schedule(args: argparse.Namespace, workload: Workload, target: Target) -> Trace:
    from driver.program.vta.schedules import PREDICTED, Choice, trace_of

    trace = PREDICTED if args.predicted else None if args.trace is None else str(args.trace)
    return trace_of(Choice(trace=trace, point=args.point), workload, target, seed=args.seed)


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
    return path
