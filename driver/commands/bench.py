"""`tilefarm bench`: how long tilefarm takes and how good its kernels are."""

from __future__ import annotations

import argparse
import importlib
from typing import Final

from driver.bench import BENCHMARKS
from driver.commands import Command

_EPILOG: Final = """\
examples:
  tilefarm bench demo --runs 5
  tilefarm bench simulator --json
  tilefarm bench WHAT --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the benchmarks with their options."""
    parser.epilog = _EPILOG
    benchmarks = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, (module, caption) in BENCHMARKS.items():
        one = benchmarks.add_parser(
            name,
            help=caption,
            description=caption[0].upper() + caption[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        one.add_argument("--json", action="store_true", help="one JSON document")
        _load(module).add_arguments(one)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    return _load(BENCHMARKS[args.what][0]).run(args)


def _load(module: str) -> Command:
    loaded: Command = importlib.import_module(module)
    return loaded
