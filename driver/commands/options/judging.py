"""The options that say what a network's answers are, and how good they must be."""

from __future__ import annotations

import argparse

from driver.network import ANSWER_KINDS, DEFAULT_POINTS


def add_judge_option(parser: argparse.ArgumentParser) -> None:
    """The option `--judge`."""
    parser.add_argument(
        "--judge",
        metavar="KIND",
        help=f"what the network answers: {', '.join(ANSWER_KINDS)}"
        " (default: as the shapes of outputs and labels say)",
    )


def add_promise_option(parser: argparse.ArgumentParser) -> None:
    """The option `--max-loss`."""
    parser.add_argument(
        "--max-loss",
        type=float,
        metavar="POINTS",
        help="accuracy that the integers may lose against float, in points: of labels where there"
        " are some, otherwise of agreement with float, on samples that did not calibrate. Layers"
        " get 16 bits or stay in float on the processor where that is needed, as cheaply as will"
        " do: plans are compared by cycles on the simulator, measured for a minute at most"
        f" (default: {DEFAULT_POINTS:g}, which is judged, and only warned of)",
    )
