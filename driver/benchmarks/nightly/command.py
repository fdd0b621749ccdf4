"""`tilefarm bench nightly`: what verdicts of nights are worth, and what their history takes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilefarm.target import Target

from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.nightly.cycles_verdicts import cycles_figures
from driver.benchmarks.nightly.history_size import Scale, history_figures
from driver.benchmarks.nightly.noise import measured_rounds
from driver.benchmarks.nightly.page_opened import page_figures
from driver.benchmarks.nightly.real_nights import NETWORKS, killed_figures, night_figures
from driver.benchmarks.nightly.wall_time_verdicts import wall_time_figures
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.farm.scratch import scratch_folder
from driver.program.rounds import ROUNDS
from driver.targets import usable_target

_NIGHTS: Final = 1000
_EPILOG: Final = f"""\
examples:
  tilefarm bench nightly --gate
  tilefarm bench nightly --quick

The noise is that of a convolution on this machine, measured in rounds: a fresh process each, right
after one of the control. What a night measures is {ROUNDS} rounds in a row, and what confirms it
the next {ROUNDS}; of all runs that were measured each row of each night draws one. Other noises are
made up. Every night has other code, so any of them might be slower, and none is: whoever is called
so is a false alarm. Now and then a row gets slower for two nights that leave no trace.

Real nights measure eight networks on two simulators, two rows at a time, from nothing and once
more; small ones are killed at random moments, fifty times, beside as many that are not (--quick:
five times, two networks).

A history is written as nights write it, for a few nights, and what they add is scaled; then it is
repeated until it is ten years long (--quick: a month), and opened. Of one of a year (--quick: a
month) the page is written, and opened by headless Chromium where that is installed.

exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured, simulated and written."""

    rounds: int
    nights: int
    cycle_rows: int
    scale: Scale
    page: Scale
    networks: Sequence[str]
    kills: int


WHOLE: Final = Effort(
    rounds=600,
    nights=_NIGHTS,
    cycle_rows=500,
    scale=Scale(nights=20, repeats=183),
    page=Scale(nights=20, repeats=19),
    networks=NETWORKS,
    kills=50,
)
QUICK: Final = Effort(
    rounds=60,
    nights=200,
    cycle_rows=50,
    scale=Scale(nights=3, repeats=10),
    page=Scale(nights=3, repeats=10),
    networks=NETWORKS[:2],
    kills=5,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    add_number(parser, "seed", "of what is made up", default=0, least=0)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of everything, for a first look"
    )
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    effort, target = QUICK if args.quick else WHOLE, usable_target("cpu")
    groups: dict[str, list[Figure]] = {}
    for title, figures in _groups(effort, target, args.seed):
        groups[title] = list(figures)
        if not args.json:
            print(title, *figure_table(groups[title]), "", sep="\n", flush=True)
    tell(args, [f"machine  {machine()}"], lambda: _document(groups))
    return gated(args, [figure for figures in groups.values() for figure in figures])


def _groups(effort: Effort, target: Target, seed: int) -> Iterator[tuple[str, Iterator[Figure]]]:
    """What is done, one after the other."""
    yield "verdicts by cycles", cycles_figures(effort.cycle_rows, seed)
    with scratch_folder() as folder:
        yield "the history", history_figures(effort.scale, folder, seed)
    with scratch_folder() as folder:
        yield "the page", page_figures(effort.page, folder, seed)
    with scratch_folder() as folder:
        yield "real nights", night_figures(folder, effort.networks)
        yield "nights that are killed", killed_figures(folder, effort.kills, seed)
    rounds = list(measured_rounds(target, effort.rounds))
    yield "verdicts by a clock", wall_time_figures(rounds, effort.nights, seed)


def _document(groups: Mapping[str, Sequence[Figure]]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "groups": {title: [f.row() for f in figures] for title, figures in groups.items()},
    }
