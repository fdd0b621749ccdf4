"""`tilefarm demo`: the main job on the network that comes with tilefarm."""

from __future__ import annotations

import argparse
from pathlib import Path

from tilefarm.digest import Digest
from tilefarm.quiet import quiet_libraries

from driver.commands.options.farm import add_farm_options
from driver.commands.options.quantizing import add_quantization_options
from driver.commands.tune import add_search_options, tune_with
from driver.network import DEMO_CALIBRATION, DEMO_MODEL, DEMO_TEST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    add_search_options(parser)
    add_quantization_options(parser)
    add_farm_options(parser)
    parser.add_argument("--fresh", action="store_true", help="forget what earlier demos measured")
    parser.epilog = (
        "examples:\n"
        "  tilefarm demo\n"
        "  tilefarm demo --fresh --trials 500\n"
        "It tunes a classifier of handwritten digits; the first picture is in report.html."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    args.model, args.calibrate, args.evaluate = DEMO_MODEL, DEMO_CALIBRATION, DEMO_TEST
    if args.out is None:
        args.out = Path("tilefarm-out") / "demo"
    quiet_libraries()
    from driver.tune.output import OutputFolder

    folder = OutputFolder(args.out)
    if args.fresh or folder.is_of_another_model(Digest.of(DEMO_MODEL.read_bytes())):
        folder.forget()
    return tune_with(args)
