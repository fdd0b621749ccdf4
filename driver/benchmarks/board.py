"""`tilefarm bench board`: how near a search by a noisy clock comes to the best schedules there are.

Searches on the stand-in board know seconds only. What each has found is then run on the simulator,
whose cycles are exact, beside the program of a longer search there.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tilefarm.errors import InfraError
from tilefarm.interpreter import python_command

from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.figures import Figure, figure_table
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.farm.scratch import scratch_folder
from driver.program.deployed import read_program
from driver.program.simulated import on_simulator

_RUNS: Final = 10
_TRIALS: Final = 200
_REFERENCE: Final = 4
"""The search on the simulator has so many times the trials of one on the board."""
_WITHIN_PERCENT: Final = 5
_SHARE_PERCENT: Final = 90

_EPILOG: Final = f"""\
examples:
  tilefarm bench board --gate
  tilefarm bench board --runs 2 --trials 60 --json

Whole searches of the demo on the stand-in board (`tilefarm device --help`), each a process with a
folder and a seed of its own. The board counts nothing, and is timed by the clock of this machine
with whatever else that does. In the end the program of each search is run on the simulator. The
best known is the program with the fewest cycles, of these and of one search on the simulator with
{_REFERENCE} times the trials. At least {_SHARE_PERCENT} % of the searches must end within
{_WITHIN_PERCENT} % of it.

exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    for name, default, least, what in (
        ("runs", _RUNS, 1, "searches on the board"),
        ("trials", _TRIALS, 1, "of each of them"),
        ("seed", 0, 0, "of the first; the others count on from it"),
    ):
        add_number(parser, name, what, default=default, least=least)
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    with scratch_folder() as scratch:
        best = searched(scratch / "simulator", _REFERENCE * args.trials, args.seed)
        runs: list[BoardSearch] = []
        if not args.json:
            print(f"on the simulator: {best}", flush=True)
        for number in range(args.runs):
            seed = args.seed + number
            runs.append(searched(scratch / f"{number}", args.trials, seed, on_board=True))
            if not args.json:
                print(f"search {number + 1}: {runs[-1]}", flush=True)
    figures = list(board_figures(best, runs))
    document = {
        "machine": machine(),
        "simulator": asdict(best),
        "figures": [f.row() for f in figures],
        "searches": list(map(asdict, runs)),
    }
    tell(args, figure_table(figures), lambda: document)
    return gated(args, figures)


@dataclass(frozen=True, slots=True)
class BoardSearch:
    """What the program of a search takes on the simulator, and what finding it has taken."""

    cycles: int
    seconds: float

    def __str__(self) -> str:
        return f"a program of {self.cycles} cycles, in {self.seconds:.0f} s"


def board_figures(simulator: BoardSearch, runs: Sequence[BoardSearch]) -> Iterator[Figure]:
    """How far the programs of `runs` are from the best known."""
    best = min(each.cycles for each in (simulator, *runs))
    above = [100 * (each.cycles / best - 1) for each in runs]
    near = [each for each in runs if 100 * each.cycles <= (100 + _WITHIN_PERCENT) * best]
    yield Figure(name="best known", value=best, unit="cycles")
    yield Figure(name="searches on the board", value=len(runs), unit="")
    yield Figure(name="  median above the best", value=statistics.median(above), unit="%")
    yield Figure(name="  the worst", value=max(above), unit="%")
    within = f"  within {_WITHIN_PERCENT} %"
    share = 100 * len(near) / len(runs)
    yield Figure(name=within, value=share, unit="%", goal=_SHARE_PERCENT, more_is_better=True)
    seconds = statistics.median(each.seconds for each in runs)
    yield Figure(name="  seconds of one", value=seconds, unit="s")


def searched(out: Path, trials: int, seed: int, *, on_board: bool = False) -> BoardSearch:
    """One search of the demo from nothing, and its program judged.

    Raises:
        InfraError: it failed.
    """
    words = ["demo", "--json", "--no-ray", "--workers", "2", "--devices", "1", "--out", str(out)]
    words += ["--trials", str(trials), "--seed", str(seed)]
    words += ["--runtime", "stand-in"] * on_board
    began = time.monotonic()
    done = subprocess.run(
        python_command("-m", "driver.cli", *words), stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise InfraError(f"the search ended with exit code {done.returncode}", f"see {out}")
    seconds = time.monotonic() - began
    return BoardSearch(cycles=exact_cycles(out / "program"), seconds=seconds)


def exact_cycles(program: Path) -> int:
    """What a program takes on the simulator; data does not matter."""
    read = read_program(program)
    zeros = {each.name: np.zeros(each.shape, np.float32) for each in read.inputs}
    return on_simulator(read, zeros).sample_cycles[-1]
