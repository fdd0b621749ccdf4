"""`tilefarm run`: run a tuned program on data, on a device."""

from __future__ import annotations

import argparse
from pathlib import Path

from tilefarm.clock import SystemClock

from driver.farm.quiet import quiet_libraries
from driver.settings import add_farm_options, farm_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("program", type=Path, metavar="PROGRAM", help="the folder `program` of a tuned network")
    option("--input", type=Path, required=True, metavar="X.npz", help="inputs, samples first")
    option("--output", type=Path, metavar="Y.npz", help="where to write the outputs")
    add_farm_options(parser)
    parser.epilog = (
        "example:\n"
        "  tilefarm run tilefarm-out/demo/program --input test.npz --output answers.npz\n"
        "The target is the program's own."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    settings = farm_settings(args)
    quiet_libraries()
    from driver.farm.farmhouse import Farmhouse, Folders
    from driver.farm.scratch import scratch_folder
    from driver.program.deployed import read_program
    from driver.program.running import answers, write_answers

    program = read_program(args.program)
    clock = SystemClock()
    with scratch_folder() as scratch:
        folders = Folders(scratch=scratch, log=scratch)
        with Farmhouse(
            settings, program.target, folders, owner="run", clock=clock, compile_workers=False
        ) as house:
            answer = answers(program, args.input, house.leases, settings, clock)
    samples = len(next(iter(answer.outputs.values())))
    cycles = f"{answer.cycles[-1]} cycles each" if answer.cycles else "no cycles counted"
    print(f"{program.name}: {samples} samples, {cycles}")
    if args.output is not None:
        write_answers(args.output, answer.outputs)
        print(f"outputs  {args.output}")
    return 0
