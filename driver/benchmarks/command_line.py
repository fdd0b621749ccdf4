"""What benchmarks have in common on the command line: `--gate`, its exit code, and `--json`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from driver.benchmarks.figures import Figure

EXIT_MISSED: Final = 1


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Declare `--gate`."""
    parser.add_argument("--gate", action="store_true", help="exit code 1 where a goal is missed")


def tell(args: argparse.Namespace, lines: Iterable[str], document: Callable[[], Any]) -> None:
    """Print what was found: lines, or with `--json` the one document."""
    for line in [json.dumps(document())] if args.json else lines:
        print(line)


def gated(args: argparse.Namespace, figures: Iterable[Figure]) -> int:
    """The exit code of a bench that ran: whether a goal is missed counts with `--gate` only."""
    return EXIT_MISSED if args.gate and not all(figure.is_met for figure in figures) else 0
