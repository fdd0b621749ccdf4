"""The options that say what a network's answers are, and how good they must be."""

from __future__ import annotations

import argparse

from driver.accuracy.kinds import KINDS


def add_judge_option(parser: argparse.ArgumentParser) -> None:
    """The option `--judge`."""
    parser.add_argument(
        "--judge",
        metavar="KIND",
        help=f"what the network answers: {', '.join(KINDS)} (default: as the shapes of outputs"
        " and labels say)",
    )
