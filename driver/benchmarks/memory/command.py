"""`tilefarm bench memory`: how fast and how well memory is planned."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.memory import (
    challenging,
    choices,
    everyday,
    networks,
    orders,
    schedules,
    tight,
)
from driver.environment import machine

_EPILOG: Final = """\
examples:
  tilefarm bench memory
  tilefarm bench memory --files challenging --gate
  tilefarm bench memory --zoo zoo

The folder of files holds the challenging suite of google/minimalloc, A.1048576.csv to
K.1048576.csv; without it there are generated problems alone. The zoo's folder has models whose
samples are sent through accelerator and processor, and through two threads (VWW and a transformer
block, beside SqueezeNet): a sample's time is told by what the busiest engine works for it. Seconds
are those of one processor. Nodes of the exact search are the same on every machine. Optima of
schedules are proven by OR-Tools, where it is installed.

exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument(
        "--files", type=Path, metavar="FOLDER", help="also the challenging suite of MiniMalloc"
    )
    parser.add_argument(
        "--zoo", type=Path, metavar="FOLDER", help="also whole networks, some of this folder"
    )
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    groups: dict[str, list[Figure]] = {}
    if args.zoo is not None:
        groups["networks, several samples in flight"] = networks.figures(args.zoo)
    if args.files is not None:
        groups["MiniMalloc's challenging suite, offsets within 1,048,576 bytes"] = (
            challenging.figures(args.files, time.process_time)
        )
    groups["everyday graphs, the smallest peak"] = everyday.figures(time.process_time)
    groups["rectangles cut into buffers, no byte to spare"] = tight.figures(time.process_time)
    groups["cells that no person wired, the peak of usual orders by the best one's"] = (
        orders.figures(time.process_time)
    )
    groups["schedules with transfers"] = schedules.figures(time.process_time)
    groups["operations that may run again, results in their operands' places"] = choices.figures()
    tell(args, _lines(groups), lambda: _document(groups))
    return gated(args, [figure for figures in groups.values() for figure in figures])


def _lines(groups: Mapping[str, Sequence[Figure]]) -> list[str]:
    lines = [f"machine  {machine()}; processor time"]
    for title, figures in groups.items():
        lines += ["", title, *figure_table(figures)]
    return lines


def _document(groups: Mapping[str, Sequence[Figure]]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "groups": {title: [f.row() for f in figures] for title, figures in groups.items()},
    }
