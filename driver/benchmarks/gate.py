"""What benches with goals have in common: whole numbers as options, `--gate`, and its exit code."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Final

from tilefarm.command_line import whole_from

from driver.benchmarks.figures import Figure

EXIT_MISSED: Final = 1


def add_number(
    parser: argparse.ArgumentParser, name: str, what: str, *, default: int, least: int
) -> None:
    """Declare an option `--name N`."""
    parser.add_argument(
        f"--{name}",
        type=whole_from(least),
        default=default,
        metavar="N",
        help=f"{what} (default: {default})",
    )


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Declare `--gate`."""
    parser.add_argument("--gate", action="store_true", help="exit code 1 where a goal is missed")


def gated(args: argparse.Namespace, figures: Iterable[Figure]) -> int:
    """The exit code of a bench that ran: whether a goal is missed counts with `--gate` only."""
    return EXIT_MISSED if args.gate and not all(figure.is_met for figure in figures) else 0
