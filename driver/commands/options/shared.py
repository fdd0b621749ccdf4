"""Options that many commands have: whole numbers, a seed, the target, the records of all runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from tilefarm.command_line import whole_from

MOST_IN_FLIGHT: Final = 64
"""Samples that somebody may ask for: three keep every engine busy, and each takes memory."""


def add_number(
    parser: argparse.ArgumentParser, name: str, what: str, *, default: int, least: int = 1
) -> None:
    """Declare an option `--name N`."""
    parser.add_argument(
        f"--{name}",
        type=whole_from(least),
        default=default,
        metavar="N",
        help=f"{what} (default: {default})".lstrip(),
    )


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare `--seed N`."""
    add_number(parser, "seed", what, default=0, least=0)


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare `--target`."""
    parser.add_argument("--target", default="sim", metavar="NAME|FILE.json", help="(default: sim)")


def add_records_option(parser: argparse.ArgumentParser, what: str, *, needed: bool = False) -> None:
    """Declare `--records`; `what` says what becomes of the file."""
    parser.add_argument("--records", type=Path, required=needed, metavar="FILE.sqlite", help=what)


def add_throughput(parser: argparse.ArgumentParser) -> None:
    """Declare `--throughput [N]`: None where it is not given, 0 where no number is."""
    parser.add_argument(
        "--throughput",
        nargs="?",
        type=whole_from(1, MOST_IN_FLIGHT),
        const=0,
        metavar="N",
        help="several samples in flight, N at a time (default: as many as are worth it)",
    )
