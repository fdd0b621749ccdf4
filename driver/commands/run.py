"""`tilefarm run`: run a tuned program on data, on a device."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tilefarm.clock import SystemClock
from tilefarm.errors import TargetError
from tilefarm.plural import plural
from tilefarm.printable import printable
from tilefarm.quiet import quiet_libraries

from driver.atomic_write import require_another
from driver.commands.options.farm import add_device_options, farm_settings
from driver.farm.settings import FarmSettings

if TYPE_CHECKING:
    from driver.program.evaluate import ProgramRun
    from driver.program.model import NetworkProgram
    from driver.report.profile import Profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("program", type=Path, metavar="PROGRAM", help="the folder `program` of a tuned network")
    option("--input", type=Path, required=True, metavar="X.npz", help="inputs, samples first")
    option("--out", type=Path, metavar="Y.npz", help="where to write the outputs")
    option(
        "--profile",
        action="store_true",
        help="what each layer takes, one by one: of the first batch, on one device",
    )
    option("--json", action="store_true", help="print one JSON document")
    option(
        "--target",
        metavar="NAME|FILE.json",
        help="the accelerator or processor that there is; a program of another one is refused",
    )
    add_device_options(parser, "sample")
    parser.epilog = (
        "example:\n"
        "  tilefarm run tilefarm-out/demo/program --input test.npz --out answers.npz\n"
        "  tilefarm run tilefarm-out/demo/program --input test.npz --profile\n"
        "Devices are those of the program's target. README.txt in the folder says how to run it\n"
        "without tilefarm. A profile is in cycles where the device counts them, else in\n"
        "microseconds of its host; spread is from the 10th to the 90th percentile, by the median.\n"
        "A processor's layers have their speed, and their share of the most that its dot-product\n"
        "instruction makes, which is measured beside them on the same device."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    settings = farm_settings(args)
    quiet_libraries()
    from driver.program.deployed import read_program
    from driver.program.profile import require_entries
    from driver.program.running import write_answers

    if args.out is not None:
        require_another(args.out, args.input)
    program = read_program(args.program)
    if args.profile:
        require_entries(program)
    if args.target is not None:
        _check_target(program, args.target)
    answer, profile = _answers(program, args.input, settings, profiled=args.profile)
    if args.out is not None:
        write_answers(args.out, answer.outputs)
    told = _as_json if args.json else _as_text
    print(told(program, answer, profile, args.out))
    return 0


def _check_target(program: NetworkProgram, name: str) -> None:
    from driver.targets import usable_target

    target = usable_target(name)
    if target.digest != program.target.digest:
        raise TargetError(
            f"{program.name} was compiled for {program.target.name}"
            f" (target {program.target.digest.short}), not for {target.name}"
            f" ({target.digest.short})",
            f"tune the network again with --target {name}",
        )


def _answers(
    program: NetworkProgram, data: Path, settings: FarmSettings, *, profiled: bool
) -> tuple[ProgramRun, Profile | None]:
    from device_server.vta.library.native import find_executable, find_library_for
    from driver.farm.run_resources import Folders, RunResources
    from driver.farm.scratch import scratch_folder
    from driver.program.running import answers, load_inputs, profile

    inputs = load_inputs(program, data)
    if settings.tracker is None:
        find_library_for(program.target), find_executable()
    clock = SystemClock()
    with scratch_folder() as scratch:
        folders = Folders(scratch=scratch, log=scratch)
        with RunResources(
            settings, program.target, folders, owner="run", clock=clock, compile_workers=False
        ) as resources:
            answer = answers(program, inputs, resources.leases, settings, clock)
            if not profiled:
                return answer, None
            by_clock = not answer.cycles
            layers = profile(program, inputs, resources.leases, settings, clock, by_clock=by_clock)
            return answer, layers


def _as_text(
    program: NetworkProgram, answer: ProgramRun, profile: Profile | None, out: Path | None
) -> str:
    from driver.report.terminal.profile_text import profile_lines

    samples = len(next(iter(answer.outputs.values())))
    cycles = (
        f"{plural(answer.cycles[-1], 'cycle')} each"
        if answer.cycles
        else "not timed: --profile does that"
    )
    lines = [f"{program.name}: {plural(samples, 'sample')}, {cycles}"]
    lines += [f"{printable(n)}  {v.dtype} {list(v.shape)}" for n, v in answer.outputs.items()]
    lines += [f"lowered with  {printable(str(each))}" for each in program.passes]
    lines += [f"outputs  {out}"] if out is not None else []
    lines += ["", *profile_lines(profile)] if profile is not None else []
    return "\n".join(lines)


def _as_json(
    program: NetworkProgram, answer: ProgramRun, profile: Profile | None, out: Path | None
) -> str:
    from driver.program.user_passes import passes_document
    from driver.report.profile_rows import profile_document

    document = {
        "program": program.name,
        "digest": program.digest.hex,
        "target": program.target.name,
        **passes_document(program.passes),
        "samples": len(next(iter(answer.outputs.values()))),
        "cycles": answer.cycles[-1] if answer.cycles else None,
        "outputs": {name: list(values.shape) for name, values in answer.outputs.items()},
        "out": None if out is None else str(out),
        "profile": None if profile is None else profile_document(profile),
    }
    return json.dumps(document)
