"""`tilefarm vta check`: do program files still answer what they promise?"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.errors import UserError
from tilefarm.plural import form, plural

if TYPE_CHECKING:
    from device_server.vta.library.library import VtaLibrary
    from device_server.vta.programs.program import Program

EXIT_DIFFERENT: Final = 1
EXIT_UNUSABLE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """How one file fared: `problems` is empty if it agrees; `usable` is False if it did not run,
    and `remedy` says what to try then.
    """

    file: str
    usable: bool
    cycles: int | None
    expected_cycles: int | None
    problems: tuple[str, ...]
    remedy: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("programs", type=Path, nargs="+", metavar="PROGRAM", help="program files or folders")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = (
        "example:\n  tilefarm vta check vectors\n"
        "Prints a line for every file that does not agree. Exit codes: 0 all agree, 1 one answers\n"
        "otherwise, 2 one cannot be read or run."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from device_server.vta.library.library import VtaLibrary
    from driver.program.vta.files import program_files

    files = program_files(args.programs)
    library = VtaLibrary()
    verdicts = []
    for file in files:
        verdicts.append(verdict := judge(library, file))
        if verdict.problems and not args.json:
            print(f"{verdict.file}: {'; '.join(verdict.problems)}", flush=True)
            if verdict.remedy:
                print(f"  try: {verdict.remedy}", flush=True)
    good = sum(not verdict.problems for verdict in verdicts)
    if args.json:
        document = {"agree": good, "programs": [asdict(verdict) for verdict in verdicts]}
        print(json.dumps(document))
    else:
        print(f"{good} of {plural(len(verdicts), 'program')} {form(good, 'agrees', 'agree')}")
    if not all(verdict.usable for verdict in verdicts):
        return EXIT_UNUSABLE
    return 0 if good == len(verdicts) else EXIT_DIFFERENT


def judge(library: VtaLibrary, file: Path) -> FileResult:
    """Read, run and compare one file; whatever is wrong with it is in the verdict."""
    from device_server.vta.programs.program import read_program

    program: Program | None = None
    try:
        program = read_program(file)
        cycles, problems = _answer(library, program, file)
    except UserError as error:
        why = error.what.removeprefix(f"{file}: ")
        expected = program.cycles if program else None
        return FileResult(
            file=str(file),
            usable=False,
            cycles=None,
            expected_cycles=expected,
            problems=(why,),
            remedy=error.hint,
        )
    return FileResult(
        file=str(file),
        usable=True,
        cycles=cycles,
        expected_cycles=program.cycles,
        problems=tuple(problems),
    )


def _answer(library: VtaLibrary, program: Program, file: Path) -> tuple[int, list[str]]:
    from driver.program.vta.compare import differences
    from driver.program.vta.simulate import simulate

    library.configure(program.target)
    result = simulate(library, program, file, timeline=program.spans is not None)
    return result.counters.cycles, differences(program, result)
